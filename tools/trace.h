// Reads request traces in the Mooncake format: one JSON object a line,
//
//   {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}
//
// timestamp in milliseconds from the start of the trace, hash_ids one id per block of 512 prompt
// tokens (the last one may be partial); equal ids mean equal content and an equal prefix.
//
// The trace has no tokens, so ExpandTrace invents them from the ids, the same in every language:
//
//   token j of id k = splitmix64(k * trace_block + j) mod 50000           (all of it mod 2^64)
//   splitmix64(x):  x += 0x9E3779B97F4A7C15
//                   x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
//                   x = (x ^ (x >> 27)) * 0x94D049BB133111EB
//                   return x ^ (x >> 31)
//
// and cuts the result to input_length. In Python:
//
//   M = 2**64 - 1
//   def splitmix64(x):
//       x = (x + 0x9E3779B97F4A7C15) & M
//       x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M
//       x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M
//       return x ^ (x >> 31)
//   def expand(ids, n, B=512): return [splitmix64(k * B + j) % 50000 for k in ids for j in
//   range(B)][:n]
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "src/result.h"

namespace conductor::enginesim {

inline constexpr std::uint32_t kTraceBlockTokens = 512;
inline constexpr std::uint32_t kTraceVocabulary = 50'000;
inline constexpr std::size_t kTraceLineBytesMax = 4u << 20;
inline constexpr std::uint64_t kTraceInputTokensMax = 4'000'000;

struct TraceRequest {
  std::uint64_t timestamp_ms = 0;
  std::uint64_t input_length = 0;
  std::uint64_t output_length = 0;
  std::vector<std::uint64_t> hash_ids{};
};

std::uint64_t SplitMix64(std::uint64_t x);

// The prompt of a request. Its ids must cover input_length, which TraceReader has checked.
std::vector<std::int32_t> ExpandTrace(const TraceRequest& request,
                                      std::uint32_t trace_block = kTraceBlockTokens);

// One request from one line. Errors say what was expected.
Result<TraceRequest> ParseTraceLine(const std::string& line,
                                    std::uint32_t trace_block = kTraceBlockTokens);

// Reads a trace line by line. Errors name the line. One thread.
class TraceReader {
 public:
  // `name` is what errors call the trace; the stream must outlive the reader.
  TraceReader(std::istream& input, std::string name, std::uint32_t trace_block = kTraceBlockTokens)
      : input_(input), name_(std::move(name)), trace_block_(trace_block) {}

  // The next request; none at the end. Blank lines are skipped.
  Result<std::optional<TraceRequest>> Next();

  std::uint64_t line() const { return line_; }

 private:
  // Reads one line without its end into `line`; false at the end of the input.
  Result<bool> readLine(std::string& line);
  tl::unexpected<Error> errorHere(ErrorCode code, const std::string& what) const;

  std::istream& input_;
  std::string name_;
  std::uint32_t trace_block_;
  std::uint64_t line_ = 0;
};

}  // namespace conductor::enginesim
