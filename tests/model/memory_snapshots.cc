#include "tests/model/memory_snapshots.h"

#include <algorithm>
#include <utility>

#include "src/hex.h"

namespace conductor::model {

class MemoryEncoder final : public ImageEncoder {
 public:
  MemoryEncoder(std::shared_ptr<ImageTape> tape, std::size_t frame_bytes)
      : tape_(std::move(tape)), frame_bytes_(frame_bytes) {}
  Status OnStart(const ImageStart& piece) override { return Count(tape_->OnStart(piece)); }
  Status OnContext(const ImageContext& piece) override { return Count(tape_->OnContext(piece)); }
  Status OnPool(const ImagePool& piece) override { return Count(tape_->OnPool(piece)); }
  Status OnRegistration(const ImageRegistration& piece) override {
    return Count(tape_->OnRegistration(piece));
  }
  Status OnHolder(const ImageHolder& piece) override { return Count(tape_->OnHolder(piece)); }
  Status OnSet(const ImageSet& piece) override { return Count(tape_->OnSet(piece)); }
  Status OnRun(const ImageRun& piece) override { return Count(tape_->OnRun(piece)); }
  Status OnEntry(const ImageEntry& piece) override { return Count(tape_->OnEntry(piece)); }
  Status OnCopies(const ImageCopies& piece) override { return Count(tape_->OnCopies(piece)); }
  Status OnParts(const ImageParts& piece) override { return Count(tape_->OnParts(piece)); }
  Status OnStream(const StreamFacts& piece) override { return Count(tape_->OnStream(piece)); }
  Status OnEnd(const ImageEnd& piece) override { return Count(tape_->OnEnd(piece)); }
  std::size_t size() const override { return bytes_; }
  std::string Take() override { return std::string(std::exchange(bytes_, 0), '.'); }

 private:
  Status Count(Status status) {
    bytes_ += frame_bytes_;
    return status;
  }

  const std::shared_ptr<ImageTape> tape_;
  const std::size_t frame_bytes_;
  std::size_t bytes_ = 0;
};

class MemoryImageFile final : public ImageFile {
 public:
  MemoryImageFile(MemorySnapshots& store, Seq seq) : store_(store), seq_(seq) {}

  Status Append(std::string_view frames) override {
    std::unique_lock lock(store_.mutex_);
    ++store_.waiting_;
    store_.changed_.notify_all();
    store_.changed_.wait(lock, [this] { return !store_.held_; });
    --store_.waiting_;
    bytes_ += frames.size();
    if (auto error = std::exchange(store_.append_failure_, std::nullopt)) {
      return tl::unexpected(*error);
    }
    return {};
  }

  Result<SnapshotInfo> Finish() override {
    const std::lock_guard lock(store_.mutex_);
    if (auto error = std::exchange(store_.finish_failure_, std::nullopt)) {
      return tl::unexpected(*error);
    }
    store_.kept_[seq_] = {store_.tape_};
    SnapshotInfo info;
    info.seq = seq_;
    info.bytes = bytes_;
    info.path = "memory/" + std::to_string(seq_);
    info.blocks = store_.tape_->end().blocks;
    info.digest = Hex128(store_.tape_->end().digest);
    return info;
  }

 private:
  MemorySnapshots& store_;
  const Seq seq_;
  std::uint64_t bytes_ = 0;
};

std::unique_ptr<ImageEncoder> MemorySnapshots::NewEncoder() const {
  const std::lock_guard lock(mutex_);
  tape_ = std::make_shared<ImageTape>();
  return std::make_unique<MemoryEncoder>(tape_, frame_bytes_);
}

Result<std::unique_ptr<ImageFile>> MemorySnapshots::CreateImage(Seq seq) {
  return std::unique_ptr<ImageFile>(std::make_unique<MemoryImageFile>(*this, seq));
}

Result<std::vector<SnapshotInfo>> MemorySnapshots::ListSnapshots() const {
  const std::lock_guard lock(mutex_);
  std::vector<SnapshotInfo> list;
  for (auto it = kept_.rbegin(); it != kept_.rend(); ++it) {
    SnapshotInfo info;
    info.seq = it->first;
    info.path = "memory/" + std::to_string(it->first);
    info.blocks = it->second.tape->end().blocks;
    info.digest = Hex128(it->second.tape->end().digest);
    if (const auto wrong = it->second.Wrong(/*read=*/false)) {
      info.damage = wrong->message;
      info.damage_code = wrong->code;
    }
    list.push_back(info);
  }
  return list;
}

Status MemorySnapshots::ReadSnapshot(Seq seq, ImageVisitor& visitor) const {
  Kept kept;
  {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(seq);
    if (found == kept_.end()) return MakeError(ErrorCode::kNotFound, "no such snapshot");
    kept = found->second;
  }
  if (const auto wrong = kept.Wrong(/*read=*/true)) return tl::unexpected(*wrong);
  return kept.tape->Play(visitor);
}

Status MemorySnapshots::RemoveSnapshot(Seq seq) {
  const std::lock_guard lock(mutex_);
  kept_.erase(seq);
  return {};
}

Status MemorySnapshots::SetAside(Seq seq) {
  const std::lock_guard lock(mutex_);
  kept_.erase(seq);
  set_aside_.push_back(seq);
  return {};
}

Result<SnapshotInfo> MemorySnapshots::CreateCheckpoint() {
  return MakeError(ErrorCode::kUnimplemented, "no checkpoints in memory");
}

Result<std::vector<SnapshotInfo>> MemorySnapshots::ListCheckpoints() const {
  return std::vector<SnapshotInfo>{};
}

Status MemorySnapshots::RemoveCheckpoint(const std::string& path) {
  return MakeError(ErrorCode::kNotFound, path + ": no checkpoint");
}

Result<std::vector<SnapshotInfo>> MemorySnapshots::RemoveOldCheckpoints() {
  const std::lock_guard lock(mutex_);
  return std::exchange(old_checkpoints_, {});
}

void MemorySnapshots::AddOldCheckpoint(SnapshotInfo checkpoint) {
  const std::lock_guard lock(mutex_);
  old_checkpoints_.push_back(std::move(checkpoint));
}

void MemorySnapshots::FailNext(Error error, bool finish) {
  const std::lock_guard lock(mutex_);
  (finish ? finish_failure_ : append_failure_) = std::move(error);
}

void MemorySnapshots::Hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void MemorySnapshots::Release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

void MemorySnapshots::WaitForHeldAppend() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_ > 0; });
}

void MemorySnapshots::Damage(Seq seq, bool seen) {
  const std::lock_guard lock(mutex_);
  kept_.at(seq).damaged = true;
  kept_.at(seq).seen = seen;
}

void MemorySnapshots::MakeUnreadable(Seq seq, bool unreadable) {
  const std::lock_guard lock(mutex_);
  kept_.at(seq).unreadable = unreadable;
}

std::optional<Error> MemorySnapshots::Kept::Wrong(bool read) const {
  const auto error = [](ErrorCode code, const char* text) { return Error{code, text, "", "", -1}; };
  if (unreadable) return error(ErrorCode::kUnavailable, "Input/output error");
  if (newer) return error(ErrorCode::kFailedPrecondition, "format 2, this build reads 1");
  if (damaged && read) return error(ErrorCode::kDataLoss, "frame 1: checksum 1, expected 2");
  if (damaged && seen) return error(ErrorCode::kDataLoss, "the last frame is missing");
  return std::nullopt;
}

void MemorySnapshots::MakeNewer(Seq seq) {
  const std::lock_guard lock(mutex_);
  kept_.at(seq).newer = true;
}

std::vector<Seq> MemorySnapshots::seqs() const {
  const std::lock_guard lock(mutex_);
  std::vector<Seq> seqs;
  for (const auto& [seq, kept] : kept_) seqs.push_back(seq);
  return seqs;
}

bool MemorySnapshots::AnyDamaged() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(kept_.begin(), kept_.end(), [](const auto& k) { return k.second.damaged; });
}

std::vector<Seq> MemorySnapshots::set_aside() const {
  const std::lock_guard lock(mutex_);
  return set_aside_;
}

}  // namespace conductor::model
