#include "src/index/epoch.h"

#include <atomic>
#include <limits>

#include "src/check.h"

namespace conductor {
namespace {

constexpr std::uint64_t kIdle = std::numeric_limits<std::uint64_t>::max();

struct alignas(64) Slot {
  std::atomic<std::uint64_t> epoch{kIdle};
  std::atomic<bool> taken{false};
};

struct Domain {
  std::atomic<std::uint64_t> epoch{1};
  std::atomic<std::size_t> slots_used{0};  // high-water mark of taken slots
  Slot slots[kReaderSlotsMax];
};

Domain& TheDomain() {
  static Domain* domain = new Domain;  // never destroyed: threads may end after main's statics
  return *domain;
}

// This thread's slot, given back when the thread ends.
struct ThreadSlot {
  Slot* slot = nullptr;
  int depth = 0;

  Slot& Take() {
    if (slot == nullptr) {
      Domain& domain = TheDomain();
      for (std::size_t i = 0; i < kReaderSlotsMax && slot == nullptr; ++i) {
        bool expected = false;
        if (domain.slots[i].taken.compare_exchange_strong(expected, true)) {
          slot = &domain.slots[i];
          std::size_t used = domain.slots_used.load();
          while (used < i + 1 && !domain.slots_used.compare_exchange_weak(used, i + 1)) {
          }
        }
      }
      CHECK(slot != nullptr);  // the thread pools of the daemon are bounded far below this
    }
    return *slot;
  }
  ~ThreadSlot() {
    if (slot != nullptr) slot->taken.store(false);
  }
};
thread_local ThreadSlot thread_slot;

}  // namespace

EpochGuard::EpochGuard() {
  Slot& slot = thread_slot.Take();
  if (thread_slot.depth++ > 0) return;
  // Sequentially consistent read-modify-write: pairs with the scan in Reclaim. Either the scan sees
  // this pin, or this reader's later loads see everything unpublished before the scan.
  slot.epoch.exchange(TheDomain().epoch.load(std::memory_order_seq_cst), std::memory_order_seq_cst);
}

EpochGuard::~EpochGuard() {
  if (--thread_slot.depth > 0) return;
  thread_slot.slot->epoch.store(kIdle, std::memory_order_release);
}

void RetireList::FreeAll() {
  while (!items_.empty()) {
    Item item = items_.front();
    items_.pop_front();
    item.free(item.owner, item.object);
  }
}

void RetireList::Retire(Free free, void* owner, std::uintptr_t object) {
  items_.push_back({TheDomain().epoch.load(std::memory_order_seq_cst), free, owner, object});
}

void RetireList::Reclaim() {
  if (items_.empty()) return;
  Domain& domain = TheDomain();
  domain.epoch.fetch_add(1, std::memory_order_seq_cst);
  std::uint64_t oldest = kIdle;
  const std::size_t used = domain.slots_used.load(std::memory_order_seq_cst);
  for (std::size_t i = 0; i < used; ++i) {
    const std::uint64_t pinned = domain.slots[i].epoch.load(std::memory_order_seq_cst);
    if (pinned < oldest) oldest = pinned;
  }
  while (!items_.empty() && items_.front().epoch < oldest) {
    Item item = items_.front();
    items_.pop_front();
    item.free(item.owner, item.object);
  }
}

}  // namespace conductor
