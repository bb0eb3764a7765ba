// The process's limit of open descriptors, seen as a number of streams. libzmq needs several per
// socket and cannot always report that there is none left, so we refuse before it comes to that.
#pragma once

#include <cstddef>

#include "src/result.h"

namespace conductor {

// A subscription: its mailbox, its TCP connection, and the two ends of its connection monitor.
inline constexpr std::size_t kDescriptorsPerStream = 4;
// A replay that is open: mailbox and connection.
inline constexpr std::size_t kDescriptorsPerReplay = 2;
// Everything else in the process: log files, clients of the front ends, I/O threads.
inline constexpr std::size_t kDescriptorsReserved = 512;

// Raises the soft limit to the hard one; a failure leaves it as it is.
void RaiseDescriptorLimit();

// RESOURCE_EXHAUSTED when `streams` and `replays` do not fit under the limit.
Status CheckDescriptorLimit(std::size_t streams, std::size_t replays);

}  // namespace conductor
