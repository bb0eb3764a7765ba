#include "src/index/digest_table.h"

namespace conductor {

DigestId DigestTable::Add(const Digest& digest) {
  if (!kept_.HasRoom()) return 0;
  const DigestId id = kept_.Allocate();
  kept_[id] = digest;
  return id;
}

DigestId DigestTable::AddLone(const Digest& digest, EntryId owner) {
  if (!lone_.HasRoom()) return 0;
  const std::uint32_t id = lone_.Allocate();
  lone_[id] = {digest, owner};
  ++lone_count_;
  return id | kLone;
}

void DigestTable::Retire(DigestId id) {
  if (IsLone(id)) {
    lone_[id & ~kLone].owner = 0;
    --lone_count_;
  }
  retired_.Retire(
      [](void* table, std::uintptr_t retired) {
        static_cast<DigestTable*>(table)->Release(static_cast<DigestId>(retired));
      },
      this, id);
}

void DigestTable::Release(DigestId id) {
  IsLone(id) ? lone_.Release(id & ~kLone) : kept_.Release(id);
}

EntryId DigestTable::NextLone() {
  hand_ = hand_ + 1 < lone_.end_id() ? hand_ + 1 : 1;
  return lone_[hand_].owner;
}

void DigestTable::ShrinkIfEmpty() {
  kept_.ShrinkIfEmpty();
  lone_.ShrinkIfEmpty();
}

}  // namespace conductor
