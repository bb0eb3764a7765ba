// DigestTable: full digests of blocks. Hash verification of a block's children starts from them
// after a restart, and the exact chain of a query (walk.h). It is a cache: without a digest a child
// is `not_computed`, and an exact chain starts further back.
//
// Two kinds, told apart by the id. The digests of long runs and of entries stay as long as their
// blocks. Those of blocks that lie alone would cost more than the rest of such a block: of these
// there are as many as the user wants, and it goes round them to give some up.
//
// Owned by the index's writer; readers under an EpochGuard follow ids they got from published data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/index/chunked_array.h"
#include "src/index/entry.h"
#include "src/index/epoch.h"
#include "src/types.h"

namespace conductor {

using DigestId = std::uint32_t;  // 0: none
inline constexpr std::uint32_t kDigestIdBits = 26;

class DigestTable {
 public:
  explicit DigestTable(RetireList& retired) : retired_(retired) {}
  DigestTable(const DigestTable&) = delete;
  DigestTable& operator=(const DigestTable&) = delete;

  const Digest& At(DigestId id) const { return IsLone(id) ? lone_[id & ~kLone].digest : kept_[id]; }
  static bool IsLone(DigestId id) { return (id & kLone) != 0; }

  // --- writer -----------------------------------------------------------------------------------
  // 0: there is no room for more.
  DigestId Add(const Digest& digest);
  // `owner` is told by NextLone until the digest is retired.
  DigestId AddLone(const Digest& digest, EntryId owner);
  // No published data leads to it any more.
  void Retire(DigestId id);
  std::size_t lone() const { return lone_count_; }
  // Whose lone digest comes next, going round in about the order they came; 0: it was retired.
  // There is one.
  EntryId NextLone();

  void ShrinkIfEmpty();
  std::size_t bytes() const { return kept_.bytes() + lone_.bytes(); }

 private:
  static constexpr DigestId kLone = 1u << (kDigestIdBits - 1);
  static constexpr std::size_t kChunkBits = 10;
  static constexpr std::size_t kChunkCountMax = kLone >> kChunkBits;
  struct Lone {
    Digest digest;
    EntryId owner = 0;  // writer only; 0: retired. The owner's run has this digest's id
  };

  void Release(DigestId id);

  RetireList& retired_;
  ChunkedArray<Digest, kChunkBits, kChunkCountMax> kept_;
  ChunkedArray<Lone, kChunkBits, kChunkCountMax> lone_;
  std::size_t lone_count_ = 0;  // those of lone_ that have an owner
  std::uint32_t hand_ = 0;      // the id NextLone told last
};

}  // namespace conductor
