#include "http/int32_run.h"

#include <array>
#include <bit>
#include <cstring>

namespace conductor::http {

namespace {

// What the first byte of a value says about it. A prompt mixes widths at random, so a branch for
// each would be guessed wrong half of the time; a table is not.
struct Form {
  std::uint8_t bytes = 0;   // of the whole value; 0: no integer this reader takes
  std::uint8_t drop = 0;    // bits in front of the number, of eight bytes read big-endian
  std::uint8_t keep = 63;   // bits behind them
  std::uint32_t sign = 0;   // the number's sign bit, if it has one
  std::uint32_t never = 0;  // a bit that means the number exceeds 32 bits with sign
};

constexpr std::array<Form, 256> MakeForms() {
  constexpr std::uint32_t kTop = std::uint32_t{1} << 31;
  std::array<Form, 256> forms;
  for (std::size_t first = 0; first < 0x80; ++first) forms[first] = {1, 0, 56, 0, 0};
  for (std::size_t first = 0xe0; first < 0x100; ++first) forms[first] = {1, 0, 56, 0x80, 0};
  forms[0xcc] = {2, 8, 56, 0, 0};
  forms[0xcd] = {3, 8, 48, 0, 0};
  forms[0xce] = {5, 8, 32, 0, kTop};
  forms[0xd0] = {2, 8, 56, 0x80, 0};
  forms[0xd1] = {3, 8, 48, 0x8000, 0};
  forms[0xd2] = {5, 8, 32, kTop, 0};
  return forms;
}

constexpr std::array<Form, 256> kForms = MakeForms();
// One value is looked at in eight bytes, the longest has five, and two go together.
constexpr std::size_t kLookAhead = 5 + sizeof(std::uint64_t);

std::uint64_t BigEndian(const std::uint8_t* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
}

// False: the number does not fit.
bool Take(const std::uint8_t* from, const Form& form, std::int32_t* out) {
  const auto number = static_cast<std::uint32_t>(BigEndian(from) << form.drop >> form.keep);
  *out = static_cast<std::int32_t>((number ^ form.sign) - form.sign);
  return (number & form.never) == 0;
}

}  // namespace

Int32Run DecodeMsgpackInt32s(std::span<const std::uint8_t> bytes, std::span<std::int32_t> out) {
  Int32Run run;
  if (HasAvx512Int32s()) run = DecodeInt32sAvx512(bytes, out);
  const Int32Run rest = DecodeInt32sPortable(bytes.subspan(run.bytes), out.subspan(run.count));
  return {run.count + rest.count, run.bytes + rest.bytes};
}

Int32Run DecodeInt32sPortable(std::span<const std::uint8_t> bytes, std::span<std::int32_t> out) {
  const std::uint8_t* const begin = bytes.data();
  std::size_t at = 0, count = 0;
  while (out.size() - count >= 2 && bytes.size() - at >= kLookAhead) {
    const std::uint8_t* const from = begin + at;
    // How long the second value is depends on where it starts. All four answers are looked up at
    // once, so that the way to the third value is one look-up long and not two.
    const auto length = [from](std::size_t offset) {
      return std::uint64_t{kForms[from[offset]].bytes} << (8 * offset);
    };
    const std::uint64_t seconds = length(1) | length(2) | length(3) | length(5);
    const Form& first = kForms[from[0]];
    const std::size_t second_bytes = seconds >> (8 * first.bytes) & 0xff;
    if (first.bytes == 0 || second_bytes == 0) break;
    const Form& second = kForms[from[first.bytes]];
    const bool first_fits = Take(from, first, &out[count]);
    if (!first_fits || !Take(from + first.bytes, second, &out[count + 1])) break;
    count += 2;
    at += first.bytes + second_bytes;
  }
  return {count, at};
}

}  // namespace conductor::http
