// ShardedMap: a hash map in shards of bounded size, so that a snapshot can set aside one shard at a
// time (change_watch.h). Extendible hashing: a shard that is full is split in two; the new half
// gets the next number, and no number ever names other keys than its own and those split from it.
//
// Owned by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/index/mix.h"

namespace conductor {

// `Hash`: 64 bits, of which the upper ones choose the shard.
template <typename Key, typename Value, typename Hash>
class ShardedMap {
 public:
  using ShardId = std::uint32_t;

  ShardId ShardOf(const Key& key) const { return directory_[Index(Hash()(key))]; }
  // nullptr: no such key.
  const Value* Find(const Key& key) const {
    const auto& entries = shards_[ShardOf(key)].entries;
    const auto found = entries.find(key);
    return found == entries.end() ? nullptr : &found->second;
  }
  // Changes the key's shard, and may split it.
  void Set(const Key& key, const Value& value) {
    Shard& shard = shards_[ShardOf(key)];
    const auto [it, inserted] = shard.entries.insert_or_assign(key, value);
    if (!inserted) return;
    ++size_;
    if (shard.entries.size() > kShardEntriesMax && shard.depth < kDepthMax) Split(ShardOf(key));
  }
  // False: no such key.
  bool Erase(const Key& key) {
    if (shards_[ShardOf(key)].entries.erase(key) == 0) return false;
    --size_;
    return true;
  }
  // Any key of the map, which is not empty.
  const Key& Any() {
    while (shards_[any_].entries.empty()) any_ = any_ + 1 < shards_.size() ? any_ + 1 : 0;
    return shards_[any_].entries.begin()->first;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t shard_count() const { return shards_.size(); }
  template <typename Visit>
  void ForShard(ShardId shard, Visit&& visit) const {
    for (const auto& [key, value] : shards_[shard].entries) visit(key, value);
  }
  // Of an empty map: its shards go. Their numbers are used again.
  void Shrink() {
    if (size_ == 0 && shards_.size() > 1) *this = ShardedMap();
  }
  std::size_t bytes() const {
    constexpr std::size_t kNodeBytes = sizeof(std::pair<const Key, Value>) + 3 * sizeof(void*);
    return size_ * kNodeBytes + shards_.capacity() * sizeof(Shard) +
           directory_.capacity() * sizeof(ShardId);
  }

 private:
  static constexpr std::size_t kShardEntriesMax = 256;
  static constexpr std::uint32_t kDepthMax = 24;  // keys that choose one place make one large shard

  struct Shard {
    std::uint32_t depth = 0;
    std::unordered_map<Key, Value, Hash> entries;
  };

  std::size_t Index(std::uint64_t hash) const { return depth_ == 0 ? 0 : hash >> (64 - depth_); }

  void Split(ShardId id) {
    const std::uint32_t depth = ++shards_[id].depth;
    if (depth > depth_) {
      std::vector<ShardId> wider(directory_.size() * 2);
      for (std::size_t i = 0; i < wider.size(); ++i) wider[i] = directory_[i / 2];
      directory_ = std::move(wider);
      depth_ = depth;
    }
    const auto fresh = static_cast<ShardId>(shards_.size());
    shards_.push_back({depth, {}});
    for (std::size_t i = 0; i < directory_.size(); ++i) {
      if (directory_[i] == id && ((i >> (depth_ - depth)) & 1) != 0) directory_[i] = fresh;
    }
    auto& from = shards_[id].entries;
    for (auto it = from.begin(); it != from.end();) {
      const auto next = std::next(it);
      if (ShardOf(it->first) == fresh) shards_[fresh].entries.insert(from.extract(it));
      it = next;
    }
  }

  std::vector<Shard> shards_ = std::vector<Shard>(1);
  std::vector<ShardId> directory_ = std::vector<ShardId>(1);
  std::uint32_t depth_ = 0;
  std::size_t size_ = 0;
  ShardId any_ = 0;
};

}  // namespace conductor
