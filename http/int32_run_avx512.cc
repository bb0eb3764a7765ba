// Twelve integers at a time: where each value starts is found by doubling jumps inside a register
// of 64 bytes, so the way from one group to the next is some thirty cycles, whatever widths there
// are. Non-negative values only; anything else is left to the portable reader.
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
// As many as fit in a window whatever their width.
constexpr std::size_t kGroup = kWindowBytes / kValueBytesMax;
// What is written for a group: a whole register.
constexpr std::size_t kWritten = 16;

}  // namespace

bool HasAvx512Int32s() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vbmi");
  return has;
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"))) Int32Run DecodeInt32sAvx512(
    std::span<const std::uint8_t> bytes, std::span<std::int32_t> out) {
  alignas(64) static constexpr auto kPlaces = [] {
    std::array<std::uint8_t, kWindowBytes> places{};
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::uint8_t>(i);
    return places;
  }();
  const __m512i places = _mm512_load_si512(kPlaces.data());
  // By the bytes of a value: which bits of the last four bytes are the number's.
  const __m512i bits =
      _mm512_setr_epi32(0, 0xff, 0xff, 0xffff, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m512i back = _mm512_set1_epi32(0x03020100);
  const __m512i every = _mm512_set1_epi32(0x01010101);
  const __m512i one = _mm512_set1_epi8(1), two = _mm512_set1_epi8(2);
  const __m512i three = _mm512_set1_epi8(3), five = _mm512_set1_epi8(5);
  const __m512i tag8 = _mm512_set1_epi8(static_cast<char>(0xcc));
  const __m512i tag16 = _mm512_set1_epi8(static_cast<char>(0xcd));
  const __m512i tag32 = _mm512_set1_epi8(static_cast<char>(0xce));
  std::size_t at = 0, count = 0;
  while (out.size() - count >= kWritten && bytes.size() - at >= kWindowBytes) {
    const __m512i window = _mm512_loadu_si512(bytes.data() + at);
    // The length of a value that starts at each place; 0: none that belongs here.
    __m512i lengths = _mm512_maskz_mov_epi8(~_mm512_movepi8_mask(window), one);
    lengths = _mm512_mask_mov_epi8(lengths, _mm512_cmpeq_epi8_mask(window, tag8), two);
    lengths = _mm512_mask_mov_epi8(lengths, _mm512_cmpeq_epi8_mask(window, tag16), three);
    lengths = _mm512_mask_mov_epi8(lengths, _mm512_cmpeq_epi8_mask(window, tag32), five);
    // From each place to the one 1, 2, 4, 8 values on; and so to the start of value k, by the bits
    // of k.
    const __m512i jump1 = _mm512_add_epi8(places, lengths);
    const __m512i jump2 = _mm512_permutexvar_epi8(jump1, jump1);
    const __m512i jump4 = _mm512_permutexvar_epi8(jump2, jump2);
    const __m512i jump8 = _mm512_permutexvar_epi8(jump4, jump4);
    __m512i starts = _mm512_setzero_si512();
    starts = _mm512_mask_permutexvar_epi8(starts, 0xaaaa, starts, jump1);
    starts = _mm512_mask_permutexvar_epi8(starts, 0xcccc, starts, jump2);
    starts = _mm512_mask_permutexvar_epi8(starts, 0xf0f0, starts, jump4);
    starts = _mm512_mask_permutexvar_epi8(starts, 0xff00, starts, jump8);
    const __m128i places16 = _mm512_castsi512_si128(starts);
    // Value k ends where the next one starts: its number is the bytes before that, last one first.
    const __m512i start = _mm512_cvtepu8_epi32(places16);
    const __m512i end = _mm512_cvtepu8_epi32(_mm_srli_si128(places16, 1));
    const __m512i length = _mm512_sub_epi32(end, start);
    const __m512i last = _mm512_sub_epi32(end, _mm512_set1_epi32(1));
    const __m512i from = _mm512_sub_epi8(_mm512_mullo_epi32(last, every), back);
    const __m512i numbers = _mm512_and_si512(_mm512_permutexvar_epi8(from, window),
                                             _mm512_permutexvar_epi32(length, bits));
    constexpr __mmask16 kOfGroup = (1u << kGroup) - 1;
    const __mmask16 wrong = _mm512_mask_testn_epi32_mask(kOfGroup, length, length) |
                            _mm512_mask_cmplt_epi32_mask(kOfGroup, numbers, _mm512_setzero_si512());
    if (wrong != 0) break;
    _mm512_storeu_si512(out.data() + count, numbers);
    count += kGroup;
    at += static_cast<std::size_t>(_mm_extract_epi8(places16, kGroup));
  }
  return {count, at};
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
