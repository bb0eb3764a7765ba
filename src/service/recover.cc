#include "src/service/recover.h"

#include <optional>
#include <utility>

#include "src/state/image_loader.h"

namespace conductor {
namespace {

constexpr std::size_t kCleanupEntriesPerRecord = 2'048;
constexpr std::uint64_t kBlocksPerReport = 1u << 16;
constexpr Seq kRecordsPerReport = 64;
constexpr std::uint64_t kOperationsPerReport = 1u << 16;

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
  std::optional<Error> unreadable = {};  // the newest that may be whole

  Status Load(const SnapshotInfo& snapshot);
  Status ReadLog();
  Status FindStart();
  // Notes what speaks against it. An error: nothing else may be tried.
  Status Refuse(const SnapshotInfo& snapshot, const Error& why);
};

std::string NameOf(const SnapshotInfo& snapshot) {
  return "snapshot " + std::to_string(snapshot.seq) + " (" + snapshot.path + ")";
}

Status Recovery::Refuse(const SnapshotInfo& snapshot, const Error& why) {
  if (why.code == ErrorCode::kFailedPrecondition) return tl::unexpected(why);
  found.warnings.push_back(NameOf(snapshot) + " cannot be used: " + why.message);
  if (why.code == ErrorCode::kDataLoss) {
    found.damaged.push_back(snapshot.seq);
  } else if (!unreadable) {
    unreadable = why;
  }
  return {};
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
    return Refuse(snapshot, status.error());
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
        const std::string why = "the log ends at record " + std::to_string(last) + " before it";
        CONDUCTOR_RETURN_IF_ERROR(Refuse(snapshot, Error{ErrorCode::kDataLoss, why, "", "", -1}));
      }
      continue;
    }
    if (!snapshot.IsDamaged() && snapshot.seq + 1 < first) {
      if (unreached == nullptr) unreached = &snapshot;
      continue;
    }
    if (!snapshot.IsGood()) {
      const Error why{snapshot.damage_code, snapshot.damage, "", "", -1};
      CONDUCTOR_RETURN_IF_ERROR(Refuse(snapshot, why));
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
  // Whoever can read it again has lost nothing.
  const ErrorCode code = unreadable ? unreadable->code : ErrorCode::kDataLoss;
  return MakeError(
      code, "the log begins at record " + std::to_string(first) +
                " and no snapshot reaches it: restore the data directory from an export" + why);
}

Status Recovery::ReadLog() {
  RecoverProgress progress;
  progress.last = last;
  progress.first = progress.seq = found.seq;
  std::uint64_t reported = 0;
  return log.Read(found.seq + 1, last, [&](Seq seq, const Record& record) -> Status {
    found.state->Apply(record);
    found.state->CleanupSlice(kCleanupEntriesPerRecord);
    found.seq = seq;
    for (const Fact& fact : record.facts) {
      progress.blocks += BlockOperations(fact);
      if (const auto* frame = std::get_if<Frame>(&fact)) found.events += frame->events.size();
    }
    // Records are large or many.
    const bool much = progress.blocks - reported >= kOperationsPerReport;
    if (!options.progress || (seq % kRecordsPerReport != 0 && !much)) return {};
    progress.seq = seq;
    reported = progress.blocks;
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
  Recovery recovery{log, snapshots, options, options.until == 0 ? end : options.until, {}, {}};
  if (recovery.last > end) {
    return MakeError(ErrorCode::kOutOfRange, "record " + std::to_string(recovery.last) +
                                                 ": the log ends at " + std::to_string(end));
  }
  CONDUCTOR_RETURN_IF_ERROR(recovery.FindStart());
  if (recovery.found.seq < recovery.last) CONDUCTOR_RETURN_IF_ERROR(recovery.ReadLog());
  return std::move(recovery.found);
}

}  // namespace conductor
