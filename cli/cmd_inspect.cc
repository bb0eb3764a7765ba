// conductorctl inspect log|streams|contexts|block: the log and the state, from the daemon or, with
// --data-dir, from the directory itself (also while a daemon runs).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "cli/ctl.h"
#include "cli/offline_state.h"
#include "cli/tokens.h"
#include "cli/views.h"
#include "src/service/conductor_service.h"
#include "src/service/state_views.h"

namespace conductor::cli {

namespace {

constexpr std::uint32_t kRecordsPerCall = 1'000;
constexpr std::uint32_t kRecordsDefault = 100;

struct LogFlags {
  Seq from = 0;  // 0: the first one
  std::uint32_t count = kRecordsDefault;
  std::uint32_t tail = 0;  // 0: not asked for
};

struct LogRange {
  Seq first = 0, last = 0;  // of the log
  Seq from = 0, to = 0;     // to show; from > to: nothing
};

LogRange MakeRange(const LogFlags& flags, Seq first, Seq last) {
  LogRange range{first, last, std::max(flags.from, first), 0};
  const std::uint64_t count = flags.tail > 0 ? flags.tail : flags.count;
  if (flags.tail > 0 && last >= first) range.from = last - std::min(count - 1, last - first);
  range.to = count == 0 ? 0 : std::min(last, range.from + (count - 1));
  return range;
}

Result<std::vector<std::string>> LiveLines(rpc::RpcClient& client, const LogRange& range) {
  std::vector<std::string> lines;
  for (Seq at = range.from; at <= range.to; at += kRecordsPerCall) {
    const auto count =
        static_cast<std::uint32_t>(std::min<Seq>(kRecordsPerCall, range.to - at + 1));
    CONDUCTOR_ASSIGN_OR_RETURN(std::vector<std::string> more, client.InspectLog(at, count));
    std::move(more.begin(), more.end(), std::back_inserter(lines));
  }
  return lines;
}

Result<std::vector<std::string>> OfflineLines(const EventLog& log, const LogRange& range) {
  std::vector<std::string> lines;
  if (range.from > range.to) return lines;
  CONDUCTOR_RETURN_IF_ERROR(
      log.Read(range.from, range.to, [&](Seq seq, const Record& record) -> Status {
        for (std::string& line : RenderRecord(seq, record)) lines.push_back(std::move(line));
        return {};
      }));
  return lines;
}

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Result<ExitCode> RunLog(Ctl& ctl, const LogFlags& flags) {
  LogRange range;
  std::vector<std::string> lines;
  if (ctl.offline()) {
    CONDUCTOR_ASSIGN_OR_RETURN(const auto log, Ctl::OpenLog(ctl.data_dir));
    range = MakeRange(flags, log->FirstSeq(), log->LastSeq());
    CONDUCTOR_ASSIGN_OR_RETURN(lines, OfflineLines(*log, range));
  } else {
    CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client());
    CONDUCTOR_ASSIGN_OR_RETURN(const StatusView status, client->GetStatus());
    range = MakeRange(flags, status.log_first, status.log_last);
    CONDUCTOR_ASSIGN_OR_RETURN(lines, LiveLines(*client, range));
  }
  const bool empty = range.from > range.to;
  ctl.Print({{"log_first", range.first},
             {"log_last", range.last},
             {"from", empty ? Json(nullptr) : Json(range.from)},
             {"to", empty ? Json(nullptr) : Json(range.to)},
             {"lines", lines}},
            lines.empty() ? "no such records: the log has " + std::to_string(range.first) + ".." +
                                std::to_string(range.last) + "\n"
                          : Join(lines));
  return ExitCode::kOk;
}

Result<std::unique_ptr<StateMachine>> StateOf(const Ctl& ctl) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto log, Ctl::OpenLog(ctl.data_dir));
  return ReadState(*log);
}

Result<ExitCode> RunStreams(Ctl& ctl) {
  std::vector<ServiceView> services;
  if (ctl.offline()) {
    CONDUCTOR_ASSIGN_OR_RETURN(const auto state, StateOf(ctl));
    services = ServicesOf(*state);
  } else {
    CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client());
    CONDUCTOR_ASSIGN_OR_RETURN(services, client->ListServices());
  }
  ctl.Print(ToJson(services), ToStreamTable(services));
  return ExitCode::kOk;
}

Result<ExitCode> RunContexts(Ctl& ctl) {
  std::vector<ContextView> contexts;
  if (ctl.offline()) {
    CONDUCTOR_ASSIGN_OR_RETURN(const auto state, StateOf(ctl));
    contexts = ContextsOf(*state);
  } else {
    CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client());
    CONDUCTOR_ASSIGN_OR_RETURN(contexts, client->GetGlobalView());
  }
  ctl.Print(ToJson(contexts), ToTable(contexts));
  return ExitCode::kOk;
}

Result<ExitCode> RunBlock(Ctl& ctl, const std::string& text) {
  CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> hashes, ParseHashes(text));
  if (hashes.size() != 1) {
    return InvalidField("invalid_value", "HASH",
                        "HASH: expected one block hash, got " + std::to_string(hashes.size()));
  }
  std::vector<std::string> lines;
  if (ctl.offline()) {
    CONDUCTOR_ASSIGN_OR_RETURN(const auto state, StateOf(ctl));
    lines = HoldersOfBlock(*state, hashes[0]);
  } else {
    CONDUCTOR_ASSIGN_OR_RETURN(rpc::RpcClient * client, ctl.Client());
    CONDUCTOR_ASSIGN_OR_RETURN(lines, client->InspectBlock(hashes[0]));
  }
  ctl.Print({{"hash", hashes[0]}, {"holders", lines}},
            lines.empty() ? "nobody holds block " + std::to_string(hashes[0]) + "\n" : Join(lines));
  return lines.empty() ? ExitCode::kNo : ExitCode::kOk;
}

void AddLog(CLI::App* inspect, Ctl& ctl) {
  auto flags = std::make_shared<LogFlags>();
  CLI::App* command = inspect->add_subcommand("log", "Records, one line for each fact");
  CLI::Option* from = command->add_option("--from", flags->from, "First position to show");
  CLI::Option* count = command->add_option("--count", flags->count, "At most this many records")
                           ->capture_default_str();
  command->add_option("--tail", flags->tail, "The last so many records")
      ->excludes(from)
      ->excludes(count);
  command->footer("\nExample:\n  conductorctl --data-dir /var/lib/conductor inspect log --tail 20");
  command->callback([&ctl, flags] { ctl.action = [&ctl, flags] { return RunLog(ctl, *flags); }; });
}

}  // namespace

void AddInspectCommand(CLI::App& app, Ctl& ctl) {
  CLI::App* inspect = app.add_subcommand("inspect", "The log and the state, live or offline");
  inspect->require_subcommand(1);
  inspect->footer(
      "\nExamples:\n"
      "  conductorctl inspect log --from 1 --count 10\n"
      "  conductorctl --data-dir /var/lib/conductor inspect streams\n"
      "  conductorctl inspect block 13480391264103518091");
  AddLog(inspect, ctl);
  CLI::App* streams = inspect->add_subcommand("streams", "What the log says of each stream");
  streams->footer("\nExample:\n  conductorctl inspect streams");
  streams->callback([&ctl] { ctl.action = [&ctl] { return RunStreams(ctl); }; });
  CLI::App* contexts = inspect->add_subcommand("contexts", "The contexts of the index");
  contexts->footer("\nExample:\n  conductorctl --data-dir /var/lib/conductor inspect contexts");
  contexts->callback([&ctl] { ctl.action = [&ctl] { return RunContexts(ctl); }; });
  auto hash = std::make_shared<std::string>();
  CLI::App* block = inspect->add_subcommand("block", "Who holds a block, by its 64-bit hash");
  block->add_option("HASH", *hash, "Decimal, negative or 0x...")->required();
  block->footer(
      "\nExit code 1 when nobody holds it.\n"
      "\nExample:\n  conductorctl inspect block 0xbb14a1f4bdc4a40b");
  block->callback([&ctl, hash] { ctl.action = [&ctl, hash] { return RunBlock(ctl, *hash); }; });
}

}  // namespace conductor::cli
