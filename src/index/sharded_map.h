// ShardedMap: a hash map in shards of bounded size, so that a snapshot can set aside one shard at a
// time (change_watch.h). Extendible hashing: a shard that is full is split in two; the new half
// gets the next number, and no number ever names other keys than its own and those split from it.
// A shard is one flat table that is searched from the place of a key's hash on, so a key is no
// allocation.
//
// No key has the value Value(): it marks a free slot.
// Owned by one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/check.h"
#include "src/index/mix.h"

namespace conductor {

// `Hash`: 64 bits, of which the upper ones choose the shard and the lower ones the slot.
template <typename Key, typename Value, typename Hash>
class ShardedMap {
 public:
  using ShardId = std::uint32_t;

  ShardId ShardOf(const Key& key) const { return ShardOfHash(Hash()(key)); }
  // nullptr: no such key. Valid until the next change.
  const Value* Find(const Key& key) const {
    const std::uint64_t hash = Hash()(key);
    const Shard& shard = shards_[ShardOfHash(hash)];
    if (shard.size == 0) return nullptr;
    const Slot& slot = shard.slots[shard.SlotFor(key, hash)];
    return slot.value == Value() ? nullptr : &slot.value;
  }
  // Changes the key's shard, and may split it.
  void Set(const Key& key, const Value& value) {
    CHECK(value != Value());
    const std::uint64_t hash = Hash()(key);
    const ShardId id = ShardOfHash(hash);
    Shard& shard = shards_[id];
    if (!shard.slots.empty()) {
      Slot& slot = shard.slots[shard.SlotFor(key, hash)];
      if (slot.value != Value()) {
        slot.value = value;
        return;
      }
    }
    if (shard.IsFull()) Resize(shard, std::max(kSlotsMin, 2 * shard.slots.size()));
    shard.slots[shard.SlotFor(key, hash)] = {key, value};
    ++shard.size;
    ++size_;
    if (shard.size > kShardEntriesMax && shard.depth < kDepthMax) Split(id);
  }
  // False: no such key.
  bool Erase(const Key& key) {
    const std::uint64_t hash = Hash()(key);
    Shard& shard = shards_[ShardOfHash(hash)];
    if (shard.size == 0) return false;
    const std::size_t slot = shard.SlotFor(key, hash);
    if (shard.slots[slot].value == Value()) return false;
    shard.Free(slot);
    --shard.size;
    --size_;
    if (shard.size == 0) {
      Resize(shard, 0);
    } else if (shard.size * kSlotsPerEntryMax < shard.slots.size()) {
      Resize(shard, std::max(kSlotsMin, shard.slots.size() / 4));
    }
    return true;
  }
  // Any key of the map, which is not empty. Draining it this way looks at each slot about once.
  const Key& Any() {
    for (;; ++any_shard_, any_slot_ = 0) {
      if (any_shard_ >= shards_.size()) any_shard_ = 0;
      const std::vector<Slot>& slots = shards_[any_shard_].slots;
      for (; any_slot_ < slots.size(); ++any_slot_) {
        if (slots[any_slot_].value != Value()) return slots[any_slot_].key;
      }
    }
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t shard_count() const { return shards_.size(); }
  template <typename Visit>
  void ForShard(ShardId shard, Visit&& visit) const {
    for (const Slot& slot : shards_[shard].slots) {
      if (slot.value != Value()) visit(slot.key, slot.value);
    }
  }
  // Of an empty map: its shards go. Their numbers are used again.
  void Shrink() {
    if (size_ == 0 && shards_.size() > 1) *this = ShardedMap();
  }
  std::size_t bytes() const {
    return slots_ * sizeof(Slot) + shards_.capacity() * sizeof(Shard) +
           directory_.capacity() * sizeof(ShardId);
  }

 private:
  static constexpr std::size_t kSlotsInShard = 256;
  // One more than these fill it: the shard is split before its table would grow.
  static constexpr std::size_t kShardEntriesMax = kSlotsInShard / 4 * 3 - 1;
  static constexpr std::size_t kSlotsMin = 4;
  static constexpr std::size_t kSlotsPerEntryMax = 16;  // above it a table shrinks
  static constexpr std::uint32_t kDepthMax = 24;  // keys that choose one place make one large shard

  struct Slot {
    Key key{};
    Value value{};
  };
  struct Shard {
    std::uint32_t depth = 0;
    std::uint32_t size = 0;
    std::vector<Slot> slots;  // none, or a power of two, of which three in four may be taken

    bool IsFull() const { return 4 * (size + std::size_t{1}) > 3 * slots.size(); }
    // The slot of the key, or the free one where it belongs. There are slots.
    std::size_t SlotFor(const Key& key, std::uint64_t hash) const {
      const std::size_t mask = slots.size() - 1;
      std::size_t at = hash & mask;
      while (slots[at].value != Value() && !(slots[at].key == key)) at = (at + 1) & mask;
      return at;
    }
    // Those behind it move up when they may: a search ends at a free slot.
    void Free(std::size_t hole) {
      const std::size_t mask = slots.size() - 1;
      for (std::size_t at = (hole + 1) & mask; slots[at].value != Value(); at = (at + 1) & mask) {
        const std::size_t wanted = Hash()(slots[at].key) & mask;
        if (((at - wanted) & mask) < ((at - hole) & mask)) continue;
        slots[hole] = slots[at];
        hole = at;
      }
      slots[hole] = Slot();
    }
  };

  ShardId ShardOfHash(std::uint64_t hash) const {
    return directory_[depth_ == 0 ? 0 : hash >> (64 - depth_)];
  }

  void Resize(Shard& shard, std::size_t count) {
    std::vector<Slot> slots(count);
    std::swap(shard.slots, slots);
    slots_ += count;
    slots_ -= slots.size();
    for (const Slot& slot : slots) {
      if (slot.value != Value()) shard.slots[shard.SlotFor(slot.key, Hash()(slot.key))] = slot;
    }
  }

  void Split(ShardId id) {
    const std::uint32_t depth = ++shards_[id].depth;
    if (depth > depth_) {
      std::vector<ShardId> wider(directory_.size() * 2);
      for (std::size_t i = 0; i < wider.size(); ++i) wider[i] = directory_[i / 2];
      directory_ = std::move(wider);
      depth_ = depth;
    }
    const auto fresh = static_cast<ShardId>(shards_.size());
    shards_.push_back({depth, 0, {}});
    for (std::size_t i = 0; i < directory_.size(); ++i) {
      if (directory_[i] == id && ((i >> (depth_ - depth)) & 1) != 0) directory_[i] = fresh;
    }
    std::vector<Slot> both(kSlotsInShard);
    std::swap(shards_[id].slots, both);
    Resize(shards_[fresh], kSlotsInShard);
    slots_ += kSlotsInShard;
    slots_ -= both.size();
    shards_[id].size = 0;
    for (const Slot& slot : both) {
      if (slot.value != Value()) PutInto(ShardOf(slot.key), slot);
    }
  }
  // The key is not in the shard yet.
  void PutInto(ShardId id, const Slot& slot) {
    Shard& shard = shards_[id];
    if (shard.IsFull()) Resize(shard, 2 * shard.slots.size());
    shard.slots[shard.SlotFor(slot.key, Hash()(slot.key))] = slot;
    ++shard.size;
  }

  std::vector<Shard> shards_ = std::vector<Shard>(1);
  std::vector<ShardId> directory_ = std::vector<ShardId>(1);
  std::uint32_t depth_ = 0;
  std::size_t size_ = 0;
  std::size_t slots_ = 0;  // of all shards
  std::size_t any_shard_ = 0, any_slot_ = 0;
};

}  // namespace conductor
