#include "src/hash/utf8.h"

#include <cstdint>

namespace conductor {
namespace {

struct Sequence {
  std::size_t length;       // Bytes of the sequence; 0 when the first byte cannot start one.
  std::uint8_t second_min;  // The second byte alone decides overlong, surrogate and too large.
  std::uint8_t second_max;
};

Sequence StartedBy(std::uint8_t first) {
  if (first < 0x80) return {1, 0, 0};
  if (first < 0xc2) return {0, 0, 0};
  if (first < 0xe0) return {2, 0x80, 0xbf};
  if (first == 0xe0) return {3, 0xa0, 0xbf};
  if (first == 0xed) return {3, 0x80, 0x9f};
  if (first < 0xf0) return {3, 0x80, 0xbf};
  if (first == 0xf0) return {4, 0x90, 0xbf};
  if (first < 0xf4) return {4, 0x80, 0xbf};
  if (first == 0xf4) return {4, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

bool IsValidUtf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Sequence sequence = StartedBy(static_cast<std::uint8_t>(text[at]));
    if (sequence.length == 0 || text.size() - at < sequence.length) return false;
    for (std::size_t i = 1; i < sequence.length; ++i) {
      const auto byte = static_cast<std::uint8_t>(text[at + i]);
      const std::uint8_t low = i == 1 ? sequence.second_min : 0x80;
      const std::uint8_t high = i == 1 ? sequence.second_max : 0xbf;
      if (byte < low || byte > high) return false;
    }
    at += sequence.length;
  }
  return true;
}

}  // namespace conductor
