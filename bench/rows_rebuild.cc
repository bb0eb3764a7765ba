// Rebuild: the state of a log, by DigestOfLog (as `verify` does) and by starting a service. The log
// holds stored blocks, and the removals of half of them. Both digests are compared with that of the
// state that was built while the log was written.
#include <cstdio>

#include "bench/rows.h"
#include "bench/service_rig.h"
#include "bench/state_rig.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kFramesPerRecord = 64;

struct WrittenLog {
  std::unique_ptr<ScratchDirectory> scratch;
  std::size_t events = 0, operations = 0;
  Checksum sum;
  std::string digest;  // of the state that was built beside it
};

std::string SpellDigest(Sum128 digest) {
  char text[33];
  snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(digest >> 64),
           static_cast<unsigned long long>(digest));
  return text;
}

// Stored blocks, and the first half of the prompts removed again.
Result<WrittenLog> WriteLog(const Settings& settings, std::size_t event_blocks,
                            std::size_t blocks) {
  const PromptSource source(settings.seed);
  WrittenLog written;
  CONDUCTOR_ASSIGN_OR_RETURN(written.scratch, ScratchDirectory::Make(settings.directory));
  storage::RocksDbEventLogOptions options;
  options.data_dir = written.scratch->data_dir();
  CONDUCTOR_ASSIGN_OR_RETURN(const auto log, storage::RocksDbEventLog::Open(std::move(options)));
  std::vector<Frame> frames = PrepareFrames(source, blocks, event_blocks);
  written.operations = blocks;
  for (std::uint64_t p = 0; p < blocks / kPromptBlocks / 2; ++p) {
    for (std::size_t begin = kPromptBlocks; begin > 0; begin -= event_blocks) {
      frames.push_back(
          MakeFrame(1, frames.size(), source.RemovedEvent(p, begin - event_blocks, event_blocks)));
      written.operations += event_blocks;
    }
  }
  written.events = frames.size();

  StateMachine state;
  Record record{
      {Registered{MakeBenchRegistration(0, "tcp://10.0.0.1:10000"), UnverifiedBlocks::kContent}}};
  const auto flush = [&]() -> Status {
    CONDUCTOR_RETURN_IF_ERROR(log->Append({&record, 1}, Durability::kBuffered));
    state.Apply(record);
    record.facts.clear();
    return {};
  };
  CONDUCTOR_RETURN_IF_ERROR(flush());
  for (Frame& frame : frames) {
    record.facts.emplace_back(std::move(frame));
    if (record.facts.size() == kFramesPerRecord) CONDUCTOR_RETURN_IF_ERROR(flush());
  }
  if (!record.facts.empty()) CONDUCTOR_RETURN_IF_ERROR(flush());
  CONDUCTOR_RETURN_IF_ERROR(log->Sync());
  AddDigest(written.sum, state.Digest());
  written.digest = SpellDigest(state.Digest());
  return written;
}

struct Rebuilt {
  double digest_ns = 0, digest_processor_ns = 0, start_ns = 0, start_processor_ns = 0;
};

Result<Rebuilt> RebuildOnce(const WrittenLog& written) {
  Rebuilt rebuilt;
  {
    storage::RocksDbEventLogOptions options;
    options.data_dir = written.scratch->data_dir();
    CONDUCTOR_ASSIGN_OR_RETURN(const auto log, storage::RocksDbEventLog::Open(std::move(options)));
    const ProcessorWatch processor;
    const Stopwatch watch;
    CONDUCTOR_ASSIGN_OR_RETURN(const std::string digest,
                               DigestOfLog(*log, log->LastSeq(), [](Seq) {}));
    rebuilt.digest_ns = watch.ElapsedNs();
    rebuilt.digest_processor_ns = processor.ElapsedNs();
    if (digest != written.digest) {
      return Wrong("digest of the log " + digest + ", expected " + written.digest);
    }
  }
  CONDUCTOR_ASSIGN_OR_RETURN(
      const auto rig, ServiceRig::Start(written.scratch->data_dir(), ServiceRig::Streams::kNone));
  rebuilt.start_ns = rig->start_ns();
  rebuilt.start_processor_ns = rig->start_processor_ns();
  CONDUCTOR_ASSIGN_OR_RETURN(const StatusView view, rig->service().GetStatus());
  if (view.digest != written.digest) {
    return Wrong("rebuilt digest " + view.digest + ", expected " + written.digest);
  }
  return rebuilt;
}

Status RebuildRows(const Settings& settings, std::size_t event_blocks, std::size_t blocks,
                   Report& report) {
  const std::string what = std::to_string(event_blocks) + "-block events";
  CONDUCTOR_ASSIGN_OR_RETURN(const WrittenLog written, WriteLog(settings, event_blocks, blocks));
  Row digest{.work = "DigestOfLog, " + what, .unit = "block"};
  Row digest_event{.work = "DigestOfLog, " + what + ", by event", .unit = "event"};
  Row start{.work = "service start to ready, " + what, .unit = "block", .bar = 1e9 / 2e6};
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    CONDUCTOR_ASSIGN_OR_RETURN(const Rebuilt rebuilt, RebuildOnce(written));
    digest.repeats.push_back(Per(rebuilt.digest_ns, written.operations));
    digest.processor.push_back(Per(rebuilt.digest_processor_ns, written.operations));
    digest_event.repeats.push_back(Per(rebuilt.digest_ns, written.events));
    digest_event.processor.push_back(Per(rebuilt.digest_processor_ns, written.events));
    start.repeats.push_back(Per(rebuilt.start_ns, written.operations));
    start.processor.push_back(Per(rebuilt.start_processor_ns, written.operations));
  }
  for (Row* row : {&digest, &digest_event, &start}) {
    row->checksum = written.sum.value();
    report.Add(std::move(*row));
  }
  return {};
}

}  // namespace

Status RunRebuild(const Settings& settings, Report& report) {
  CONDUCTOR_RETURN_IF_ERROR(RebuildRows(settings, 64, settings.log_blocks, report));
  return RebuildRows(settings, 1, settings.log_blocks / 4, report);
}

}  // namespace conductor::bench
