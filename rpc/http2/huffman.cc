#include "rpc/http2/huffman.h"

#include <array>

namespace conductor::rpc {
namespace {

constexpr int kSymbols = 257;  // every byte, and the end mark
constexpr int kEndMark = 256;
constexpr int kBitsMax = 30;

// The code is canonical: the lengths are all there is to know about it.
constexpr std::array<std::uint8_t, kSymbols> kBits = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,  //
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,  //
    6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,   //
    5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8,  15, 6,  12, 10,  //
    13, 6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,   //
    7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,   //
    15, 5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,   //
    6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7,  15, 11, 14, 13, 28,  //
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,  //
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,  //
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,  //
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,  //
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,  //
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,  //
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,  //
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,  //
    30};

struct Table {
  std::array<std::uint32_t, kBitsMax + 1> first_code{};  // of the codes with that many bits
  std::array<std::uint16_t, kBitsMax + 1> count{};
  std::array<std::uint16_t, kBitsMax + 1> first_symbol{};  // where they start in `symbols`
  std::array<std::uint16_t, kSymbols> symbols{};           // by length, then by value
};

constexpr Table MakeTable() {
  Table table;
  for (std::uint8_t bits : kBits) ++table.count[bits];
  std::uint32_t code = 0;
  std::uint16_t symbol = 0;
  for (int bits = 1; bits <= kBitsMax; ++bits) {
    code <<= 1;
    table.first_code[bits] = code;
    table.first_symbol[bits] = symbol;
    code += table.count[bits];
    for (int s = 0; s < kSymbols; ++s) {
      if (kBits[s] == bits) table.symbols[symbol++] = static_cast<std::uint16_t>(s);
    }
  }
  return table;
}

constexpr Table kTable = MakeTable();
// The code is complete: the last one is all ones.
static_assert(kTable.first_code[kBitsMax] + kTable.count[kBitsMax] == 1u << kBitsMax);

}  // namespace

bool DecodeHuffman(std::span<const std::uint8_t> coded, std::string* text) {
  std::uint32_t code = 0;
  int bits = 0;
  for (std::uint8_t byte : coded) {
    for (int shift = 7; shift >= 0; --shift) {
      code = code << 1 | (byte >> shift & 1u);
      ++bits;
      if (bits > kBitsMax) return false;
      const std::uint32_t offset = code - kTable.first_code[bits];
      if (code < kTable.first_code[bits] || offset >= kTable.count[bits]) continue;
      const int symbol = kTable.symbols[kTable.first_symbol[bits] + offset];
      if (symbol == kEndMark) return false;
      text->push_back(static_cast<char>(symbol));
      code = 0;
      bits = 0;
    }
  }
  return bits < 8 && code == (1u << bits) - 1;
}

}  // namespace conductor::rpc
