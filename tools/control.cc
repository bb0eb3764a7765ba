#include "tools/control.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "tools/event_json.h"
#include "tools/trace.h"

namespace conductor::enginesim {
namespace {

using Json = nlohmann::ordered_json;

// Where a command acts, and what is left of its line.
struct Target {
  Fleet& fleet;
  std::string_view control_endpoint;
  std::size_t index;
  std::uint32_t rank;

  EngineSim& engine() const { return fleet.engine(index); }
  StoreSim& store() const { return fleet.store(index); }
  Publisher& publisher() const { return fleet.publisher(index, rank); }
};

std::string_view TakeWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(" \t\r\n"));
  text.remove_prefix(word.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return word;
}

tl::unexpected<Error> Bad(const std::string& what) {
  return MakeError(ErrorCode::kInvalidArgument, what);
}

Result<std::uint64_t> ParseNumber(std::string_view text, const std::string& what) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    return Bad(what + ": expected a number from 0, got '" + std::string(text) + "'");
  }
  return number;
}

Json Ok() {
  return {{"ok", true}};
}

Json Optional(const std::optional<std::uint64_t>& value) {
  return value ? Json(*value) : Json();
}

Result<Json> RunPrompt(const Target& target, PromptRequest request) {
  request.dp_rank = target.rank;
  CONDUCTOR_ASSIGN_OR_RETURN(const PromptOutcome outcome, target.engine().Prompt(request));
  Json reply{{"hit_tokens", outcome.hit_tokens},
             {"stored_blocks", outcome.stored_blocks},
             {"removed_blocks", outcome.removed_blocks},
             {"seq", Optional(outcome.seq)}};
  const FleetOptions& options = target.fleet.options();
  if (options.engine.host_blocks > 0) reply["host_hit_tokens"] = outcome.host_hit_tokens;
  if (options.show_removed) {
    reply["removed"] = Json::array();
    for (const Digest& digest : outcome.removed) reply["removed"].push_back(ToHex(digest));
  }
  return reply;
}

Result<Json> DoPrompt(const Target& target, std::string_view arguments) {
  CONDUCTOR_ASSIGN_OR_RETURN(PromptRequest request, ParsePrompt(arguments));
  return RunPrompt(target, std::move(request));
}

Result<Json> DoPromptIds(const Target& target, std::string_view arguments) {
  const std::size_t close = arguments.find(']');
  if (close == std::string_view::npos) return Bad("prompt_ids: expected [IDS] LENGTH");
  std::string_view rest = arguments.substr(close + 1);
  CONDUCTOR_ASSIGN_OR_RETURN(const std::uint64_t length, ParseNumber(TakeWord(rest), "LENGTH"));
  CONDUCTOR_ASSIGN_OR_RETURN(
      const TraceRequest trace,
      ParseTraceLine("{\"timestamp\":0,\"input_length\":" + std::to_string(length) +
                     ",\"hash_ids\":" + std::string(arguments.substr(0, close + 1)) + "}"));
  PromptRequest request;
  request.tokens = ExpandTrace(trace);
  return RunPrompt(target, std::move(request));
}

template <StoreOutcome (StoreSim::*kMethod)(std::span<const Digest>, const std::string&)>
Result<Json> DoBlocks(const Target& target, std::string_view arguments) {
  CONDUCTOR_ASSIGN_OR_RETURN(const BlockList blocks, ParseBlocks(arguments));
  const StoreOutcome outcome = (target.store().*kMethod)(blocks.digests, blocks.medium);
  return Json{{"stored_blocks", outcome.stored_blocks},
              {"removed_blocks", outcome.removed_blocks},
              {"seq", Optional(outcome.seq)}};
}

Result<Json> DoEvents(const Target& target, std::string_view arguments) {
  if (target.fleet.HasStores()) {
    CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<StoreEvent> events, ParseStoreEvents(arguments));
    return Json{{"seq", target.store().PublishEvents(events)}};
  }
  CONDUCTOR_ASSIGN_OR_RETURN(std::vector<EngineEvent> events, ParseEvents(arguments));
  return Json{{"seq", target.engine().PublishEvents(std::move(events), target.rank)}};
}

Result<Json> DoClear(const Target& target, std::string_view) {
  if (target.fleet.HasStores()) {
    CONDUCTOR_ASSIGN_OR_RETURN(const std::uint64_t seq, target.store().Clear());
    return Json{{"seq", seq}};
  }
  return Json{{"seq", target.engine().Clear(target.rank)}};
}

Result<Json> DoRestart(const Target& target, std::string_view) {
  if (target.fleet.HasStores()) {
    target.store().Restart();
  } else {
    target.engine().Restart(target.rank);
  }
  return Ok();
}

Result<Json> DoDown(const Target& target, std::string_view) {
  target.publisher().Down();
  return Ok();
}

Result<Json> DoUp(const Target& target, std::string_view) {
  CONDUCTOR_RETURN_IF_ERROR(target.publisher().Up());
  return Ok();
}

template <void (Publisher::*kMethod)(std::uint64_t)>
Result<Json> DoCount(const Target& target, std::string_view arguments) {
  CONDUCTOR_ASSIGN_OR_RETURN(const std::uint64_t count, ParseNumber(TakeWord(arguments), "N"));
  (target.publisher().*kMethod)(count);
  return Ok();
}

Result<Json> DoReplay(const Target& target, std::string_view arguments) {
  while (!arguments.empty() && arguments.back() <= ' ') arguments.remove_suffix(1);
  CONDUCTOR_ASSIGN_OR_RETURN(const ReplayMode mode, ParseReplayMode(arguments));
  target.publisher().SetReplayMode(mode);
  return Ok();
}

Result<Json> DoRaw(const Target& target, std::string_view arguments) {
  CONDUCTOR_ASSIGN_OR_RETURN(std::string payload, ParseHex(TakeWord(arguments)));
  return Json{{"seq", target.publisher().Publish(std::move(payload))}};
}

Result<Json> DoFrames(const Target& target, std::string_view arguments) {
  Message frames;
  while (!arguments.empty()) {
    const std::string_view word = TakeWord(arguments);
    CONDUCTOR_ASSIGN_OR_RETURN(std::string frame, ParseHex(word == "-" ? "" : word));
    frames.push_back(std::move(frame));
  }
  if (frames.empty() || frames.size() > kMessagePartsMax) {
    return Bad("frames: expected 1 to " + std::to_string(kMessagePartsMax) + " frames");
  }
  target.publisher().PublishFrames(std::move(frames));
  return Ok();
}

Result<Json> DoWaitSubscribers(const Target& target, std::string_view arguments) {
  CONDUCTOR_ASSIGN_OR_RETURN(const std::uint64_t count, ParseNumber(TakeWord(arguments), "N"));
  CONDUCTOR_ASSIGN_OR_RETURN(const std::uint64_t wait_ms, ParseNumber(TakeWord(arguments), "MS"));
  const bool there = target.publisher().WaitUntil(
      [count](const PublisherStats& stats) { return stats.subscriptions >= count; },
      std::chrono::milliseconds(std::min(wait_ms, kWaitMsMax)));
  return Json{{"ok", there}, {"subscriptions", target.publisher().stats().subscriptions}};
}

Result<Json> DoFlush(const Target& target, std::string_view) {
  target.publisher().Flush();
  return Ok();
}

Result<Json> DoStats(const Target& target, std::string_view) {
  target.publisher().Flush();  // what was handed over before is counted
  const PublisherStats stats = target.publisher().stats();
  const std::size_t cached = target.fleet.HasStores() ? target.store().CachedBlocks()
                                                      : target.engine().CachedBlocks(target.rank);
  return Json{{"life", stats.life},
              {"next_seq", stats.next_seq},
              {"sent", stats.sent},
              {"dropped", stats.dropped},
              {"lost", stats.lost},
              {"cached_blocks", cached},
              {"replay_requests", stats.replay_requests},
              {"replay_refused", stats.replay_refused},
              {"replay_starts", stats.replay_starts},
              {"ring_batches", stats.ring_batches},
              {"ring_first", Optional(stats.ring_first)},
              {"ring_last", Optional(stats.ring_last)},
              {"subscriptions", stats.subscriptions},
              {"up", stats.up}};
}

Result<Json> DoEndpoints(const Target& target, std::string_view) {
  return Json::parse(target.fleet.Describe(std::string(target.control_endpoint)), nullptr, false);
}

enum class Of : std::uint8_t { kBoth, kEngine, kStore };

struct Command {
  std::string_view word;
  Result<Json> (*run)(const Target& target, std::string_view arguments);
  Of of = Of::kBoth;
};

constexpr std::array<Command, 18> kCommands{{
    {"prompt", DoPrompt, Of::kEngine},
    {"prompt_ids", DoPromptIds, Of::kEngine},
    {"put", DoBlocks<&StoreSim::Put>, Of::kStore},
    {"remove", DoBlocks<&StoreSim::Remove>, Of::kStore},
    {"events", DoEvents},
    {"clear", DoClear},
    {"restart", DoRestart},
    {"down", DoDown},
    {"up", DoUp},
    {"drop", DoCount<&Publisher::DropNext>},
    {"lose", DoCount<&Publisher::LoseNext>},
    {"skip", DoCount<&Publisher::SkipNumbers>},
    {"replay", DoReplay, Of::kEngine},
    {"raw", DoRaw},
    {"frames", DoFrames},
    {"wait_subscribers", DoWaitSubscribers},
    {"flush", DoFlush},
    {"stats", DoStats},
}};

Result<Target> FindTarget(Fleet& fleet, std::string_view control_endpoint, std::string_view word) {
  const std::size_t dot = word.find('.');
  CONDUCTOR_ASSIGN_OR_RETURN(const std::uint64_t engine,
                             ParseNumber(word.substr(0, dot), "ENGINE"));
  std::uint64_t rank = 0;
  if (dot != std::string_view::npos) {
    CONDUCTOR_ASSIGN_OR_RETURN(rank, ParseNumber(word.substr(dot + 1), "RANK"));
  }
  if (engine >= fleet.size()) {
    return Bad("ENGINE: expected below " + std::to_string(fleet.size()) + ", got " +
               std::to_string(engine));
  }
  const std::uint32_t ranks = fleet.ranks();
  if (rank >= ranks) {
    return Bad("RANK: expected below " + std::to_string(ranks) + ", got " + std::to_string(rank));
  }
  return Target{fleet, control_endpoint, static_cast<std::size_t>(engine),
                static_cast<std::uint32_t>(rank)};
}

Result<Json> Execute(Fleet& fleet, std::string_view control_endpoint, std::string_view line) {
  std::string_view word = TakeWord(line);
  std::string_view target_word = "0";
  if (!word.empty() && word[0] >= '0' && word[0] <= '9') {
    target_word = word;
    word = TakeWord(line);
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const Target target, FindTarget(fleet, control_endpoint, target_word));
  if (word == "endpoints") return DoEndpoints(target, line);
  const auto* const command = std::find_if(
      kCommands.begin(), kCommands.end(), [&](const Command& entry) { return entry.word == word; });
  if (command == kCommands.end()) {
    std::string known;
    for (const Command& entry : kCommands) known += std::string(entry.word) + ", ";
    return Bad("command: expected one of " + known + "endpoints, quit, got '" + std::string(word) +
               "'");
  }
  if (command->of == (fleet.HasStores() ? Of::kEngine : Of::kStore)) {
    return Bad(std::string(word) + (fleet.HasStores() ? ": a store does not know this command"
                                                      : ": only a store knows this command"));
  }
  return command->run(target, line);
}

}  // namespace

ControlReply ExecuteControlLine(Fleet& fleet, const std::string& control_endpoint,
                                std::string_view line) {
  Result<Json> reply;
  std::string_view words = line;
  const bool quit = TakeWord(words) == "quit";
  if (quit) {
    reply = Ok();
  } else if (line.size() > kControlLineBytesMax) {
    reply = Bad("line: longer than " + std::to_string(kControlLineBytesMax) + " bytes");
  } else {
    reply = Execute(fleet, control_endpoint, line);
  }
  const Json json = reply ? *reply : Json{{"error", reply.error().message}};
  // A wrong command may quote bytes that are no UTF-8.
  return {json.dump(-1, ' ', false, Json::error_handler_t::replace), quit};
}

}  // namespace conductor::enginesim
