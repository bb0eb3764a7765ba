// Images taken while records are applied: what they hold, in the bytes of a file, and that a state
// from one goes on as the one it was taken from.
#include <utility>

#include "src/hex.h"
#include "src/state/image_loader.h"
#include "storage/snapshot_encoder.h"
#include "tests/model/state_pair.h"
#include "tests/storage/memory_source.h"

namespace conductor::model {

StatePair::Image::Image(StateMachine& state, std::size_t records)
    : records(records), digest(Hex128(state.Digest())), cut(state, records, tape) {}

std::string StatePair::StepImage() {
  if (image_ == nullptr) {
    if (cleanup_.Percent(50)) image_ = std::make_unique<Image>(*real_, records_.size());
    return "";
  }
  // Now and then given up.
  if (cleanup_.Percent(2)) {
    image_.reset();
    return "";
  }
  if (!image_->cut.Step(cleanup_.Below(12))) return "";
  const std::string difference = LoadImage();
  image_.reset();
  return difference;
}

std::string StatePair::LoadImage() {
  const std::string of = "image of record " + std::to_string(image_->records) + ": ";
  if (!image_->cut.status()) return of + image_->cut.status().error().message;
  if (Hex128(image_->tape.end().digest) != image_->digest) return of + "another digest";
  storage::SnapshotEncoder encoder;
  if (auto status = image_->tape.Play(encoder); !status) return of + status.error().message;
  ImageLoader loader;
  const Seq seq = image_->records;
  if (auto status = storage::ReadFromMemory(encoder.Take(), seq, loader); !status) {
    return of + status.error().message;
  }
  std::unique_ptr<StateMachine> loaded = loader.Take();
  if (loader.seq() != image_->records) return of + "another position";
  if (Hex128(loaded->Digest()) != image_->digest) return of + "another digest once loaded";
  const std::string inconsistency = loaded->index().Inconsistency();
  if (!inconsistency.empty()) return of + inconsistency;
  for (std::size_t i = image_->records; i < records_.size(); ++i) {
    loaded->Apply(records_[i]);
    if (cleanup_.Percent(50)) loaded->CleanupSlice(cleanup_.Below(20));
  }
  if (Hex128(loaded->Digest()) != Hex128(real_->Digest())) {
    return of + "another digest after the records behind it";
  }
  image_.reset();  // before the state that it watches
  real_ = std::move(loaded);
  return "";
}

}  // namespace conductor::model
