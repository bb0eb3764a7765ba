// Turns one stream's frames into facts: decodes the payload, judges it against the registration
// (rank, block size, groups, media, adapters), takes the salts out, fingerprints the blocks and
// compares their names with the recomputed hashes.
//
// Whatever the payload is, one Frame fact comes out of it, so that the cursor moves; what could not
// be used is counted in it by reason. What belongs to one life of the publisher (counting group,
// whether a full-size block was seen, remembered digests) is forgotten with that life.
// Used by the I/O thread of its stream, which also owns the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/digest_cache.h"
#include "replay/received_frame.h"
#include "replay/wire/event.h"
#include "replay/wire/store_event.h"
#include "replay/wire/wire_limits.h"
#include "src/fact.h"
#include "src/hash/chain.h"
#include "src/ports.h"

namespace conductor {

// Adapters of one life whose blocks the cache tells apart; beyond it the cache starts afresh.
inline constexpr std::size_t kAdapterScopesMax = 4'096;

struct TranslatorOptions {
  WireLimits wire;
};

class Translator {
 public:
  // Both references outlive the translator.
  Translator(const StreamSeed& seed, const TranslatorOptions& options, const DigestSource& digests,
             DigestCache& cache);

  // The publisher's process is a new one.
  void OnNewLife();
  // The stream's holders were forgotten; after kDisconnected so was everything about the life.
  void OnDropped(DropReason reason);

  // Appends the Frame, and before it the CountingGroup if this frame decides it.
  void Translate(const ReceivedFrame& received, std::vector<Fact>& facts);

  // The last thing that was refused, in words for an operator; never a token or a salt.
  std::string_view last_error() const { return last_error_; }

 private:
  struct Adapter {
    std::string_view name;  // the context's; as long as the event lives, until the next one
    bool registered = true;
  };

  void CountRejected(const BatchEnvelope& batch, Frame& frame);
  void TranslateBatch(const WireBatch& batch, Frame& frame, std::vector<Fact>& facts);
  void TranslateStored(const WireEvent& event, Frame& frame);
  void TranslateRemoved(const WireEvent& event, Frame& frame);
  void TranslateCleared(Frame& frame);
  void FindCountingGroup(const WireBatch& batch, std::vector<Fact>& facts);

  // A store's objects (translate_store.cc).
  void TranslateStore(const StoreBatch& batch, Frame& frame);
  void TranslateObject(const StoreEvent& event, Frame& frame);
  void TranslatePoolCleared(const StoreEvent& event, Frame& frame);

  std::optional<Tier> TierOf(const WireEvent& event) const;
  bool CountsHere(const WireEvent& event, Frame& frame);
  bool HasFittingLength(const WireEvent& event, Frame& frame);
  void Ignore(Frame& frame, IgnoreReason reason, std::string text = "");
  Adapter AdapterOf(const WireEvent& event);

  void FillNames(const WireEvent& event, Stored& stored) const;
  void FillBlocks(const WireEvent& event, const Adapter& adapter, Stored& stored);
  std::optional<Digest> DigestOf(const Adapter& adapter, const BlockName& name);
  bool IsNameOf(const BlockName& name, const Digest& digest) const;
  DigestCache::Scope ScopeOf(std::string_view adapter);

  const StreamId stream_;
  const Registration registration_;
  const TranslatorOptions options_;
  const DigestSource& digests_;
  DigestCache& cache_;
  const BlockHasher hasher_;

  std::optional<std::int64_t> counting_group_;
  bool seen_full_size_block_;
  // The state may still hold the life before this one: only a digest that proves itself is taken.
  bool state_is_this_life_ = true;
  std::map<std::string, DigestCache::Scope, std::less<>> scopes_;
  // Of the stored event at hand, if its tokens are pairs: set by HasFittingLength. Kept for its
  // room.
  std::vector<std::int32_t> joined_tokens_;
  std::string part_;              // of the object at hand
  std::string numbered_adapter_;  // the name of one that the event at hand has by number only
  std::string last_error_;
};

}  // namespace conductor
