// The prefix cache of one engine rank: a fixed number of blocks, named by the real hash chain,
// evicted least recently used first, as vLLM's block pool does it.
//
// A prompt finds its longest cached prefix of full blocks and computes the rest. New blocks come
// from the head of the free queue (never used ones first, in order; then least recently used) and
// what was cached in them is removed. When the prompt is done all its blocks go back to the tail
// in reverse order, so that of equally old blocks the deepest is evicted first: a leaf before its
// parent. Blocks of a prompt that the whole cache cannot hold stay uncached.
// Unlike vLLM the last block of a wholly cached prompt is not computed again, the tail that does
// not fill a block takes no block, and a prompt is done at once. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/types.h"

namespace conductor::enginesim {

// What one prompt did to the cache.
struct CacheChange {
  std::size_t hit_blocks = 0;
  // Blocks [hit_blocks, hit_blocks + stored_blocks) of the prompt are new.
  std::size_t stored_blocks = 0;
  std::vector<Digest> removed;  // in the order of eviction
};

class BlockCache {
 public:
  explicit BlockCache(std::size_t blocks) : capacity_(blocks) {}

  // `digests` is the hash chain of the prompt's full blocks.
  CacheChange Admit(std::span<const Digest> digests);

  // The number of leading blocks that are cached; changes nothing.
  std::size_t CountHits(std::span<const Digest> digests) const;

  void Clear();

  std::size_t size() const { return where_.size(); }
  std::size_t capacity() const { return capacity_; }

 private:
  struct DigestHash {
    std::size_t operator()(const Digest& digest) const;
  };

  std::size_t capacity_;
  // Cached blocks, next to be evicted first. Invariant: one entry in where_ for each, and
  // queue_.size() <= capacity_; the difference are blocks that were never used.
  std::list<Digest> queue_;
  std::unordered_map<Digest, std::list<Digest>::iterator, DigestHash> where_;
};

}  // namespace conductor::enginesim
