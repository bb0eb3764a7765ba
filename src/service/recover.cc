#include "src/service/recover.h"

#include <optional>
#include <utility>

#include "src/state/image_loader.h"

namespace conductor {
namespace {

constexpr std::size_t kCleanupEntriesPerRecord = 2'048;
constexpr std::uint64_t kBlocksPerReport = 1u << 16;
constexpr Seq kRecordsPerReport = 64;

// Passes pieces on to a loader, and says how far it is.
class ReportingLoader final : public ImageVisitor {
 public:
  ReportingLoader(const RecoverOptions& options, RecoverProgress progress)
      : options_(options), progress_(std::move(progress)) {}

  Status OnStart(const ImageStart& piece) override { return loader_.OnStart(piece); }
  Status OnContext(const ImageContext& piece) override { return loader_.OnContext(piece); }
  Status OnPool(const ImagePool& piece) override { return loader_.OnPool(piece); }
  Status OnRegistration(const ImageRegistration& piece) override {
    return loader_.OnRegistration(piece);
  }
  Status OnHolder(const ImageHolder& piece) override { return loader_.OnHolder(piece); }
  Status OnSet(const ImageSet& piece) override { return loader_.OnSet(piece); }
  Status OnRun(const ImageRun& piece) override { return Reported(loader_.OnRun(piece)); }
  Status OnEntry(const ImageEntry& piece) override { return Reported(loader_.OnEntry(piece)); }
  Status OnCopies(const ImageCopies& piece) override { return loader_.OnCopies(piece); }
  Status OnParts(const ImageParts& piece) override { return Reported(loader_.OnParts(piece)); }
  Status OnStream(const StreamFacts& piece) override { return loader_.OnStream(piece); }
  Status OnEnd(const ImageEnd& piece) override { return loader_.OnEnd(piece); }

  std::unique_ptr<StateMachine> Take() { return loader_.Take(); }
  const std::optional<Error>& stopped() const { return stopped_; }

 private:
  Status Reported(Status status) {
    if (!status || !options_.progress || loader_.blocks() < progress_.blocks + kBlocksPerReport) {
      return status;
    }
    progress_.blocks = loader_.blocks();
    status = options_.progress(progress_);
    if (!status) stopped_ = status.error();
    return status;
  }

  const RecoverOptions& options_;
  RecoverProgress progress_;
  ImageLoader loader_;
  std::optional<Error> stopped_;  // by whoever watches the progress: no fault of the image
};

struct Recovery {
  const EventLog& log;
  const SnapshotStore& snapshots;
  const RecoverOptions& options;
  Seq last = 0;
  RecoveredState found;

  Status Load(const SnapshotInfo& snapshot);
  Status ReadLog();
  Status FindStart();
  void Refuse(const SnapshotInfo& snapshot, const std::string& why);
};

std::string NameOf(const SnapshotInfo& snapshot) {
  return "snapshot " + std::to_string(snapshot.seq) + " (" + snapshot.path + ")";
}

void Recovery::Refuse(const SnapshotInfo& snapshot, const std::string& why) {
  found.warnings.push_back(NameOf(snapshot) + " cannot be used: " + why);
  found.damaged.push_back(snapshot.seq);
}

Status Recovery::Load(const SnapshotInfo& snapshot) {
  RecoverProgress progress;
  progress.loading_snapshot = true;
  progress.first = progress.seq = snapshot.seq;
  progress.last = last;
  progress.blocks_total = snapshot.blocks;
  ReportingLoader loader(options, progress);
  if (auto status = snapshots.ReadSnapshot(snapshot.seq, loader); !status) {
    if (loader.stopped()) return tl::unexpected(*loader.stopped());
    if (status.error().code != ErrorCode::kDataLoss) return status;
    Refuse(snapshot, status.error().message);
    return {};
  }
  found.state = loader.Take();
  found.seq = found.snapshot_seq = snapshot.seq;
  return {};
}

// The newest snapshot that is whole and reaches the log, or the start of the log.
Status Recovery::FindStart() {
  const Seq first = log.FirstSeq();
  CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> list, snapshots.ListSnapshots());
  const SnapshotInfo* unreached = nullptr;
  for (const SnapshotInfo& snapshot : list) {
    if (snapshot.seq > last) {
      // Of a log that had more, or (verify) of a later moment than is asked for.
      if (options.until == 0) {
        Refuse(snapshot, "the log ends at record " + std::to_string(last) + " before it");
      }
      continue;
    }
    if (!snapshot.damage.empty()) {
      Refuse(snapshot, snapshot.damage);
      continue;
    }
    if (snapshot.seq + 1 < first) {
      if (unreached == nullptr) unreached = &snapshot;
      continue;
    }
    CONDUCTOR_RETURN_IF_ERROR(Load(snapshot));
    if (found.state != nullptr) return {};
  }
  if (first == 1) {
    found.state = std::make_unique<StateMachine>();
    return {};
  }
  std::string why;
  for (const std::string& warning : found.warnings) why += "; " + warning;
  if (unreached != nullptr) {
    why += "; " + NameOf(*unreached) + " ends before the log begins: records " +
           std::to_string(unreached->seq + 1) + " to " + std::to_string(first - 1) + " are missing";
  }
  return MakeError(ErrorCode::kDataLoss,
                   "the log begins at record " + std::to_string(first) +
                       " and no snapshot reaches it: restore the data directory from an export" +
                       why);
}

Status Recovery::ReadLog() {
  RecoverProgress progress;
  progress.last = last;
  progress.first = progress.seq = found.seq;
  return log.Read(found.seq + 1, last, [&](Seq seq, const Record& record) -> Status {
    found.state->Apply(record);
    found.state->CleanupSlice(kCleanupEntriesPerRecord);
    found.seq = seq;
    for (const Fact& fact : record.facts) progress.blocks += BlockOperations(fact);
    if (!options.progress || seq % kRecordsPerReport != 0) return {};
    progress.seq = seq;
    return options.progress(progress);
  });
}

}  // namespace

std::uint64_t BlockOperations(const Fact& fact) {
  const auto* frame = std::get_if<Frame>(&fact);
  if (frame == nullptr) return 0;
  std::uint64_t operations = 0;
  for (const Event& event : frame->events) {
    if (const auto* stored = std::get_if<Stored>(&event)) operations += stored->blocks.size();
    if (const auto* removed = std::get_if<Removed>(&event)) operations += removed->names.size();
    if (std::holds_alternative<PoolStored>(event)) ++operations;
    if (std::holds_alternative<PoolRemoved>(event)) ++operations;
  }
  return operations;
}

Result<RecoveredState> RecoverState(const EventLog& log, const SnapshotStore& snapshots,
                                    const RecoverOptions& options) {
  const Seq end = log.LastSeq();
  Recovery recovery{log, snapshots, options, options.until == 0 ? end : options.until, {}};
  if (recovery.last > end) {
    return MakeError(ErrorCode::kOutOfRange, "record " + std::to_string(recovery.last) +
                                                 ": the log ends at " + std::to_string(end));
  }
  CONDUCTOR_RETURN_IF_ERROR(recovery.FindStart());
  if (recovery.found.seq < recovery.last) CONDUCTOR_RETURN_IF_ERROR(recovery.ReadLog());
  return std::move(recovery.found);
}

}  // namespace conductor
