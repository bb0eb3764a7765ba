#include "cli/logging.h"

#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace conductor::cli {

namespace {

spdlog::level::level_enum Level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void StartLogging(LogLevel level) {
  spdlog::init_thread_pool(kLogLinesQueuedMax, 1);
  // shared_ptr: spdlog's registry and its thread pool own the logger together.
  auto logger = std::make_shared<spdlog::async_logger>(
      "conductor", std::make_shared<spdlog::sinks::stderr_sink_mt>(), spdlog::thread_pool(),
      spdlog::async_overflow_policy::overrun_oldest);
  logger->set_pattern("ts=%Y-%m-%dT%H:%M:%S.%e%z level=%l %v");
  logger->set_level(Level(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void StopLogging() {
  spdlog::shutdown();
}

void LogLine(LogLevel level, const std::string& line) {
  // The line is data, never a format.
  if (spdlog::logger* logger = spdlog::default_logger_raw(); logger != nullptr) {
    logger->log(Level(level), spdlog::string_view_t(line.data(), line.size()));
  }
}

}  // namespace conductor::cli
