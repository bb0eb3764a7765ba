#include "cli/logging.h"

#include <poll.h>
#include <spdlog/async.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <mutex>
#include <string_view>

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

// stderr, but never for ever: a pipe nobody reads takes nothing, and lines are dropped and counted
// until it does again. A pipe that can be written takes PIPE_BUF bytes without waiting.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (!IsWritable()) {
      ++dropped_;
      return;
    }
    if (dropped_ > 0) {
      Write("level=warning event=log_lines_dropped count=" + std::to_string(dropped_) + "\n");
      dropped_ = 0;
    }
    Write(std::string_view(line.data(), line.size()));
  }
  void flush_() override {}

 private:
  bool IsWritable() {
    pollfd file{STDERR_FILENO, POLLOUT, 0};
    const int wait_ms = stuck_ ? 0 : kStderrWaitMsMax;
    stuck_ = poll(&file, 1, wait_ms) == 0;
    return !stuck_;
  }
  void Write(std::string_view text) {
    while (!text.empty() && IsWritable()) {
      const ssize_t count =
          write(STDERR_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  bool stuck_ = false;
  std::uint64_t dropped_ = 0;
};

}  // namespace

void StartLogging(LogLevel level) {
  spdlog::init_thread_pool(kLogLinesQueuedMax, 1);
  // shared_ptr: spdlog's registry and its thread pool own the logger together.
  auto logger = std::make_shared<spdlog::async_logger>(
      "conductor", std::make_shared<StderrSink>(), spdlog::thread_pool(),
      spdlog::async_overflow_policy::overrun_oldest);
  logger->set_pattern("ts=%Y-%m-%dT%H:%M:%S.%e%z level=%l %v");
  logger->set_level(Level(level));
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
