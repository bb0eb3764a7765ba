#include "cli/settings.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/text.h"
#include "conductor_version.h"

namespace conductor::cli {

namespace {

constexpr char kDescription[] =
    "Conductor: indexes which engine holds which KV-cache prefix, from the engines' own events.";

constexpr char kFooter[] = R"(
Environment:
  CONDUCTOR_CONFIG_PATH   the configuration file, when --config is not given
  CONDUCTOR_DATA_DIR      the data directory, when --data-dir is not given
  CONDUCTOR_LOG_LEVEL     DEBUG, INFO, WARN or ERROR (default INFO)

Configuration (JSON; a missing default file means the defaults):
  http_server_port 13333, rpc_server_port 50052 (0 = any free port; the chosen ones are logged and
  written to DATA_DIR/ports.json), listen_address 127.0.0.1, data_dir ~/.mooncake/conductor,
  kvevent_instance {}, unverified_blocks content|name_only, log_sync always|interval|never,
  log_sync_interval_ms 100, on_lost_events keep|drop, disconnected_drop_s 0, limits {...},
  snapshot_interval_events 1000000 and snapshot_interval_s 900: a snapshot of the index after so
  many events or seconds, whichever comes first (0 = not for this reason; docs/snapshots.md).
  limits.max_blocks 200000000 and limits.max_bytes 0 cap the index (0 = no cap): above a cap, leaf
  blocks of the largest holders are given up and counted (docs/limits.md).

Examples:
  mooncake_conductor
  mooncake_conductor --config conductor.json --data-dir /var/lib/conductor
  CONDUCTOR_CONFIG_PATH=conductor.json CONDUCTOR_LOG_LEVEL=DEBUG mooncake_conductor
  mooncake_conductor --config conductor.json --check-config

Exit codes: 0 stopped in good order, 1 not now (full or failing disk; start it again),
2 configuration, port or directory, 4 damaged data.)";

struct Flags {
  std::string config, data_dir, log_level;
  bool check_only = false;
};

// Set to nothing is not set.
std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The default file may be missing; one that was named may not.
Result<Config> LoadConfig(const Flags& flags, std::string* path) {
  *path = flags.config.empty() ? Environment("CONDUCTOR_CONFIG_PATH") : flags.config;
  const bool named = !path->empty();
  if (!named) *path = kDefaultConfigPath;
  Result<std::string> expanded = ExpandHome(*path);
  if (!expanded) {
    if (named) return tl::unexpected(expanded.error());
    path->clear();
    return Config{};
  }
  *path = std::move(*expanded);
  const Result<std::string> text = ReadFile(*path, kConfigBytesMax);
  if (!text && !named && text.error().code == ErrorCode::kNotFound) {
    path->clear();
    return Config{};
  }
  if (!text) return MakeError(ErrorCode::kInvalidArgument, "config " + text.error().message);
  Result<Config> config = ParseConfig(*text);
  if (!config) {
    Error error = config.error();
    error.message = "config " + *path + ": " + error.message;
    return tl::unexpected(std::move(error));
  }
  return config;
}

Result<Settings> LoadSettings(const Flags& flags) {
  Settings settings;
  settings.check_only = flags.check_only;
  const bool level_given = !flags.log_level.empty();
  const std::string level = level_given ? flags.log_level : Environment("CONDUCTOR_LOG_LEVEL");
  if (!level.empty()) {
    CONDUCTOR_ASSIGN_OR_RETURN(
        settings.log_level,
        ParseLogLevel(level_given ? "--log-level" : "CONDUCTOR_LOG_LEVEL", level));
  }
  CONDUCTOR_ASSIGN_OR_RETURN(settings.config, LoadConfig(flags, &settings.config_path));
  const std::string from_environment = Environment("CONDUCTOR_DATA_DIR");
  if (!flags.data_dir.empty()) {
    settings.config.data_dir = flags.data_dir;
  } else if (!from_environment.empty()) {
    settings.config.data_dir = from_environment;
  }
  CONDUCTOR_ASSIGN_OR_RETURN(settings.config.data_dir, ExpandHome(settings.config.data_dir));
  // Absolute, so that what status shows means the same to everyone on this machine.
  std::error_code no_working_directory;
  const auto absolute = std::filesystem::absolute(settings.config.data_dir, no_working_directory);
  if (!no_working_directory) settings.config.data_dir = absolute.lexically_normal().string();
  return settings;
}

}  // namespace

Result<LogLevel> ParseLogLevel(const std::string& name, const std::string& text) {
  const std::vector<std::string> words = {"DEBUG", "INFO", "WARN", "ERROR"};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (EditDistance(words[i], text) == 0) return static_cast<LogLevel>(i);
  }
  return InvalidField("invalid_value", name,
                      name + ": expected DEBUG, INFO, WARN or ERROR, got " + LogValue(text) +
                          "; the nearest is " + Nearest(text, words));
}

CommandLine ReadCommandLine(int argc, const char* const* argv) {
  Flags flags;
  CLI::App app(kDescription, "mooncake_conductor");
  app.footer(kFooter);
  app.add_option("--config", flags.config, "Configuration file (JSON)")->type_name("FILE");
  app.add_option("--data-dir", flags.data_dir, "Data directory; overrides the configuration")
      ->type_name("DIR");
  app.add_option("--log-level", flags.log_level, "DEBUG, INFO, WARN or ERROR")->type_name("LEVEL");
  app.add_flag("--check-config", flags.check_only, "Check the configuration and exit");
  app.set_version_flag("--version",
                       "mooncake_conductor " CONDUCTOR_VERSION " (" CONDUCTOR_COMMIT ")");
  CommandLine line;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    line.text = app.help();
    return line;
  } catch (const CLI::CallForVersion& version) {
    line.text = std::string(version.what()) + "\n";
    return line;
  } catch (const CLI::Error& error) {
    line.exit_code = ExitCode::kUsage;
    line.text = "mooncake_conductor: " + std::string(error.what()) + "\nRun with --help.\n";
    return line;
  }
  Result<Settings> settings = LoadSettings(flags);
  if (!settings) {
    line.exit_code = ExitCode::kUsage;
    line.text = "mooncake_conductor: " + settings.error().message + "\n";
    return line;
  }
  line.settings = std::move(*settings);
  return line;
}

}  // namespace conductor::cli
