// What a fuzzer is: one property of a decoder (or of the state), checked on arbitrary bytes, and
// the inputs to begin with. Each target is one .cc file that defines RunInput and Seeds; it is
// linked with libFuzzer (preset `fuzz`) or with plain_main.cc (every other build).
//
// A property that does not hold aborts, as a sanitizer does. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace conductor::fuzz {

using Bytes = std::span<const std::uint8_t>;

// Checks the target's property on one input.
void RunInput(Bytes input);

// Made from the golden files at run time, so that the repository holds every frame once.
std::vector<std::string> Seeds();

// Names the broken property, with what was found, and aborts.
void Require(bool holds, std::string_view property, std::string_view found = "");

inline Bytes AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view AsText(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Takes an input apart from its front; zeros when it is used up.
class InputReader {
 public:
  explicit InputReader(Bytes input) : rest_(input) {}

  std::uint8_t Byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }
  Bytes rest() const { return rest_; }

 private:
  Bytes rest_;
};

// Separators between the frames or parts of one input. 0xc1 is the byte that MessagePack never
// uses, so mutations of a payload hardly ever make one.
inline constexpr std::string_view kPartSeparator = "\xc1\xc1";
inline constexpr std::string_view kMessageSeparator = "\xc1\xc2";
inline constexpr std::size_t kPiecesMax = 64;

// At least one piece, at most kPiecesMax; what is beyond stays in the last one.
std::vector<Bytes> Split(Bytes input, std::string_view separator);
std::string Join(const std::vector<std::string>& pieces, std::string_view separator);

}  // namespace conductor::fuzz
