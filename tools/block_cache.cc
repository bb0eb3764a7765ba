#include "tools/block_cache.h"

#include <algorithm>
#include <cstring>

#include "src/check.h"

namespace conductor::enginesim {

std::size_t BlockCache::DigestHash::operator()(const Digest& digest) const {
  // A digest is uniform already.
  std::size_t value;
  std::memcpy(&value, digest.data(), sizeof(value));
  return value;
}

std::size_t BlockCache::CountHits(std::span<const Digest> digests) const {
  const auto miss = std::find_if(digests.begin(), digests.end(),
                                 [this](const Digest& digest) { return !where_.contains(digest); });
  return static_cast<std::size_t>(miss - digests.begin());
}

CacheChange BlockCache::Admit(std::span<const Digest> digests) {
  CacheChange change;
  change.hit_blocks = CountHits(digests);
  const std::size_t end = std::min(digests.size(), capacity_);
  // The prompt's own blocks leave the queue while it runs, so they are never its victims.
  std::list<Digest> running;
  for (std::size_t i = 0; i < change.hit_blocks; ++i) {
    running.splice(running.begin(), queue_, where_.at(digests[i]));
  }
  for (std::size_t i = change.hit_blocks; i < end; ++i) {
    if (where_.size() == capacity_) {
      change.removed.push_back(queue_.front());
      where_.erase(queue_.front());
      queue_.pop_front();
    }
    running.push_front(digests[i]);
    // Whoever uses a child uses its parents, which then stand behind it in the queue: behind a miss
    // nothing is cached.
    CHECK(where_.emplace(digests[i], running.begin()).second);
  }
  change.stored_blocks = end - std::min(end, change.hit_blocks);
  // Deepest block first; splice keeps the iterators in where_ valid.
  queue_.splice(queue_.end(), running);
  return change;
}

void BlockCache::Clear() {
  queue_.clear();
  where_.clear();
}

}  // namespace conductor::enginesim
