// conductorctl inspect log: records, one line for each fact; once, or for as long as they come.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "cli/cmd_inspect.h"
#include "cli/interrupt.h"
#include "cli/log_source.h"

namespace conductor::cli {

namespace {

// A record has up to limits.group_frames_max frames, a line each.
constexpr std::uint32_t kRecordsPerCall = 64;
constexpr std::uint32_t kRecordsDefault = 100;
constexpr std::uint32_t kFollowTailDefault = 10;
constexpr int kFollowPauseMs = 300;
// One JSON document is put together in memory; `next` says where to go on.
constexpr std::size_t kJsonLinesMax = 200'000;

struct LogFlags {
  Seq from = 0;  // 0: the first one
  Seq to = 0;    // inclusive; 0: not given
  std::uint32_t count = kRecordsDefault;
  std::uint32_t tail = 0;  // 0: not asked for
  StreamId stream = 0;     // 0: all
  bool follow = false, count_given = false;
};

struct Plan {
  Seq from = 0, to = 0;  // to show; from > to: nothing
};

Seq AddCapped(Seq seq, Seq count) {
  return count > ~Seq{0} - seq ? ~Seq{0} : seq + count;
}

Plan MakePlan(const LogFlags& flags, const LogSource::Range& log) {
  const std::uint32_t tail = flags.tail > 0                    ? flags.tail
                             : flags.follow && flags.from == 0 ? kFollowTailDefault
                                                               : 0;
  Plan plan{flags.from == 0 ? log.first : flags.from, 0};
  if (tail > 0 && log.last >= log.first) {
    plan.from = log.last - std::min<Seq>(tail - 1, log.last - log.first);
  }
  plan.to = flags.to > 0 ? flags.to : ~Seq{0};
  // One stream's records lie apart: without a word about how many, the whole rest is looked at.
  const bool all = flags.to > 0 || flags.tail > 0 || flags.follow || flags.stream != 0;
  if (flags.count_given || !all) {
    const Seq end = AddCapped(plan.from, flags.count);
    plan.to = end == 0 ? 0 : std::min(plan.to, end - 1);
  }
  if (!flags.follow) plan.to = std::min(plan.to, log.last);
  return plan;
}

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Hands the records of the plan to `show`, in parts, until it says enough. Returns where to go on.
template <typename Show>
Result<Seq> ForEachPart(LogSource& source, const Plan& plan, const LogFlags& flags,
                        const Show& show) {
  Seq at = plan.from;
  while (at <= plan.to && !InterruptGuard::Interrupted()) {
    const auto count =
        static_cast<std::uint32_t>(std::min<Seq>(kRecordsPerCall - 1, plan.to - at) + 1);
    CONDUCTOR_ASSIGN_OR_RETURN(const Service::LogLines part, source.Read(at, count, flags.stream));
    if (part.next <= at) {  // the end, for now
      if (!flags.follow) break;
      InterruptGuard::Pause(kFollowPauseMs);
      continue;
    }
    const bool enough = !show(at, part);
    at = part.next;
    if (enough) break;
  }
  return at;
}

Result<ExitCode> Follow(Ctl& ctl, LogSource& source, const Plan& plan, const LogFlags& flags) {
  const InterruptGuard guard;
  const auto show = [&](Seq from, const Service::LogLines& part) {
    if (part.lines.empty()) return true;
    ctl.PrintLine({{"from", from}, {"to", part.next - 1}, {"lines", part.lines}}, Join(part.lines));
    return true;
  };
  CONDUCTOR_RETURN_IF_ERROR(ForEachPart(source, plan, flags, show));
  return ExitCode::kOk;
}

Result<ExitCode> RunLog(Ctl& ctl, const LogFlags& flags) {
  if (flags.to > 0 && flags.from > flags.to) {
    return InvalidField("invalid_value", "--to",
                        "--to: expected at least --from (" + std::to_string(flags.from) +
                            "), got " + std::to_string(flags.to));
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const auto source, OpenLogSource(ctl));
  CONDUCTOR_ASSIGN_OR_RETURN(const LogSource::Range log, source->GetRange());
  const Plan plan = MakePlan(flags, log);
  if (flags.follow) return Follow(ctl, *source, plan, flags);

  std::vector<std::string> lines;
  bool shown = false;
  const auto show = [&](Seq from, const Service::LogLines& part) {
    shown = shown || !part.lines.empty();
    if (ctl.json) {
      lines.insert(lines.end(), part.lines.begin(), part.lines.end());
      return lines.size() < kJsonLinesMax;
    }
    ctl.PrintLine({{"from", from}}, Join(part.lines));
    return true;
  };
  CONDUCTOR_ASSIGN_OR_RETURN(const Seq next, ForEachPart(*source, plan, flags, show));
  const bool empty = next == plan.from;
  if (ctl.json) {
    ctl.Print({{"log_first", log.first},
               {"log_last", log.last},
               {"from", empty ? Json(nullptr) : Json(plan.from)},
               {"to", empty ? Json(nullptr) : Json(next - 1)},
               {"next", next},
               {"lines", lines}},
              "");
  } else if (!shown) {
    ctl.Print(nullptr, (flags.stream == 0 || empty
                            ? std::string("no such records")
                            : "no records of stream " + std::to_string(flags.stream) + " among " +
                                  std::to_string(plan.from) + ".." + std::to_string(next - 1)) +
                           ": the log has " + std::to_string(log.first) + ".." +
                           std::to_string(log.last) + "\n");
  }
  return ExitCode::kOk;
}

}  // namespace

void AddInspectLogCommand(CLI::App& inspect, Ctl& ctl) {
  auto flags = std::make_shared<LogFlags>();
  CLI::App* command = inspect.add_subcommand("log", "Records, one line for each fact");
  CLI::Option* from = command->add_option("--from", flags->from, "First position to show");
  command->add_option("--to", flags->to, "Last position to show")->check(CLI::PositiveNumber);
  CLI::Option* count = command->add_option("--count", flags->count, "At most this many records")
                           ->capture_default_str();
  command->add_option("--tail", flags->tail, "The last so many records")
      ->excludes(from)
      ->excludes(count);
  command->add_option("--stream", flags->stream,
                      "Only facts of this stream; 'inspect streams' has the numbers");
  command->add_flag("--follow", flags->follow,
                    "Go on with what comes, until interrupted or at --to; from the last " +
                        std::to_string(kFollowTailDefault) + " records unless told otherwise");
  command->footer(
      "\nA position that was dropped from the log (a snapshot holds what it said) is an error, "
      "exit "
      "code 1.\n"
      "With -o json and --follow, each line is a document: from, to, lines.\n"
      "\nExamples:\n"
      "  conductorctl inspect log --from 1000 --to 1010 --stream 3\n"
      "  conductorctl inspect log --follow\n"
      "  conductorctl --data-dir /var/lib/conductor inspect log --tail 20");
  command->callback([&ctl, flags, count] {
    flags->count_given = count->count() > 0;
    ctl.action = [&ctl, flags] { return RunLog(ctl, *flags); };
  });
}

}  // namespace conductor::cli
