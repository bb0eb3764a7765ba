// SegmentMap: 64-bit hash -> 32-bit id, one writer, readers without a lock.
//
// Extendible hashing: a directory of small open-addressing segments. A full segment is split by
// writing two new ones and publishing them; the old one is retired, unchanged, so a reader always
// probes a consistent table. Growth is incremental: one split copies at most a segment, one
// doubling of the directory copies pointers.
//
// A slot keeps only 32 bits of the hash. Keys whose 32 bits are equal share a slot: the id is the
// head of a chain that the user keeps in its own elements and whose keys it compares itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "src/index/epoch.h"

namespace conductor {

class SegmentMap {
 public:
  explicit SegmentMap(RetireList& retired);
  ~SegmentMap();
  SegmentMap(const SegmentMap&) = delete;
  SegmentMap& operator=(const SegmentMap&) = delete;

  // The head id of `hash`, or 0. Readers: under an EpochGuard.
  std::uint32_t Find(std::uint64_t hash) const;

  // Writer only. `id` is neither 0 nor 0xffffffff.
  void Set(std::uint64_t hash, std::uint32_t id);
  void Erase(std::uint64_t hash);

  // Whether two hashes share a slot, and so a chain.
  static bool SameSlot(std::uint64_t a, std::uint64_t b) { return Tag(a) == Tag(b); }

  std::size_t bytes() const { return bytes_; }
  std::size_t size() const { return size_; }

 private:
  struct Segment;
  struct Directory;

  static std::uint32_t Tag(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
  Segment* Locate(std::uint32_t tag) const;
  Segment* NewSegment(std::uint32_t depth, std::uint32_t capacity);
  void RetireSegment(Segment* segment);
  void MakeRoom(Segment* segment, std::uint32_t tag);
  void Publish(std::uint32_t tag, std::uint32_t depth, Segment* low, Segment* high);
  void DoubleDirectory();

  RetireList& retired_;
  std::atomic<Directory*> directory_;
  std::size_t bytes_ = 0;
  std::size_t size_ = 0;
};

}  // namespace conductor
