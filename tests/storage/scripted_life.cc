#include "tests/storage/scripted_life.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/storage/image_text.h"
#include "tests/storage/test_image.h"

namespace conductor::storage {
namespace {

Record Numbered(Seq seq) {
  return {{Lost{1, seq, seq}}};
}

constexpr int kLivesAtOnce = 6;
constexpr int kPlacesMax = 1000;

}  // namespace

int TryEverywhere(const std::function<bool(int)>& try_at) {
  std::atomic<int> next{0}, places{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> lives;
  for (int i = 0; i < kLivesAtOnce; ++i) {
    lives.emplace_back([&] {
      while (!done.load() && !::testing::Test::HasFailure()) {
        const int n = next.fetch_add(1);
        if (n < kPlacesMax && try_at(n)) {
          places.fetch_add(1);
        } else {
          done.store(true);
        }
      }
    });
  }
  for (std::thread& life : lives) life.join();
  return places.load();
}

Status ScriptedLife::Start() {
  CONDUCTOR_ASSIGN_OR_RETURN(
      log_, RocksDbEventLog::Open({.data_dir = dir_.data_dir(),
                                   .env = env_.get(),
                                   .on_warning = [this](auto line) { warnings_.Add(line); }}));
  return {};
}

void ScriptedLife::Stop() {
  log_.reset();
}

Status ScriptedLife::Append(int records, bool acknowledged) {
  std::vector<Record> group;
  for (int i = 0; i < records; ++i) group.push_back(Numbered(++appended_));
  const bool sync = acknowledged || policy_ == Policy::kAlways;
  const auto last = log_->Append(group, sync ? Durability::kSynced : Durability::kBuffered);
  if (!last) return tl::unexpected(last.error());
  if (sync) synced_ = *last;
  return {};
}

Status ScriptedLife::Sync() {
  if (policy_ == Policy::kNever) return {};
  CONDUCTOR_RETURN_IF_ERROR(log_->Sync());
  synced_ = appended_;
  return {};
}

Status ScriptedLife::Snapshot() {
  CONDUCTOR_RETURN_IF_ERROR(log_->Sync());
  synced_ = appended_;
  const TestImage image = SmallImage(appended_);
  const std::unique_ptr<ImageEncoder> encoder = log_->NewEncoder();
  CONDUCTOR_ASSIGN_OR_RETURN(const std::unique_ptr<ImageFile> file, log_->CreateImage(appended_));
  CONDUCTOR_RETURN_IF_ERROR(image.Play(*encoder));
  const std::string bytes = encoder->Take();
  const std::size_t half = bytes.size() / 2;
  CONDUCTOR_RETURN_IF_ERROR(file->Append(std::string_view(bytes).substr(0, half)));
  CONDUCTOR_RETURN_IF_ERROR(file->Append(std::string_view(bytes).substr(half)));
  CONDUCTOR_RETURN_IF_ERROR(file->Finish());
  snapshot_ = appended_;
  return {};
}

// As the service: the newest and the one before it stay, and the log from there on.
Status ScriptedLife::DropOld() {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto snapshots, log_->ListSnapshots());
  if (snapshots.size() < 2) return {};
  CONDUCTOR_RETURN_IF_ERROR(log_->DropBelow(snapshots[1].seq + 1));
  first_ = std::max(first_, snapshots[1].seq + 1);
  for (std::size_t i = 2; i < snapshots.size(); ++i) {
    CONDUCTOR_RETURN_IF_ERROR(log_->RemoveSnapshot(snapshots[i].seq));
  }
  return {};
}

Status ScriptedLife::Run() {
  if (log_ == nullptr) CONDUCTOR_RETURN_IF_ERROR(Start());
  for (int round = 0; round < 3; ++round) {
    CONDUCTOR_RETURN_IF_ERROR(Append(3, false));
    CONDUCTOR_RETURN_IF_ERROR(Sync());
    CONDUCTOR_RETURN_IF_ERROR(Append(1, true));  // a registration
    CONDUCTOR_RETURN_IF_ERROR(Snapshot());
    CONDUCTOR_RETURN_IF_ERROR(Append(2, false));
    CONDUCTOR_RETURN_IF_ERROR(DropOld());
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const SnapshotInfo checkpoint, log_->CreateCheckpoint());
  CONDUCTOR_RETURN_IF_ERROR(log_->RemoveCheckpoint(checkpoint.path));
  CONDUCTOR_RETURN_IF_ERROR(Append(2, false));
  CONDUCTOR_RETURN_IF_ERROR(Recover());
  CONDUCTOR_RETURN_IF_ERROR(Append(2, false));
  return Sync();
}

Status ScriptedLife::Recover() {
  if (log_ == nullptr) {
    CONDUCTOR_RETURN_IF_ERROR(Start());
  } else {
    CONDUCTOR_RETURN_IF_ERROR(log_->Reopen());
  }
  std::vector<Record> missing;
  for (Seq seq = log_->LastSeq() + 1; seq <= appended_; ++seq) missing.push_back(Numbered(seq));
  if (!missing.empty()) CONDUCTOR_RETURN_IF_ERROR(log_->Append(missing, Durability::kBuffered));
  CONDUCTOR_RETURN_IF_ERROR(log_->Sync());
  synced_ = appended_;
  return {};
}

std::string ScriptedLife::BrokenLog() const {
  const Seq first = log_->FirstSeq(), last = log_->LastSeq();
  if (last < synced_) {
    return "the log ends at " + std::to_string(last) + ", synced " + std::to_string(synced_);
  }
  if (last > appended_) return "the log ends behind what was appended";
  if (first < first_) return "the log begins before what was dropped";
  Seq next = first;
  const Status read = log_->Read(first, last, [&](Seq seq, const Record& record) -> Status {
    if (seq != next++ || std::get<Lost>(record.facts.at(0)).from != seq) {
      return MakeError(ErrorCode::kInternal, "another record at " + std::to_string(seq));
    }
    return {};
  });
  if (!read) return read.error().message;
  return next == last + 1 ? "" : "records are missing at the end";
}

std::string ScriptedLife::BrokenSnapshots() const {
  const auto snapshots = log_->ListSnapshots();
  if (!snapshots) return snapshots.error().message;
  if (!snapshots->empty() && snapshots->front().seq < snapshot_) return "the newest is gone";
  if (snapshots->empty() && snapshot_ != 0) return "all snapshots are gone";
  bool reached = log_->FirstSeq() == 1;
  for (const SnapshotInfo& snapshot : *snapshots) {
    if (snapshot.seq > log_->LastSeq()) return "a snapshot ahead of the log";
    ImageText text;
    const Status read = log_->ReadSnapshot(snapshot.seq, text);
    if (!read) return read.error().message;
    if (text.lines() != TextsOf(SmallImage(snapshot.seq))) return "another image";
    reached = reached || snapshot.seq + 1 >= log_->FirstSeq();
  }
  return reached
             ? ""
             : "no snapshot reaches the log, which begins at " + std::to_string(log_->FirstSeq());
}

std::string ScriptedLife::Broken() const {
  if (log_ == nullptr) return "the log is not open";
  const std::string broken = BrokenLog();
  return broken.empty() ? BrokenSnapshots() : broken;
}

}  // namespace conductor::storage
