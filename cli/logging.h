// The daemon's log: lines of key=value on stderr, written by a thread of their own, so that a
// reader who does not read stderr never stops the service (old lines are dropped then).
// Thread-safe.
//
//   ts=2026-03-01T10:00:00.123+00:00 level=info event=serving http_port=13333
#pragma once

#include <functional>
#include <string>

#include "src/service/conductor_service.h"

namespace conductor::cli {

inline constexpr std::size_t kLogLinesQueuedMax = 8'192;
// How long a line waits for a reader before lines are dropped.
inline constexpr int kStderrWaitMsMax = 500;

void StartLogging(LogLevel level);
// Writes out what is queued; nothing is logged afterwards.
void StopLogging();

void LogLine(LogLevel level, const std::string& line);

}  // namespace conductor::cli
