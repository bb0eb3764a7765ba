#include "src/index/context_table.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "src/check.h"
#include "src/index/heap_bytes.h"

namespace conductor {
namespace {

// A key of usual length is put together without an allocation: each query does it.
constexpr std::size_t kKeyBytesOnStack = 256;

// Length-prefixed, so that no two keys have the same bytes.
char* PutText(const std::string& text, char* out) {
  const std::uint32_t size = static_cast<std::uint32_t>(text.size());
  std::memcpy(out, &size, sizeof(size));
  return std::copy(text.begin(), text.end(), out + sizeof(size));
}

Sum128 KeyMix(const ContextKey& key) {
  std::size_t size = sizeof(key.block_size);
  for (const std::string* part : {&key.tenant_id, &key.model_name, &key.lora_name}) {
    size += sizeof(std::uint32_t) + part->size();
  }
  char on_stack[kKeyBytesOnStack];
  std::string longer;
  if (size > sizeof(on_stack)) longer.resize(size);
  char* const bytes = longer.empty() ? on_stack : longer.data();
  char* end = PutText(key.lora_name, PutText(key.model_name, PutText(key.tenant_id, bytes)));
  std::memcpy(end, &key.block_size, sizeof(key.block_size));
  return FactMix(bytes, size);
}

}  // namespace

RowCard::RowCard(const Row& row, std::uint32_t its_group)
    : shared(row.shared),
      group(its_group),
      dp_rank(row.dp_rank),
      row_(&row),
      size_(static_cast<std::uint32_t>(row.instance_id.size())) {
  if (size_ <= sizeof(text_)) row.instance_id.copy(text_, size_);
}

std::size_t RowView::FindGroup(const std::string& instance_id) const {
  const auto found = std::lower_bound(
      groups.begin(), groups.end(), instance_id,
      [this](const Group& group, const std::string& id) { return InstanceOf(group) < id; });
  const bool is_it = found != groups.end() && InstanceOf(*found) == instance_id;
  return is_it ? static_cast<std::size_t>(found - groups.begin()) : groups.size();
}

void RowView::Add(std::uint32_t slot, const Row* row) {
  if (slot == slots.size()) slots.push_back(nullptr);
  slots[slot] = row;
  const auto place =
      std::upper_bound(order.begin(), order.end(), row, [this](const Row* a, std::uint32_t b) {
        return std::tie(a->instance_id, a->dp_rank) <
               std::tie(slots[b]->instance_id, slots[b]->dp_rank);
      });
  order.insert(place, slot);
  Regroup();
}

void RowView::Append(const Row* row) {
  order.push_back(static_cast<std::uint32_t>(slots.size()));
  slots.push_back(row);
}

void RowView::Sort() {
  std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
    return std::tie(slots[a]->instance_id, slots[a]->dp_rank) <
           std::tie(slots[b]->instance_id, slots[b]->dp_rank);
  });
  Regroup();
}

void RowView::Remove(std::uint32_t slot) {
  slots[slot] = nullptr;
  while (!slots.empty() && slots.back() == nullptr) slots.pop_back();
  std::erase(order, slot);
  Regroup();
}

std::size_t RowView::bytes() const {
  return HeapBytes(sizeof(RowView)) + HeapBytes(slots.capacity() * sizeof(slots[0])) +
         HeapBytes(order.capacity() * sizeof(order[0])) +
         HeapBytes(groups.capacity() * sizeof(groups[0])) +
         HeapBytes(cards.capacity() * sizeof(cards[0])) +
         HeapBytes(streams.capacity() * sizeof(streams[0]));
}

void RowView::Regroup() {
  groups.clear();
  cards.assign(slots.size(), {});
  streams.assign(slots.size(), 0);
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    const bool same = i > 0 && slots[order[i]]->instance_id == slots[order[i - 1]]->instance_id;
    if (!same) groups.push_back({i, i});
    groups.back().end = i + 1;
    const Row& row = *slots[order[i]];
    cards[order[i]] = RowCard(row, static_cast<std::uint32_t>(groups.size() - 1));
    streams[order[i]] = row.stream;
  }
  one_rank_each = groups.size() == order.size();
  ++version;
}

namespace {

// And its node of the map from streams to slots.
std::size_t RowBytes(const Row& row) {
  const bool on_heap = row.instance_id.capacity() > std::string().capacity();
  return HeapBytes(sizeof(Row)) + (on_heap ? HeapBytes(row.instance_id.capacity() + 1) : 0) +
         HeapBytes(4 * sizeof(void*) + sizeof(std::pair<ContextId, StreamId>) + 8);
}

}  // namespace

std::size_t ContextTable::bytes() const {
  return bytes_ + contexts_.bytes() + streams_.bytes() + by_key_.bytes();
}

// In the place of those that readers may still have.
void ContextTable::Publish(Context& context, const RowView* rows) {
  const RowView* old = context.rows.load(std::memory_order_relaxed);
  bytes_ += rows->bytes() - old->bytes();
  context.rows.store(rows, std::memory_order_release);
  retired_.RetireObject(const_cast<RowView*>(old));
}

ContextTable::~ContextTable() {
  for (ContextId id = 1; id < contexts_.end_id(); ++id) {
    const Context& context = contexts_[id];
    delete context.profile.load();
    if (const RowView* rows = context.rows.load()) {
      for (const Row* row : *rows) delete row;
      delete rows;
    }
  }
  for (StreamId id = 1; id < streams_end_.load(); ++id) {
    delete streams_[static_cast<std::uint32_t>(id)].context.load();
  }
}

ContextId ContextTable::Find(const ContextKey& key) const {
  const auto hash = static_cast<std::uint64_t>(KeyMix(key) >> 64);
  ContextId id = by_key_.Find(hash);
  while (id != 0 && contexts_[id].key != key) {
    id = contexts_[id].next_key.load(std::memory_order_acquire);
  }
  return id;
}

ContextId ContextTable::FindOrAdd(const ContextKey& key) {
  if (ContextId id = Find(key)) return id;
  if (contexts_.end_id() >= kContextsMax) return 0;
  const ContextId id = contexts_.Allocate();
  Context& context = contexts_[id];
  context.key = key;
  context.key_mix = KeyMix(key);
  const auto* rows = new RowView;
  bytes_ += rows->bytes();
  context.rows.store(rows, std::memory_order_release);
  const auto hash = static_cast<std::uint64_t>(context.key_mix >> 64);
  context.next_key.store(by_key_.Find(hash), std::memory_order_relaxed);
  by_key_.Set(hash, id);
  return id;
}

void ContextTable::SetProfile(ContextId id, const HashProfile& profile, bool of_engine) {
  Context& context = contexts_[id];
  context.has_engine_profile = of_engine;
  const ContextProfile* old = context.profile.load(std::memory_order_relaxed);
  if (old != nullptr && old->profile == profile) return;
  context.profile.store(new ContextProfile{profile, BlockHasher(profile)},
                        std::memory_order_release);
  if (old != nullptr) retired_.RetireObject(const_cast<ContextProfile*>(old));
}

std::uint32_t ContextTable::RowOf(ContextId id, StreamId stream, const std::string& instance_id,
                                  std::uint32_t dp_rank) {
  auto it = row_slots_.find({id, stream});
  if (it != row_slots_.end()) return it->second;
  Context& context = contexts_[id];
  const RowView* old = context.rows.load(std::memory_order_relaxed);
  const auto* row = new Row{stream, instance_id, dp_rank, FindStream(stream)};
  bytes_ += RowBytes(*row);
  if (bulk_) {
    const auto slot = static_cast<std::uint32_t>(old->size());
    // It was made here, and nobody else has it yet.
    auto* rows = const_cast<RowView*>(old);
    bytes_ -= rows->bytes();
    rows->Append(row);
    bytes_ += rows->bytes();
    row_slots_[{id, stream}] = slot;
    return slot;
  }
  auto* rows = new RowView(*old);
  std::uint32_t slot = 0;
  while (slot < rows->size() && (*rows)[slot] != nullptr) ++slot;
  rows->Add(slot, row);
  Publish(context, rows);
  row_slots_[{id, stream}] = slot;
  return slot;
}

void ContextTable::EndBulk() {
  bulk_ = false;
  for (ContextId id = 1; id < contexts_.end_id(); ++id) {
    auto* rows = const_cast<RowView*>(contexts_[id].rows.load(std::memory_order_relaxed));
    bytes_ -= rows->bytes();
    rows->Sort();
    bytes_ += rows->bytes();
  }
}

void ContextTable::RemoveRow(ContextId id, StreamId stream) {
  auto it = row_slots_.find({id, stream});
  if (it == row_slots_.end()) return;
  Context& context = contexts_[id];
  const RowView* old = context.rows.load(std::memory_order_relaxed);
  auto* rows = new RowView(*old);
  const Row* row = (*rows)[it->second];
  rows->Remove(it->second);
  bytes_ -= RowBytes(*row);
  Publish(context, rows);
  retired_.RetireObject(const_cast<Row*>(row));
  row_slots_.erase(it);
}

StreamShared& ContextTable::AddStream(StreamId id, const ContextKey& context) {
  SkipStreams(id + 1);  // from Apply one, which gives ids in order; from an image those before too
  StreamShared& shared = streams_[static_cast<std::uint32_t>(id)];
  CHECK(shared.context.load(std::memory_order_relaxed) == nullptr);
  shared.context.store(new ContextKey(context), std::memory_order_release);
  return shared;
}

void ContextTable::SkipStreams(StreamId next) {
  while (streams_end_.load(std::memory_order_relaxed) < next) {
    streams_end_.store(streams_.Allocate() + 1, std::memory_order_release);
  }
}

void ContextTable::RemoveStream(StreamId id) {
  StreamShared& shared = streams_[static_cast<std::uint32_t>(id)];
  const ContextKey* context = shared.context.exchange(nullptr, std::memory_order_acq_rel);
  if (context != nullptr) retired_.RetireObject(const_cast<ContextKey*>(context));
}

StreamShared* ContextTable::FindStream(StreamId id) const {
  if (id == 0 || id >= streams_end_.load(std::memory_order_acquire)) return nullptr;
  return &streams_[static_cast<std::uint32_t>(id)];
}

}  // namespace conductor
