// Snapshots of the whole service. Beside one: how long an event takes from its offer until it is
// visible, the longest of them, and a query, while snapshots are made one after the other and the
// log below them is dropped; the same beside exports, and with neither. Then churn that writes many
// times what is retained: how large the data directory gets, how long the next start takes, and
// whether four times the churn makes it longer.
#include <algorithm>
#include <filesystem>

#include "bench/beside.h"
#include "bench/rows_snapshot.h"
#include "bench/service_rig.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kRetainedPrompts = 256;
constexpr std::size_t kChurnTimes = 24;     // the retained size, so often
constexpr std::size_t kChurnTimesLess = 6;  // what that start is compared with
constexpr double kStartGrowthBar = 1.5;     // of the start, for four times the churn
constexpr std::size_t kSnapshots = 3;       // in a repeat: the second one lets the log go
constexpr std::size_t kQuietFactor = 8;     // samples without a snapshot, by those of `freshness`

// The second snapshot lets the log below the first one go, shortly after it is there.
Status WaitForCut(const ServiceRig& rig) {
  return WaitUntil("the log is cut", Poll::kPause, [&] {
    const auto view = rig.service().GetStatus();
    return view && view->log_first > 1;
  });
}

// kSnapshots, one after the other.
Status MakeSnapshots(ServiceRig& rig) {
  for (std::size_t i = 0; i < kSnapshots; ++i) {
    CONDUCTOR_RETURN_IF_ERROR(rig.service().CreateSnapshot());
  }
  return {};
}

// As many checkpoints, which an export copies: the part of it that the daemon takes part in.
Status MakeCheckpoints(ServiceRig& rig) {
  for (std::size_t i = 0; i < kSnapshots; ++i) {
    CONDUCTOR_ASSIGN_OR_RETURN(const SnapshotInfo info, rig.service().CreateCheckpoint());
    CONDUCTOR_RETURN_IF_ERROR(rig.service().RemoveCheckpoint(info.path));
  }
  return {};
}

Status RunBeside(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  CONDUCTOR_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::Make(settings.directory));
  CONDUCTOR_ASSIGN_OR_RETURN(const auto rig,
                             ServiceRig::Start(scratch->data_dir(), ServiceRig::Streams::kNone));
  CONDUCTOR_RETURN_IF_ERROR(rig->Register(0, "tcp://10.0.0.1:10000"));
  const std::size_t prompts = std::max<std::size_t>(1, settings.blocks / kPromptBlocks);
  std::uint64_t number = 0;
  CONDUCTOR_RETURN_IF_ERROR(rig->Store(source, 1, 0, prompts, number));

  const std::string of = "service, " + SpellCount(settings.blocks) + " blocks, ";
  BesideRows quiet(of + "no snapshot"), snapshots(of + "snapshots"), exports(of + "exports");
  Row ratio{.work = of + "snapshots: p99 of this : none",
            .unit = "query",
            .measure = Measure::kTimes,
            .by_median = true};
  const std::size_t quiet_samples = kQuietFactor * settings.freshness_samples;
  std::size_t events = 0;
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    Beside alone, snapshot, checkpoint;
    CONDUCTOR_RETURN_IF_ERROR(ComeAndGo(
        source, *rig, number,
        [quiet_samples](std::size_t samples) { return samples < quiet_samples; }, alone));
    CONDUCTOR_RETURN_IF_ERROR(ComeAndGoBeside(
        source, *rig, number, [&] { return MakeSnapshots(*rig); }, snapshot));
    CONDUCTOR_RETURN_IF_ERROR(ComeAndGoBeside(
        source, *rig, number, [&] { return MakeCheckpoints(*rig); }, checkpoint));
    quiet.Add(alone);
    snapshots.Add(snapshot);
    exports.Add(checkpoint);
    ratio.repeats.push_back(Quantile(snapshot.query, 0.99) / Quantile(alone.query, 0.99));
    events += snapshot.visible.size();
  }
  CONDUCTOR_RETURN_IF_ERROR(WaitForCut(*rig));
  CONDUCTOR_ASSIGN_OR_RETURN(const StatusView view, rig->service().GetStatus());
  if (view.blocks != prompts * kPromptBlocks) return Wrong("beside a snapshot: blocks missing");
  if (view.snapshots_made < kSnapshots * settings.repeats) return Wrong("a snapshot is missing");
  std::vector<Row*> rows;
  for (BesideRows* beside : {&quiet, &snapshots, &exports}) {
    for (Row* row : beside->rows()) rows.push_back(row);
  }
  rows.push_back(&ratio);
  for (Row* row : rows) {
    row->checksum = MixBits(view.blocks);
    report.Add(std::move(*row));
  }
  report.Note(std::to_string(events) + " events beside " + std::to_string(view.snapshots_made) +
              " snapshots of " + SpellCount(settings.blocks) + " blocks");
  return {};
}

std::uint64_t BytesBelow(const std::string& directory) {
  std::uint64_t bytes = 0;
  std::error_code ignored;  // files come and go
  for (auto it = std::filesystem::recursive_directory_iterator(directory, ignored);
       it != std::filesystem::recursive_directory_iterator(); it.increment(ignored)) {
    const std::uint64_t size = it->is_regular_file(ignored) ? it->file_size(ignored) : 0;
    if (!ignored) bytes += size;
  }
  return bytes;
}

struct Churned {
  std::uint64_t largest = 0;  // bytes of the data directory
  std::string digest;
  std::vector<double> start_ns;  // of the starts after it
};

Status WaitForSnapshots(ServiceRig& rig, std::uint64_t wanted) {
  return WaitUntil("a snapshot is made", Poll::kPause, [&] {
    const auto view = rig.service().GetStatus();
    return view && view->snapshots_made >= wanted;
  });
}

// Writes `times` the retained size.
Status WriteChurn(const PromptSource& source, const ScratchDirectory& scratch, std::size_t times,
                  Churned& churned, Report& report) {
  ServiceRig::Options options;
  options.snapshot_interval_events = kRetainedPrompts * kPromptBlocks / kEventBlocks;
  CONDUCTOR_ASSIGN_OR_RETURN(
      const auto rig, ServiceRig::Start(scratch.data_dir(), ServiceRig::Streams::kNone, options));
  CONDUCTOR_RETURN_IF_ERROR(rig->Register(0, "tcp://10.0.0.1:10000"));
  std::uint64_t number = 0;
  const auto offer = [&](Event event) {
    return rig->Offer(1, MakeFrame(1, number++, std::move(event)));
  };
  for (std::uint64_t p = 0; p < kRetainedPrompts * times; ++p) {
    for (std::size_t at = 0; at < kPromptBlocks; at += kEventBlocks) {
      CONDUCTOR_RETURN_IF_ERROR(offer(source.StoredEvent(p, at, kEventBlocks)));
    }
    for (std::size_t end = p < kRetainedPrompts ? 0 : kPromptBlocks; end > 0; end -= kEventBlocks) {
      CONDUCTOR_RETURN_IF_ERROR(
          offer(source.RemovedEvent(p - kRetainedPrompts, end - kEventBlocks, kEventBlocks)));
    }
    if (p % 64 == 0) churned.largest = std::max(churned.largest, BytesBelow(scratch.data_dir()));
    // A snapshot for every second time the retained size, at least: the disk may be slow.
    if (p % (2 * kRetainedPrompts) != 0) continue;
    CONDUCTOR_RETURN_IF_ERROR(WaitForSnapshots(*rig, p / (2 * kRetainedPrompts)));
  }
  CONDUCTOR_RETURN_IF_ERROR(WaitUntil("everything is applied", Poll::kPause, [&] {
    const auto services = rig->service().ListServices();
    return services && !services->empty() && (*services)[0].last_seq == number - 1;
  }));
  CONDUCTOR_RETURN_IF_ERROR(WaitForCut(*rig));
  CONDUCTOR_ASSIGN_OR_RETURN(const StatusView view, rig->service().GetStatus());
  if (view.snapshots_made + 1 < times / 2) return Wrong("too few snapshots under churn");
  churned.digest = view.digest;
  report.Note(std::to_string(number) + " events, " + std::to_string(view.snapshots_made) +
              " snapshots, log from record " + std::to_string(view.log_first) + " to " +
              std::to_string(view.log_last));
  return {};
}

Result<Churned> Churn(const Settings& settings, std::size_t times, Report& report) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::Make(settings.directory));
  Churned churned;
  CONDUCTOR_RETURN_IF_ERROR(
      WriteChurn(PromptSource(settings.seed), *scratch, times, churned, report));
  churned.largest = std::max(churned.largest, BytesBelow(scratch->data_dir()));
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    CONDUCTOR_ASSIGN_OR_RETURN(const auto again,
                               ServiceRig::Start(scratch->data_dir(), ServiceRig::Streams::kNone));
    churned.start_ns.push_back(again->start_ns());
    CONDUCTOR_ASSIGN_OR_RETURN(const StatusView view, again->service().GetStatus());
    if (view.digest != churned.digest) return Wrong("another digest after the restart");
  }
  return churned;
}

Status ChurnRows(const Settings& settings, Report& report) {
  const std::size_t retained = kRetainedPrompts * kPromptBlocks;
  CONDUCTOR_ASSIGN_OR_RETURN(const Churned less, Churn(settings, kChurnTimesLess, report));
  CONDUCTOR_ASSIGN_OR_RETURN(const Churned more, Churn(settings, kChurnTimes, report));
  Row directory{.work = "data directory at its largest, 24 x the retained size written",
                .unit = "retained block",
                .measure = Measure::kBytes,
                .repeats = {Per(static_cast<double>(more.largest), retained)}};
  Row start{.work = "the start after it", .unit = "retained block"};
  for (const double ns : more.start_ns) start.repeats.push_back(Per(ns, retained));
  Row ratio{.work = "that start : the start after 6 x",
            .unit = "start",
            .measure = Measure::kTimes,
            .repeats = {Quantile(more.start_ns, 0) / Quantile(less.start_ns, 0)},
            .bar = kStartGrowthBar};
  Checksum sum;
  sum.Add(more.digest);
  for (Row* row : {&directory, &start, &ratio}) {
    row->checksum = sum.value();
    report.Add(std::move(*row));
  }
  return {};
}

}  // namespace

Status RunServiceSnapshots(const Settings& settings, Report& report) {
  CONDUCTOR_RETURN_IF_ERROR(RunBeside(settings, report));
  return ChurnRows(settings, report);
}

}  // namespace conductor::bench
