// The daemon's configuration: the JSON file of the contract (docs, API section 1), checked as a
// whole before anything is opened or bound. An unknown key, a wrong type or range, a key of a later
// release: an error that names it. Pure; the environment is settings.h's business.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/limits.h"
#include "src/registration.h"
#include "src/result.h"
#include "src/service/conductor_service.h"

namespace conductor::cli {

inline constexpr std::size_t kConfigBytesMax = 16u << 20;
inline constexpr char kDefaultDataDir[] = "~/.mooncake/conductor";
inline constexpr char kDefaultConfigPath[] = "~/.mooncake/conductor_config.json";

enum class OnLostEvents : std::uint8_t { kKeep, kDrop };

struct Config {
  std::uint16_t http_server_port = 13'333;  // 0: any free port
  std::uint16_t rpc_server_port = 50'052;
  std::string listen_address = "127.0.0.1";
  std::string data_dir = kDefaultDataDir;  // "~" not expanded yet
  UnverifiedBlocks unverified_blocks = UnverifiedBlocks::kContent;
  std::vector<Registration> publishers;  // static ones, in the order of the file
  LogSync log_sync = LogSync::kInterval;
  std::uint32_t log_sync_interval_ms = 100;
  // Automatic snapshots: whichever comes first; 0: not for this reason.
  std::uint64_t snapshot_interval_events = 1'000'000;
  std::uint32_t snapshot_interval_s = 900;
  OnLostEvents on_lost_events = OnLostEvents::kKeep;
  std::uint32_t disconnected_drop_s = 0;  // 0: keep
  Limits limits;
};

// Errors: kInvalidArgument, with the field's path in `field` and at the head of the message.
Result<Config> ParseConfig(const std::string& text);

}  // namespace conductor::cli
