// The limits of the HTTP front end that are not configuration. Those that are live in src/limits.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace conductor::http {

// Containers inside containers in one body. The deepest valid one has five.
inline constexpr std::size_t kBodyDepthMax = 16;
// Integers that a body reader hands over together; they pass over its stack.
inline constexpr std::size_t kInt32sAtOnce = 4'096;
// Larger JSON bodies are read by the slower parser, which needs no memory for it: the fast one
// takes some seven times the body.
inline constexpr std::size_t kFastJsonBytesMax = 16u << 20;
// A thread keeps the fast parser's memory for bodies up to this size.
inline constexpr std::size_t kFastJsonBytesKept = 256u << 10;
// Entries of a field that is a map of integers (pool_parts).
inline constexpr std::size_t kMapEntriesMax = 64;
// How much of an unknown field's name an error repeats.
inline constexpr std::size_t kShownKeyBytesMax = 64;
// Connections at once; never more than a quarter of the descriptors the process may open.
inline constexpr std::size_t kConnectionsMax = 4'096;
inline constexpr std::size_t kConnectionsFloor = 16;
// An idle connection costs a descriptor and a few hundred bytes, never a thread.
inline constexpr std::uint32_t kIdleMsMax = 60'000;
// What the Keep-Alive header promises; there is no such limit.
inline constexpr std::size_t kRequestsPerConnectionShown = 1'000'000;
// After a refusal the rest of what the client sends is read and thrown away for this long, so that
// the refusal reaches it before the connection is reset.
inline constexpr std::uint32_t kLingerMsMax = 2'000;
inline constexpr std::size_t kLingerBytesMax = 64u << 20;
inline constexpr std::uint32_t kSweepIntervalMs = 250;
// Threads beyond limits.http_threads that never run a request which may wait: probes and socket
// work go on while every other thread waits for the log.
inline constexpr std::size_t kReservedThreads = 2;
// Bytes of a chunk's size line, extensions included, and of all trailers of a chunked body.
inline constexpr std::size_t kChunkLineBytesMax = 256;
inline constexpr std::size_t kTrailerBytesMax = 4'096;
inline constexpr std::size_t kReadBytes = 64u << 10;
// What one connection reads before the limits over all connections are looked at again.
inline constexpr std::size_t kReadBytesPerTurnMax = 1u << 20;
inline constexpr std::size_t kReservedBodyBytesMax = 1u << 20;
// A request below this is served although the bytes in flight over all connections are too many.
inline constexpr std::size_t kAlwaysServedBytesMax = 64u << 10;
// Connections share these by address; more of them only means less contention.
inline constexpr std::size_t kHandOverMutexes = 16;
inline constexpr int kListenBacklog = 1'024;
inline constexpr int kAcceptsPerWakeUpMax = 64;

}  // namespace conductor::http
