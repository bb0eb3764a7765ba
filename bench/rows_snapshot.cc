// Snapshots. First the parts alone: an image cut and encoded (what the apply thread pays), written
// and read back (what the snapshot thread pays), loaded (what a start pays); then Apply with an
// image being taken beside it, as the service interleaves them. The whole service comes after them
// (rows_snapshot_service.cc). Every image that is loaded has the digest of the state it was taken
// from.
#include <algorithm>

#include "bench/rows.h"
#include "bench/rows_snapshot.h"
#include "bench/service_rig.h"
#include "bench/state_rig.h"
#include "src/state/image_cut.h"
#include "src/state/image_loader.h"
#include "storage/snapshot_encoder.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kInstances = 8;
constexpr std::size_t kManyInstances = 10'000;   // a block each, and one that all of them have
constexpr std::size_t kBlocksPerSlice = 16'384;  // as the service takes them

Result<std::unique_ptr<storage::RocksDbEventLog>> OpenLog(const std::string& data_dir) {
  storage::RocksDbEventLogOptions options;
  options.data_dir = data_dir;
  CONDUCTOR_ASSIGN_OR_RETURN(auto log, storage::RocksDbEventLog::Open(std::move(options)));
  // A snapshot counts only when the log is on disk up to its position.
  const Record record{
      {Registered{MakeBenchRegistration(0, "tcp://10.0.0.1:10000"), UnverifiedBlocks::kContent}}};
  CONDUCTOR_RETURN_IF_ERROR(log->Append({&record, 1}, Durability::kSynced));
  return log;
}

void Fill(StateRig& rig, const PromptSource& source, std::size_t blocks) {
  for (std::uint64_t p = 0; p * kPromptBlocks < blocks; ++p) {
    rig.StorePrompt(source, p % kInstances, p, kPromptBlocks);
  }
}

struct Parts {
  Row begin{.work = "image begun", .unit = "image", .bar = 2e6};
  Row encode{.work = "image cut and encoded", .unit = "block"};
  Row slice{
      .work = "longest slice of 16,384 blocks", .unit = "slice", .bar = 2e6, .by_median = true};
  Row write{.work = "snapshot written, synced and read back", .unit = "block"};
  Row load{.unit = "block", .bar = 1e9 / 5e6};
  Row size{.work = "snapshot file", .unit = "block", .measure = Measure::kBytes};
};

Status MeasureParts(StateRig& rig, storage::RocksDbEventLog& log, Parts& parts) {
  const std::size_t blocks = rig.index().blocks();
  const Sum128 digest = rig.state().Digest();
  std::vector<std::string> frames;
  const auto encoder = log.NewEncoder();
  const Stopwatch begin;
  ImageCut cut(rig.state(), 1, *encoder);
  parts.begin.repeats.push_back(begin.ElapsedNs());
  double longest = 0;
  const ProcessorWatch processor;
  const Stopwatch encode;
  for (bool complete = false; !complete;) {
    const Stopwatch slice;
    complete = cut.Step(kBlocksPerSlice);
    frames.push_back(encoder->Take());
    longest = std::max(longest, slice.ElapsedNs());
  }
  parts.encode.repeats.push_back(Per(encode.ElapsedNs(), blocks));
  parts.encode.processor.push_back(Per(processor.ElapsedNs(), blocks));
  parts.slice.repeats.push_back(longest);
  CONDUCTOR_RETURN_IF_ERROR(cut.status());

  const Stopwatch write;
  CONDUCTOR_ASSIGN_OR_RETURN(const auto file, log.CreateImage(1));
  for (const std::string& frame : frames) CONDUCTOR_RETURN_IF_ERROR(file->Append(frame));
  CONDUCTOR_ASSIGN_OR_RETURN(const SnapshotInfo info, file->Finish());
  parts.write.repeats.push_back(Per(write.ElapsedNs(), blocks));
  parts.size.repeats.push_back(Per(static_cast<double>(info.bytes), blocks));

  const ProcessorWatch load_processor;
  const Stopwatch load;
  ImageLoader loader;
  CONDUCTOR_RETURN_IF_ERROR(log.ReadSnapshot(1, loader));
  parts.load.repeats.push_back(Per(load.ElapsedNs(), blocks));
  parts.load.processor.push_back(Per(load_processor.ElapsedNs(), blocks));
  if (loader.Take()->Digest() != digest) return Wrong("a loaded image has another digest");
  return {};
}

Status PartsRows(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  CONDUCTOR_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::Make(settings.directory));
  CONDUCTOR_ASSIGN_OR_RETURN(const auto log, OpenLog(scratch->data_dir()));
  StateRig rig(kInstances);
  Fill(rig, source, settings.blocks);
  Parts parts;
  parts.load.work = "snapshot of " + SpellCount(settings.blocks) + " blocks loaded, sums checked";
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    CONDUCTOR_RETURN_IF_ERROR(MeasureParts(rig, *log, parts));
  }
  Checksum sum;
  AddDigest(sum, rig.state().Digest());
  for (Row* row :
       {&parts.begin, &parts.encode, &parts.slice, &parts.write, &parts.load, &parts.size}) {
    row->checksum = sum.value();
    report.Add(std::move(*row));
  }
  return {};
}

Status ManyRows(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  StateRig rig(std::min(kManyInstances, settings.blocks));
  for (std::size_t instance = 0; instance < rig.instances(); ++instance) {
    rig.StorePrompt(source, instance, 0, 1);
    rig.StorePrompt(source, instance, 1 + instance, 1);
  }
  const std::string of = std::to_string(rig.instances()) + " instances: ";
  Row begin{.work = of + "image begun", .unit = "image", .bar = 2e6};
  Row slice{.work = of + "longest slice", .unit = "slice", .bar = 2e6, .by_median = true};
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    storage::SnapshotEncoder encoder;
    const Stopwatch began;
    ImageCut cut(rig.state(), 1, encoder);
    begin.repeats.push_back(began.ElapsedNs());
    double longest = 0;
    for (bool complete = false; !complete;) {
      const Stopwatch one;
      complete = cut.Step(kBlocksPerSlice);
      encoder.Take();
      longest = std::max(longest, one.ElapsedNs());
    }
    CONDUCTOR_RETURN_IF_ERROR(cut.status());
    slice.repeats.push_back(longest);
  }
  Checksum sum;
  AddDigest(sum, rig.state().Digest());
  for (Row* row : {&begin, &slice}) {
    row->checksum = sum.value();
    report.Add(std::move(*row));
  }
  return {};
}

// New prompts that each push the oldest out, a slice of an image after each record, as the service
// does while it is busy; the same without.
struct Beside {
  double ns = 0;       // of one block operation
  double longest = 0;  // one record, and its slice
  std::size_t images = 0;
};

Result<Beside> ApplyBeside(StateRig& rig, const std::vector<Record>& records,
                           std::size_t operations, storage::RocksDbEventLog* log) {
  Beside result;
  std::unique_ptr<ImageEncoder> encoder;
  std::unique_ptr<ImageCut> cut;
  const Stopwatch watch;
  for (const Record& record : records) {
    const Stopwatch one;
    rig.Apply(record);
    if (log != nullptr && cut == nullptr) {
      encoder = log->NewEncoder();
      cut = std::make_unique<ImageCut>(rig.state(), 1, *encoder);
    } else if (log != nullptr && cut->Step(kBlocksPerSlice)) {
      CONDUCTOR_RETURN_IF_ERROR(cut->status());
      cut.reset();
      ++result.images;
    }
    if (encoder != nullptr) encoder->Take();
    result.longest = std::max(result.longest, one.ElapsedNs());
  }
  result.ns = Per(watch.ElapsedNs(), operations);
  return result;
}

Status BesideRows(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  CONDUCTOR_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::Make(settings.directory));
  CONDUCTOR_ASSIGN_OR_RETURN(const auto log, OpenLog(scratch->data_dir()));
  StateRig rig(kInstances);
  Fill(rig, source, settings.blocks);
  std::uint64_t next = settings.blocks / kPromptBlocks, oldest = 0;
  Row alone{.work = "blocks come and go, no image", .unit = "operation"};
  Row beside{.work = "the same while images are taken", .unit = "operation"};
  Row longest{
      .work = "longest record and slice of that", .unit = "pause", .bar = 2e6, .by_median = true};
  std::size_t images = 0;
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    for (const bool taking : {false, true}) {
      std::vector<Record> records;
      const std::size_t prompts = settings.blocks / kPromptBlocks / 4;
      for (std::size_t p = 0; p < prompts; ++p, ++next, ++oldest) {
        for (std::size_t at = 0; at < kPromptBlocks; at += kEventBlocks) {
          records.push_back(
              rig.Prepare(next % kInstances, source.StoredEvent(next, at, kEventBlocks)));
        }
        for (std::size_t end = kPromptBlocks; end > 0; end -= kEventBlocks) {
          records.push_back(rig.Prepare(
              oldest % kInstances, source.RemovedEvent(oldest, end - kEventBlocks, kEventBlocks)));
        }
      }
      CONDUCTOR_ASSIGN_OR_RETURN(
          const Beside one,
          ApplyBeside(rig, records, prompts * kPromptBlocks * 2, taking ? log.get() : nullptr));
      (taking ? beside : alone).repeats.push_back(one.ns);
      if (taking) longest.repeats.push_back(one.longest);
      images += one.images;
    }
  }
  if (images < settings.repeats) return Wrong("no image was finished beside the records");
  Checksum sum;
  AddDigest(sum, rig.state().Digest());
  for (Row* row : {&alone, &beside, &longest}) {
    row->checksum = sum.value();
    report.Add(std::move(*row));
  }
  report.Note(std::to_string(images) + " images were taken beside the records");
  return {};
}

}  // namespace

Status RunSnapshot(const Settings& settings, Report& report) {
  CONDUCTOR_RETURN_IF_ERROR(PartsRows(settings, report));
  CONDUCTOR_RETURN_IF_ERROR(ManyRows(settings, report));
  CONDUCTOR_RETURN_IF_ERROR(BesideRows(settings, report));
  return RunServiceSnapshots(settings, report);
}

}  // namespace conductor::bench
