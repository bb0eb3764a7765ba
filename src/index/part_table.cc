#include "src/index/part_table.h"

#include <algorithm>

#include "src/check.h"
#include "src/limits.h"

namespace conductor {

std::uint64_t PartTable::HashOf(std::string_view text) {
  const auto hash = static_cast<std::uint64_t>(FactMix(text.data(), text.size()));
  return hash == 0 ? 1 : hash;
}

PartTable::SetId PartTable::Find(HolderId holder, std::uint64_t name) const {
  const auto held = by_holder_.find(holder);
  if (held == by_holder_.end()) return 0;
  const SetId* found = held->second.names->Find(name);
  return found == nullptr ? 0 : *found;
}

const PartTable::Names* PartTable::NamesOf(HolderId holder) const {
  const auto held = by_holder_.find(holder);
  return held == by_holder_.end() ? nullptr : held->second.names.get();
}

bool PartTable::Knows(HolderId holder, std::uint64_t name) const {
  return Find(holder, name) != 0;
}

PartTable::Change PartTable::Add(HolderId holder, std::size_t needed, std::uint64_t name,
                                 const Part& part) {
  std::vector<Part>& parts = scratch_;
  parts = sets_[Find(holder, name)].parts;
  const auto place = std::lower_bound(parts.begin(), parts.end(), part);
  if (place != parts.end() && *place == part) return {};
  if (parts.size() >= kPartsPerBlockMax) return {.outcome = Outcome::kTooMany};
  parts.insert(place, part);
  return Move(holder, needed, name, parts);
}

PartTable::Change PartTable::Remove(HolderId holder, std::size_t needed, std::uint64_t name,
                                    const Part& part) {
  std::vector<Part>& parts = scratch_;
  parts = sets_[Find(holder, name)].parts;
  const auto place = std::lower_bound(parts.begin(), parts.end(), part);
  if (place == parts.end() || *place != part) return {};
  parts.erase(place);
  return Move(holder, needed, name, parts);
}

PartTable::Change PartTable::Clear(HolderId holder, std::size_t needed, std::uint64_t name) {
  if (!Knows(holder, name)) return {};
  return Move(holder, needed, name, {});
}

PartTable::Change PartTable::Move(HolderId holder, std::size_t needed, std::uint64_t name,
                                  std::span<const Part> parts) {
  const SetId from = Find(holder, name);
  const SetId to = Intern(parts);
  Change change{Outcome::kChanged, sets_[from].slots >= needed, sets_[to].slots >= needed,
                sets_[from].mix, sets_[to].mix};
  Held& held = by_holder_[holder];
  if (from != 0 && !change.before) --held.incomplete, --incomplete_;
  if (to != 0 && !change.after) ++held.incomplete, ++incomplete_;
  if (from == 0) ++names_;
  if (watch_ != nullptr) watch_->BeforeParts(held.names.get(), held.names->ShardOf(name));
  if (to != 0) {
    held.names->Set(name, to);
  } else {
    held.names->Erase(name);
    --names_;
    if (held.names->empty()) {
      if (watch_ != nullptr) garbage_.push_back(std::move(held.names));
      by_holder_.erase(holder);
    }
  }
  Release(from);
  return change;
}

PartTable::SetId PartTable::Intern(std::span<const Part> parts) {
  if (parts.empty()) return 0;
  const auto key =
      static_cast<std::uint64_t>(FactMix(parts.data(), parts.size() * sizeof(parts[0])));
  const SetId* first = sets_by_key_.Find(key);
  for (SetId id = first == nullptr ? 0 : *first; id != 0; id = sets_[id].next) {
    if (!std::ranges::equal(sets_[id].parts, parts)) continue;
    ++sets_[id].uses;
    return id;
  }
  const SetId id = Make(key, parts);
  sets_[id].next = first == nullptr ? 0 : *first;
  sets_by_key_.Set(key, id);
  return id;
}

PartTable::SetId PartTable::Make(std::uint64_t key, std::span<const Part> parts) {
  SetId id = static_cast<SetId>(sets_.size());
  if (free_.empty()) {
    sets_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  PartSet& set = sets_[id];
  set.key = key;
  set.uses = 1;
  set.mix = 0;
  set.slots = 0;
  std::uint64_t last_slot = 0;
  for (const Part& part : parts) {  // by slot
    set.mix += FactMix(&part.id, sizeof(part.id));
    if (part.slot != last_slot) ++set.slots;
    last_slot = part.slot;
  }
  part_slots_ -= set.parts.capacity();
  set.parts.assign(parts.begin(), parts.end());
  part_slots_ += set.parts.capacity();
  return id;
}

void PartTable::Release(SetId id) {
  if (id == 0 || --sets_[id].uses > 0) return;
  PartSet& set = sets_[id];
  const SetId* first = sets_by_key_.Find(set.key);
  CHECK(first != nullptr);
  if (*first != id) {
    SetId before = *first;
    while (sets_[before].next != id) before = sets_[before].next;
    sets_[before].next = set.next;
  } else if (set.next != 0) {
    sets_by_key_.Set(set.key, set.next);
  } else {
    sets_by_key_.Erase(set.key);
  }
  part_slots_ -= set.parts.capacity();
  std::vector<Part> room = std::move(set.parts);
  room.clear();
  set = PartSet{};
  if (free_.size() < kFreeSetsWithRoom && room.capacity() <= kRoomPartsMax) {
    set.parts = std::move(room);
  }
  part_slots_ += set.parts.capacity();
  free_.push_back(id);
}

void PartTable::Retire(HolderId holder) {
  auto node = by_holder_.extract(holder);
  if (node.empty()) return;
  incomplete_ -= node.mapped().incomplete;
  garbage_.push_back(std::move(node.mapped().names));
}

bool PartTable::CleanupSlice(std::size_t budget) {
  while (!garbage_.empty() && watch_ == nullptr) {
    Names& names = *garbage_.front();
    while (!names.empty() && budget > 0) {
      const std::uint64_t name = names.Any();
      Release(*names.Find(name));
      names.Erase(name);
      --names_;
      --budget;
    }
    if (!names.empty()) return true;
    garbage_.pop_front();
  }
  if (names_ == 0 && sets_.size() > 1) ForgetSets();
  return false;
}

// Nobody has any.
void PartTable::ForgetSets() {
  sets_ = std::vector<PartSet>(1);
  free_ = std::vector<SetId>();
  sets_by_key_.Shrink();
  part_slots_ = 0;
}

std::size_t PartTable::bytes() const {
  constexpr std::size_t kNameBytes = 32;  // of a ShardedMap, in large ones
  return names_ * kNameBytes + sets_.capacity() * sizeof(PartSet) +
         free_.capacity() * sizeof(SetId) + sets_by_key_.bytes() + part_slots_ * sizeof(Part);
}

}  // namespace conductor
