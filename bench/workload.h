// The work: prompts, and what an engine that caches them publishes.
//
// A prompt is a number; its tokens, fingerprints and names follow from it and the seed, so any
// block of any prompt can be made at any time and nothing needs to be kept. Names are either made
// up (unique, cheap; for facts, which carry the outcome of the hash comparison) or the real chain
// (for frames, which are verified). Immutable values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/fact.h"
#include "src/hash/chain.h"
#include "src/query.h"
#include "src/types.h"

namespace conductor::bench {

inline constexpr std::uint32_t kBlockSize = 16;
inline constexpr std::size_t kEventBlocks = 64;    // of a prefill's stored event
inline constexpr std::size_t kPromptBlocks = 256;  // of a prompt, where its length does not matter
inline constexpr std::int32_t kVocabulary = 128'000;
inline constexpr std::string_view kModel = "bench-model";

// SplitMix64's finaliser.
constexpr std::uint64_t MixBits(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

HashProfile BenchProfile();
ContextKey BenchContext();
// Zero-padded, so that names sort as numbers do.
std::string InstanceName(std::size_t instance);

class PromptSource {
 public:
  explicit PromptSource(std::uint64_t seed) : seed_(seed) {}

  // The tokens of the first `blocks` blocks.
  std::vector<std::int32_t> Tokens(std::uint64_t prompt, std::size_t blocks) const;
  void TokensOfBlock(std::uint64_t prompt, std::size_t block, std::int32_t* out) const;
  std::uint64_t Fingerprint(std::uint64_t prompt, std::size_t block) const;
  // Made up.
  BlockName Name(std::uint64_t prompt, std::size_t block) const;
  // What HashPrompt gives for the first `blocks` blocks.
  std::vector<std::uint64_t> ChainNames(std::uint64_t prompt, std::size_t blocks) const;

  // Blocks [begin, begin + count) of a prompt, verified, with made-up names.
  Stored StoredEvent(std::uint64_t prompt, std::size_t begin, std::size_t count) const;
  // The same blocks, last one first: the order in which engines evict a finished request.
  Removed RemovedEvent(std::uint64_t prompt, std::size_t begin, std::size_t count) const;

 private:
  std::uint64_t seed_;
};

Registration MakeBenchRegistration(std::size_t instance, const std::string& endpoint);
// A frame with one event; its fingerprint follows from stream and number.
Frame MakeFrame(StreamId stream, std::uint64_t number, Event event);

// Prompts of kPromptBlocks, from number 0, one after the other, in events of `event_blocks`.
std::vector<Frame> PrepareFrames(const PromptSource& source, std::size_t blocks,
                                 std::size_t event_blocks);

PromptQuery MakeQuery(const std::vector<std::int32_t>& tokens, std::uint32_t top_k = 0);
// Instances in order, with all their counts.
std::uint64_t SumOf(const QueryAnswer& answer);

}  // namespace conductor::bench
