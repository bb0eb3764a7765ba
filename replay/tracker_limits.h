// Limits of the stream tracker that nobody needs to configure, next to those of src/limits.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace conductor {

// The delay before a replay is asked again after a partial answer; doubles with each attempt.
inline constexpr std::int64_t kReplayRetryMs = 100;
// All asks of one catch-up. Attempts without progress are limited by replay_attempts_max; this one
// ends the publisher that gives one number each time.
inline constexpr std::uint32_t kReplayRoundsMax = 64;
// Answers that begin right behind the frame that was asked for, before it counts as gone. Their
// first frames would follow what we have whosever they are, and nothing would be lost that could be
// named.
inline constexpr std::uint32_t kReplayUnprovedMax = 3;
// The first probe after an unanswered replay; doubles up to replay_probe_ms_max.
inline constexpr std::int64_t kReplayProbeMsMin = 1'000;
// New lives closer together than this make the replay wait, twice as long each time: a replay
// endpoint that belongs to another publisher must not be asked in a loop.
inline constexpr std::int64_t kLifeChurnMs = 10'000;
inline constexpr std::int64_t kLifeChurnDelayMsMin = 100;

// One snapshot from its request to its end. Live frames wait for it.
inline constexpr std::int64_t kSnapshotMsMax = 60'000;
// Between two snapshots, whether or not the first was of use; doubles after a failure, up to
// replay_probe_ms_max.
inline constexpr std::int64_t kSnapshotMsMin = 1'000;

// Duplicates from a life's first number on that are kept, in case the next frame shows that they
// were the beginning of a new life with the same content.
inline constexpr std::size_t kRepeatedFramesMax = 256;
inline constexpr std::size_t kRepeatedBytesMax = 1u << 20;

}  // namespace conductor
