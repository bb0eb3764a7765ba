// What the daemon was started with: command line over environment over configuration file. Decides
// which file is read and whether a missing one matters. Reads the environment and files; changes
// nothing.
#pragma once

#include <optional>
#include <string>

#include "cli/config.h"
#include "cli/exit_code.h"
#include "src/result.h"

namespace conductor::cli {

struct Settings {
  Config config;            // data_dir with "~" expanded
  std::string config_path;  // the file that was read; empty: there is no default file
  LogLevel log_level = LogLevel::kInfo;
  bool check_only = false;
};

// Either what to run with, or that the process is done (--help, --version, a usage error): the text
// for stdout (kOk) or stderr, and the exit code.
struct CommandLine {
  std::optional<Settings> settings;
  std::string text;
  ExitCode exit_code = ExitCode::kOk;
};

CommandLine ReadCommandLine(int argc, const char* const* argv);

// "DEBUG", "INFO", "WARN", "ERROR", whatever their case.
Result<LogLevel> ParseLogLevel(const std::string& name, const std::string& text);

}  // namespace conductor::cli
