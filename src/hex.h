// Hexadecimal text of names and 128-bit sums.
#pragma once

#include <cstdint>
#include <string>

namespace conductor {

inline std::string Hex128(unsigned __int128 value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (int i = 31; i >= 0; --i) {
    text[static_cast<std::size_t>(i)] = kDigits[static_cast<unsigned>(value & 15)];
    value >>= 4;
  }
  return text;
}

inline std::string Hex64(std::uint64_t value) {
  return Hex128(value).substr(16);
}

}  // namespace conductor
