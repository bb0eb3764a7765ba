// PartTable: of which parts of a block a pool holder has objects.
//
// A store keeps one block as several objects: one for each rank, for K and V, for each layer, as
// far as the object key tells. The set of parts is idempotent: the same object announced twice is
// one part. A block is present while enough different *slots* have a part; a slot is what the
// registration's totals tell apart (without totals: one slot, and one is enough).
// Equal sets are one object with an id, so memory does not grow with parts x blocks.
//
// Owned by the apply thread; readers never look here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/index/change_watch.h"
#include "src/index/entry.h"
#include "src/index/mix.h"
#include "src/index/sharded_map.h"

namespace conductor {

class PartTable {
 public:
  enum class Outcome { kChanged, kUnchanged, kTooMany };
  struct Change {
    Outcome outcome = Outcome::kUnchanged;
    bool before = false, after = false;    // whether the block is present
    Sum128 mix_before = 0, mix_after = 0;  // of the set of parts; 0 for an empty one
  };
  struct Part {
    std::uint64_t slot = 0;  // hash of its slot's text; 0: outside the totals, fills none
    std::uint64_t id = 0;    // hash of its canonical text, which is not kept
    auto operator<=>(const Part&) const = default;
  };
  static std::uint64_t HashOf(std::string_view text);
  // `needed`: slots that make a block present; the same for all blocks of a holder, at least 1.
  Change Add(HolderId holder, std::size_t needed, std::uint64_t name, const Part& part);
  // kUnchanged: the holder has no such part.
  Change Remove(HolderId holder, std::size_t needed, std::uint64_t name, const Part& part);

  // All parts of a name, ascending, in place of those it has.
  Change Set(HolderId holder, std::size_t needed, std::uint64_t name, std::span<const Part> parts) {
    return Move(holder, needed, name, parts);
  }
  // All parts of a name.
  Change Clear(HolderId holder, std::size_t needed, std::uint64_t name);

  bool HasAny(HolderId holder) const { return by_holder_.contains(holder); }
  bool Knows(HolderId holder, std::uint64_t name) const;
  // (holder, name) pairs that have too few parts.
  std::uint64_t incomplete() const { return incomplete_; }
  // The holder is gone with all it had; the memory is given back in slices.
  void Retire(HolderId holder);
  // True: more is left.
  bool CleanupSlice(std::size_t budget);
  std::size_t bytes() const;

  // While there is one, nothing that it may still look at is given back.
  void SetWatch(ChangeWatch* watch) { watch_ = watch; }
  using SetId = std::uint32_t;  // 0: the empty set
  struct NameHash {
    std::size_t operator()(std::uint64_t name) const { return HashMix(name, 0x7061727473ull); }
  };
  using Names = ShardedMap<std::uint64_t, SetId, NameHash>;
  // nullptr: none. Valid while a watch is set, whatever becomes of the holder.
  const Names* NamesOf(HolderId holder) const;
  std::span<const Part> PartsOf(SetId set) const { return sets_[set].parts; }

 private:
  struct Held {
    std::unique_ptr<Names> names = std::make_unique<Names>();
    std::uint64_t incomplete = 0;
  };
  struct PartSet {
    std::vector<Part> parts;  // ascending; of a free set, empty and perhaps with room
    std::size_t slots = 0;    // different ones that are filled
    Sum128 mix = 0;           // sum over the parts
    std::uint64_t key = 0;    // of sets_by_key_
    SetId next = 0;           // another one of that key
    std::uint64_t uses = 0;
  };
  // Sets come and go with each object of a block that has many: so much room is kept for them.
  static constexpr std::size_t kFreeSetsWithRoom = 64;
  static constexpr std::size_t kRoomPartsMax = 1'024;

  SetId Intern(std::span<const Part> parts);
  SetId Make(std::uint64_t key, std::span<const Part> parts);
  void Release(SetId id);
  void ForgetSets();
  SetId Find(HolderId holder, std::uint64_t name) const;
  // `parts` lie outside sets_, which may move.
  Change Move(HolderId holder, std::size_t needed, std::uint64_t name, std::span<const Part> parts);

  std::unordered_map<HolderId, Held> by_holder_;
  std::uint64_t incomplete_ = 0;
  std::deque<std::unique_ptr<Names>> garbage_;
  std::vector<PartSet> sets_ = std::vector<PartSet>(1);
  std::vector<SetId> free_;
  std::vector<Part> scratch_;  // the set being made; kept for its room
  ShardedMap<std::uint64_t, SetId, NameHash> sets_by_key_;
  std::size_t names_ = 0;
  std::size_t part_slots_ = 0;  // room in the sets
  ChangeWatch* watch_ = nullptr;
};

}  // namespace conductor
