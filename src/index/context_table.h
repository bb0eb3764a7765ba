// Contexts and their rows.
//
// A context is one prefix tree: (tenant, model, LoRA name, block size) under one hash profile. Its
// rows are the (instance, rank) pairs that have registered for it or stored into it: what a query
// answers. A context without registrations and blocks does not exist for anyone, although its id
// stays reserved for its key.
//
// One writer. Readers find contexts by key, and read profiles and rows, under an EpochGuard.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/hash/chain.h"
#include "src/index/chunked_array.h"
#include "src/index/entry.h"
#include "src/index/epoch.h"
#include "src/index/mix.h"
#include "src/index/segment_map.h"
#include "src/ports.h"
#include "src/types.h"

namespace conductor {

// Contexts that may ever be named by one log: adapters are named by publishers.
inline constexpr std::uint32_t kContextsMax = 1u << 20;

// What the world may know of a stream without asking the apply thread.
struct StreamShared {
  std::atomic<StreamState> state{StreamState::kConnecting};  // as its reader says
  // The state has lost ranges of it. The reader is ahead of the state: it may say `live` before
  // the clear that ends the loss is applied.
  std::atomic<bool> has_lost_ranges{false};
  std::atomic<const ContextKey*> context{nullptr};  // the registration's; null: no such stream

  StreamState Trust() const {
    const StreamState said = state.load(std::memory_order_acquire);
    const bool lost = has_lost_ranges.load(std::memory_order_acquire);
    return said == StreamState::kLive && lost ? StreamState::kDegraded : said;
  }
};

struct Row {
  StreamId stream = 0;
  std::string instance_id;
  std::uint32_t dp_rank = 0;
  const StreamShared* shared = nullptr;
};

// What answers need of a row, in one cache line.
class alignas(64) RowCard {
 public:
  RowCard() = default;
  RowCard(const Row& row, std::uint32_t group);

  const StreamShared* shared = nullptr;
  std::uint32_t group = 0;  // of RowView
  std::uint32_t dp_rank = 0;
  std::string_view instance_id() const {
    return size_ <= sizeof(text_) ? std::string_view(text_, size_) : row_->instance_id;
  }

 private:
  const Row* row_ = nullptr;  // keeps an id that is longer than text_
  std::uint32_t size_ = 0;
  char text_[36] = {};
};
static_assert(sizeof(RowCard) == 64);

// A context's rows by slot; free slots are null. Immutable once published.
struct RowView {
  // Rows of one instance, by ascending rank: order[begin, end).
  struct Group {
    std::uint32_t begin = 0, end = 0;
  };
  std::vector<const Row*> slots;
  std::vector<std::uint32_t> order;  // slots in use, by (instance id, rank)
  std::vector<Group> groups;         // by instance id
  std::vector<RowCard> cards;        // by slot
  std::vector<StreamId> streams;     // by slot; 0: free. Apart: a walk asks for many, and no more
  bool one_rank_each = true;         // every instance has one row
  std::uint64_t version = 0;         // of the context's rows; each change counts

  std::size_t size() const { return slots.size(); }
  const Row* operator[](std::size_t slot) const { return slots[slot]; }
  auto begin() const { return slots.begin(); }
  auto end() const { return slots.end(); }
  const std::string& InstanceOf(const Group& group) const {
    return slots[order[group.begin]]->instance_id;
  }
  // Whether the row is this stream's here: a row may be newer, or have been given to another.
  bool IsOf(std::uint32_t slot, StreamId stream) const {
    return slot < streams.size() && streams[slot] == stream;
  }
  // By instance id; groups.size(): no such instance.
  std::size_t FindGroup(const std::string& instance_id) const;
  std::size_t bytes() const;  // without its rows

 private:
  friend class ContextTable;
  void Add(std::uint32_t slot, const Row* row);
  void Remove(std::uint32_t slot);
  void Append(const Row* row);
  void Sort();
  void Regroup();
};

struct ContextProfile {
  HashProfile profile;
  BlockHasher hasher;
};

struct Context {
  ContextKey key;  // constant
  Sum128 key_mix = 0;
  std::atomic<const ContextProfile*> profile{nullptr};
  std::atomic<const RowView*> rows{nullptr};  // never null once the id is handed out
  std::atomic<std::uint32_t> registrations{0};
  std::atomic<std::uint64_t> blocks{0};     // entries and slots with a live holder
  std::atomic<std::uint64_t> fragments{0};  // those of them known by name only
  std::atomic<ContextId> next_key{0};       // chain behind the key map
  // Entries outside runs that a walk by content must look for: shared ones; publishers' own; and
  // those of the shared ones whose place a block in a run has too (forged names only).
  std::atomic<std::uint64_t> shared_content{0}, own_content{0}, twins{0};
  std::uint64_t own_names = 0;       // entries under a publisher's own name; writer only
  std::uint64_t shared_entries = 0;  // entries under a shared name; writer only
  std::uint64_t linked_entries = 0;  // those of them with a link; writer only
  // Writer only. An engine said how blocks are hashed here; what a pool says is only a guess, which
  // the first engine replaces.
  bool has_engine_profile = false;

  bool Exists() const {
    return registrations.load(std::memory_order_acquire) > 0 ||
           blocks.load(std::memory_order_acquire) > 0;
  }
};

class ContextTable {
 public:
  explicit ContextTable(RetireList& retired) : retired_(retired), by_key_(retired) {}
  ~ContextTable();

  // Readers. 0: never heard of. An id does not mean that the context exists (Context::Exists).
  ContextId Find(const ContextKey& key) const;
  Context& context(ContextId id) const { return contexts_[id]; }
  ContextId end_id() const { return contexts_.end_id(); }

  // Writer. The id of `key`; 0 when kContextsMax is reached.
  ContextId FindOrAdd(const ContextKey& key);
  void SetProfile(ContextId id, const HashProfile& profile, bool of_engine);
  // The row of a stream, added when missing.
  std::uint32_t RowOf(ContextId id, StreamId stream, const std::string& instance_id,
                      std::uint32_t dp_rank);
  // Between the two, rows are added without their order, which is made at the end: for a table that
  // nobody reads yet. Nothing is removed meanwhile.
  void BeginBulk() { bulk_ = true; }
  void EndBulk();
  void RemoveRow(ContextId id, StreamId stream);

  // Streams, by StreamId, dense from 1.
  StreamShared& AddStream(StreamId id, const ContextKey& context);
  // Ids up to `next` are used up: the next stream gets it.
  void SkipStreams(StreamId next);
  void RemoveStream(StreamId id);
  StreamShared* FindStream(StreamId id) const;
  std::size_t bytes() const;

 private:
  void Publish(Context& context, const RowView* rows);

  RetireList& retired_;
  ChunkedArray<Context, 6, 1 << 14> contexts_;
  ChunkedArray<StreamShared, 10, 1 << 16> streams_;
  std::atomic<StreamId> streams_end_{1};  // ids below it are in streams_, which never shrinks
  SegmentMap by_key_;
  // Exactly the rows of the published views.
  std::map<std::pair<ContextId, StreamId>, std::uint32_t> row_slots_;
  bool bulk_ = false;
  std::size_t bytes_ = 0;  // of published views and their rows
};

}  // namespace conductor
