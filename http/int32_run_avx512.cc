// Windows of 64 bytes that follow each other at a fixed distance, whatever the widths of the
// values: how far it is from any place of a window to the next values is found by doubling jumps,
// for several windows at a time. Only where a window is entered depends on the one before it, and
// that is a single permutation. Non-negative values only; anything else is left to the portable
// reader.
#include <array>

#include "http/int32_run.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace conductor::http {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kWindowBytes = 64;
constexpr std::size_t kValueBytesMax = 5;
// The values of a window start below this, and the next window begins here. So the place behind a
// value is a place of the same window.
constexpr std::size_t kStride = kWindowBytes - kValueBytesMax;
// Values are written by the register.
constexpr std::size_t kGroup = 16;

using Places = std::array<std::uint8_t, kWindowBytes>;

constexpr Places MakePlaces(int divisor) {
  Places places{};
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = static_cast<std::uint8_t>(static_cast<int>(i) / divisor);
  }
  return places;
}

alignas(kWindowBytes) constexpr Places kPlaces = MakePlaces(1);
alignas(kWindowBytes) constexpr Places kLanes = MakePlaces(4);
alignas(kWindowBytes) constexpr Places kOfWindow = [] {
  Places mask{};
  for (std::size_t i = 0; i < kStride; ++i) mask[i] = 0xff;
  return mask;
}();
alignas(kWindowBytes) constexpr auto kLengths = [] {
  std::array<std::uint8_t, 2 * kWindowBytes> lengths{};
  lengths[0] = 1;
  lengths[0xcc - 0x7f] = 2;
  lengths[0xcd - 0x7f] = 3;
  lengths[0xce - 0x7f] = 5;
  return lengths;
}();

}  // namespace

bool HasAvx512Int32s() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("popcnt");
  return has;
}

#define CONDUCTOR_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,popcnt")))

namespace {

// The place behind the value that starts at each place, which itself is the answer where none
// starts that belongs here, or that belongs to this window.
CONDUCTOR_AVX512 inline __m512i NextPlaces(__m512i window) {
  // 0: a value of one byte; 0x4d, 0x4e, 0x4f: the tags of two, three and five.
  const __m512i tag =
      _mm512_min_epu8(_mm512_subs_epu8(window, _mm512_set1_epi8(0x7f)), _mm512_set1_epi8(0x7f));
  const __m512i lengths = _mm512_permutex2var_epi8(
      _mm512_load_si512(kLengths.data()), tag, _mm512_load_si512(kLengths.data() + kWindowBytes));
  return _mm512_add_epi8(_mm512_load_si512(kPlaces.data()),
                         _mm512_and_si512(lengths, _mm512_load_si512(kOfWindow.data())));
}

// The numbers of sixteen values, from `first` on; 0 for a value of no length.
CONDUCTOR_AVX512 inline __m512i GroupOf(__m512i window, __m512i starts, __m512i ends, int first) {
  const __m512i lanes =
      _mm512_add_epi8(_mm512_load_si512(kLanes.data()), _mm512_set1_epi8(static_cast<char>(first)));
  const __m512i start = _mm512_permutexvar_epi8(lanes, starts);
  const __m512i end = _mm512_permutexvar_epi8(lanes, ends);
  // Big-endian: the last byte is the lowest. A value of one byte is its own tag.
  const __m512i from = _mm512_sub_epi8(end, _mm512_set1_epi32(0x04030201));
  const __m512i above = _mm512_sub_epi8(start, _mm512_set1_epi32(0x00000001));
  return _mm512_maskz_permutexvar_epi8(_mm512_cmpgt_epi8_mask(from, above), from, window);
}

}  // namespace

CONDUCTOR_AVX512 Int32Run DecodeInt32sAvx512(std::span<const std::uint8_t> bytes,
                                             std::span<std::int32_t> out) {
  const __m512i stride = _mm512_set1_epi8(static_cast<char>(kStride));
  __m512i entry = _mm512_setzero_si512();  // where the window is entered, in every byte
  std::size_t at = 0, count = 0;
  while (bytes.size() - at >= kWindowBytes) {
    const __m512i window = _mm512_loadu_si512(bytes.data() + at);
    // From each place to the one 1, 2, 4, ... values on, but not beyond the first of the next
    // window; and so to the start of value k, by the bits of k.
    const __m512i jump1 = NextPlaces(window);
    const __m512i jump2 = _mm512_permutexvar_epi8(jump1, jump1);
    const __m512i jump4 = _mm512_permutexvar_epi8(jump2, jump2);
    const __m512i jump8 = _mm512_permutexvar_epi8(jump4, jump4);
    const __m512i jump16 = _mm512_permutexvar_epi8(jump8, jump8);
    const __m512i jump32 = _mm512_permutexvar_epi8(jump16, jump16);
    const __m512i jump64 = _mm512_permutexvar_epi8(jump32, jump32);
    const __m512i exit = _mm512_permutexvar_epi8(entry, jump64);
    __m512i starts = entry;
    starts = _mm512_mask_permutexvar_epi8(starts, 0xaaaaaaaaaaaaaaaa, starts, jump1);
    starts = _mm512_mask_permutexvar_epi8(starts, 0xcccccccccccccccc, starts, jump2);
    starts = _mm512_mask_permutexvar_epi8(starts, 0xf0f0f0f0f0f0f0f0, starts, jump4);
    starts = _mm512_mask_permutexvar_epi8(starts, 0xff00ff00ff00ff00, starts, jump8);
    starts = _mm512_mask_permutexvar_epi8(starts, 0xffff0000ffff0000, starts, jump16);
    starts = _mm512_mask_permutexvar_epi8(starts, 0xffffffff00000000, starts, jump32);
    const __m512i ends = _mm512_permutexvar_epi8(starts, jump1);
    const std::size_t values =
        static_cast<std::size_t>(__builtin_popcountll(_mm512_cmplt_epu8_mask(starts, stride)));
    // A way that never leaves the window has met something else.
    bool wrong = values == kWindowBytes;
    for (std::size_t first = 0; first < values && !wrong; first += kGroup) {
      wrong = out.size() - count < first + kGroup;
      if (wrong) break;
      const __m512i numbers = GroupOf(window, starts, ends, static_cast<int>(first));
      wrong = _mm512_movepi8_mask(numbers) & 0x8888888888888888;  // above 2^31
      _mm512_storeu_si512(out.data() + count + first, numbers);
    }
    if (wrong) break;
    count += values;
    at += kStride;
    entry = _mm512_sub_epi8(exit, stride);
  }
  alignas(kWindowBytes) Places entered;
  _mm512_store_si512(entered.data(), entry);
  return {count, at + entered[0]};
}

#else

bool HasAvx512Int32s() {
  return false;
}
Int32Run DecodeInt32sAvx512(std::span<const std::uint8_t>, std::span<std::int32_t>) {
  return {};
}

#endif

}  // namespace conductor::http
