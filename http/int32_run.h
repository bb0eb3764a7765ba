// The integers of a prompt, many at once: a run of MessagePack integers that fit 32 bits, decoded
// from the bytes as they stand. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace conductor::http {

struct Int32Run {
  std::size_t count = 0;  // elements written
  std::size_t bytes = 0;  // bytes they took
};

// Stops at the first value that is not such an integer (another type, too large, cut off), before
// it, or when `out` is full; also before the last few bytes, which it cannot look at in one load.
// So a caller goes on value by value where it stopped, and finds what is wrong there, if anything.
Int32Run DecodeMsgpackInt32s(std::span<const std::uint8_t> bytes, std::span<std::int32_t> out);

// The two behind it. The portable one takes every integer that fits; the other one, where the
// processor has it, stops some values before one that is negative, and before the last 63 bytes or
// (up to 63 values) the end of the room.
Int32Run DecodeInt32sPortable(std::span<const std::uint8_t> bytes, std::span<std::int32_t> out);
bool HasAvx512Int32s();
Int32Run DecodeInt32sAvx512(std::span<const std::uint8_t> bytes, std::span<std::int32_t> out);

}  // namespace conductor::http
