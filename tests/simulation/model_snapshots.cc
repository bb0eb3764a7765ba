#include "tests/simulation/model_snapshots.h"

#include <gtest/gtest.h>

#include "src/service/snapshotter.h"

namespace conductor::simulation {

void ModelSnapshots::Step(StateMachine& state, Seq seq, std::size_t blocks, LogWriter& writer,
                          MemoryEventLog& log) {
  if (cut_ == nullptr) {
    if (seq == 0) return;
    seq_ = seq;
    encoder_ = store_.NewEncoder();
    file_ = std::move(*store_.CreateImage(seq));
    cut_ = std::make_unique<ImageCut>(state, seq, *encoder_);
    return;
  }
  const bool complete = cut_->Step(blocks);
  ASSERT_TRUE(cut_->status());
  bool good = true;
  if (encoder_->size() > 0) good = file_->Append(encoder_->Take()).has_value();
  if (good && !complete) return;
  good = good && Finish(writer, log);
  ++(good ? made_ : failed_);
  GiveUp();
}

bool ModelSnapshots::Finish(LogWriter& writer, MemoryEventLog& log) {
  if (writer.synced() < seq_ && !writer.SyncNow()) return false;
  if (!file_->Finish()) return false;
  std::vector<Seq> kept = store_.seqs();
  for (; kept.size() > kSnapshotsKept; kept.erase(kept.begin())) {
    EXPECT_TRUE(store_.RemoveSnapshot(kept.front()));
  }
  if (kept.size() == kSnapshotsKept) {
    EXPECT_TRUE(log.DropBelow(kept.front() + 1));
  }
  return true;
}

void ModelSnapshots::GiveUp() {
  cut_.reset();
  encoder_.reset();
  file_.reset();
}

}  // namespace conductor::simulation
