// A simulated vLLM or SGLang engine: prompts in, KV events out, on the wire of a chosen era. The
// hash profile says which engine it is.
//
// Each data-parallel rank has a prefix cache (block_cache.h), the engine's real hash chain and a
// publisher of its own (publisher.h). A prompt publishes one batch: the evicted blocks as one
// BlockRemoved each, then one BlockStored with all its new blocks; a prompt that changes nothing
// publishes nothing. SGLang: a short last page is cached only when asked for, and is an event of
// its own; with a host cache every page is written through to it and is announced there as
// CPU_PINNED, behind the device's events. Many engines may live in one process and share a
// ZmqContext, which must outlive them. Thread-safe; prompts of one rank run one after the other.
//
//   ZmqContext context;
//   auto engine = EngineSim::Start(context, {.blocks = 100, .profile = *profile});
//   auto outcome = (*engine)->Prompt({.tokens = tokens});
//   (*engine)->publisher().DropNext(1);
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/hash/chain.h"
#include "src/result.h"
#include "src/types.h"
#include "tools/block_cache.h"
#include "tools/publisher.h"
#include "tools/sglang_encoder.h"
#include "tools/vllm_encoder.h"

namespace conductor::enginesim {

inline constexpr std::size_t kPromptTokensMax = 4'000'000;
inline constexpr std::uint32_t kDpRanksMax = 1'024;

// How block hashes are spelled: the low 64 bits as an unsigned or signed integer, or the digest.
enum class NameForm : std::uint8_t { kInt, kSignedInt, kBytes };

Result<NameForm> ParseNameForm(std::string_view text);  // "int", "signed", "bytes"

struct EngineOptions {
  std::uint32_t block_size = 16;
  std::size_t blocks = 2'000;             // of each rank's cache
  Era era = Era::kB;                      // of a vLLM engine
  SglangEra sglang_era = SglangEra::kS4;  // of an SGLang engine
  NameForm names = NameForm::kInt;        // vLLM; SGLang has signed integers
  HashProfile profile{};
  bool short_pages = false;     // SGLang: cache the short last page of a prompt too
  std::size_t host_blocks = 0;  // SGLang: of each rank's host cache; 0: none
  std::uint32_t dp_ranks = 1;
  PublisherOptions publisher{};  // rank r listens at RankEndpoint(endpoint, r)
  // The time in each batch, seconds since 1970. Empty: the system's clock.
  std::function<double()> now{};
};

struct PromptRequest {
  std::vector<std::int32_t> tokens{};
  std::string lora_name{};  // vLLM only. Empty: the base model; "lora_id:N": an adapter known by
                            // number only
  std::string cache_salt{};
  // Extra keys of blocks (multimodal items), without adapter and salt; missing ones are none.
  std::vector<ExtraKeys> block_extra_keys{};
  std::uint32_t dp_rank = 0;
};

struct PromptOutcome {
  std::size_t hit_tokens = 0;
  std::size_t stored_blocks = 0;
  std::size_t removed_blocks = 0;
  std::size_t host_hit_tokens = 0;     // with a host cache
  std::vector<Digest> removed{};       // from the device, in the order of eviction
  std::optional<std::uint64_t> seq{};  // of the batch; none: nothing changed
};

class EngineSim {
 public:
  static Result<std::unique_ptr<EngineSim>> Start(const ZmqContext& context,
                                                  const EngineOptions& options);

  // Errors: kInvalidArgument (too many tokens, no such rank, a text that is not UTF-8; SGLang: an
  // adapter or extra keys, which its events do not tell, or a negative token).
  Result<PromptOutcome> Prompt(const PromptRequest& request);

  // Publishes any events under the rank's next number; the cache does not learn of them.
  std::uint64_t PublishEvents(std::vector<EngineEvent> events, std::uint32_t rank = 0);

  // Empties the cache and publishes AllBlocksCleared. Returns its number.
  std::uint64_t Clear(std::uint32_t rank = 0);

  // A new life of the rank: empty cache and ring, numbers from 0 (Publisher::Restart).
  void Restart(std::uint32_t rank = 0);

  Publisher& publisher(std::uint32_t rank = 0) { return *ranks_[rank]->publisher; }
  std::size_t CachedBlocks(std::uint32_t rank = 0) const;
  const EngineOptions& options() const { return options_; }

 private:
  struct Rank {
    Rank(std::size_t blocks, std::size_t host_blocks) : cache(blocks), host(host_blocks) {}
    mutable std::mutex mutex;  // guards the caches, and the order of their batches
    BlockCache cache, host;
    std::unique_ptr<Publisher> publisher;
  };

  explicit EngineSim(const EngineOptions& options);

  std::string encode(std::vector<EngineEvent> events, std::uint32_t rank) const;
  bool IsVllm() const { return options_.profile.strategy == HashStrategy::kVllmV1; }
  Status checkPrompt(const PromptRequest& request) const;
  std::size_t positions(const PromptRequest& request) const;
  void appendRemoved(const CacheChange& change, const std::string& medium,
                     std::vector<EngineEvent>& events) const;
  BlockStoredEvent storedEvent(const PromptRequest& request, const std::vector<Digest>& chain,
                               const CacheChange& change);
  void appendPages(const PromptRequest& request, const std::vector<Digest>& chain,
                   const CacheChange& change, const std::string& medium,
                   std::vector<EngineEvent>& events) const;
  WireHash wireHash(const Digest& digest) const;
  std::int64_t loraId(const std::string& lora_name);

  const EngineOptions options_;
  const BlockHasher hasher_;
  std::vector<std::unique_ptr<Rank>> ranks_;

  std::mutex lora_mutex_;
  std::map<std::string, std::int64_t> lora_ids_;  // guarded by lora_mutex_; from 1, by first use
};

}  // namespace conductor::enginesim
