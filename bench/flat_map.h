// A small open-addressed map u64 -> V for the baselines: linear probing, at most 7/8 full, entries
// move back on erase. It stands for the flat hash maps the peers use. Keys are well mixed already.
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace conductor::bench {

template <typename V>
class FlatMap {
 public:
  V* Find(std::uint64_t key) {
    const std::size_t at = SlotOf(key);
    return at == kNone ? nullptr : &slots_[at].value;
  }
  const V* Find(std::uint64_t key) const {
    const std::size_t at = SlotOf(key);
    return at == kNone ? nullptr : &slots_[at].value;
  }

  // The value of the key, made if there is none.
  V& operator[](std::uint64_t key) {
    if (V* found = Find(key)) return *found;
    if ((size_ + 1) * 8 > slots_.size() * 7) Grow();
    ++size_;
    return Place(key, V{});
  }

  bool Erase(std::uint64_t key) {
    std::size_t hole = SlotOf(key);
    if (hole == kNone) return false;
    for (std::size_t at = (hole + 1) & Mask(); slots_[at].used; at = (at + 1) & Mask()) {
      // Whoever wanted a place at or before the hole moves there.
      if (((at - (slots_[at].key & Mask())) & Mask()) < ((at - hole) & Mask())) continue;
      slots_[hole] = std::move(slots_[at]);
      hole = at;
    }
    slots_[hole] = Slot{};
    --size_;
    return true;
  }

  std::size_t size() const { return size_; }

  template <typename F>
  void ForEach(F&& f) {
    for (Slot& slot : slots_) {
      if (slot.used) f(slot.key, slot.value);
    }
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Slot {
    std::uint64_t key = 0;
    V value{};
    bool used = false;
  };

  std::size_t Mask() const { return slots_.size() - 1; }
  std::size_t SlotOf(std::uint64_t key) const {
    if (size_ == 0) return kNone;
    for (std::size_t at = key & Mask();; at = (at + 1) & Mask()) {
      if (!slots_[at].used) return kNone;
      if (slots_[at].key == key) return at;
    }
  }
  V& Place(std::uint64_t key, V value) {
    std::size_t at = key & Mask();
    while (slots_[at].used) at = (at + 1) & Mask();
    slots_[at] = {key, std::move(value), true};
    return slots_[at].value;
  }
  void Grow() {
    std::vector<Slot> old =
        std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 4 : slots_.size() * 2));
    for (Slot& slot : old) {
      if (slot.used) Place(slot.key, std::move(slot.value));
    }
  }

  std::vector<Slot> slots_;  // Invariant: empty, or a power of two with at least one unused slot.
  std::size_t size_ = 0;
};

}  // namespace conductor::bench
