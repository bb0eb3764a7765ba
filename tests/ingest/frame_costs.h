// What frames of one kind allocate, and the bound that all publishers are held to: more blocks in a
// frame cost no more than fewer, but for a constant.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "tests/ingest/ingest_path.h"

namespace conductor::ingest_test {

inline constexpr std::size_t kFrames = 8;
// Apply's tables grow by chunks, and what a block leaves behind is freed in chunks.
inline constexpr std::size_t kBlocksPerChunk = 16;
// Lists of a frame and of a log's batch that grow by doubling.
inline constexpr std::size_t kSlack = 8;

// RocksDB writes a record in pieces of this size, and allocates for each.
inline constexpr std::size_t kPieceBytes = 32u << 10;
inline constexpr std::size_t kPerPiece = 8;

// The least of several frames of a kind: without the growth of tables, which only some frames meet.
template <typename MakePayload>
StepCounts Least(IngestPath& path, const MakePayload& make_payload) {
  StepCounts least = path.Take(make_payload());
  for (std::size_t i = 1; i < kFrames; ++i) {
    const StepCounts counts = path.Take(make_payload());
    least.translate = std::min(least.translate, counts.translate);
    least.log = std::min(least.log, counts.log);
    least.read = std::min(least.read, counts.read);
    least.apply = std::min(least.apply, counts.apply);
    least.record_bytes = std::max(least.record_bytes, counts.record_bytes);
  }
  return least;
}

// `more` blocks in as many events cost what fewer cost, but for a constant.
inline void ExpectAlike(const StepCounts& fewer, const StepCounts& more, std::size_t blocks) {
  EXPECT_LE(more.translate, fewer.translate + kSlack);
  EXPECT_LE(more.log, fewer.log + kSlack + kPerPiece * (more.record_bytes / kPieceBytes));
  EXPECT_LE(more.read, fewer.read + kSlack);
  EXPECT_LE(more.apply, fewer.apply + kSlack + blocks / kBlocksPerChunk);
}

}  // namespace conductor::ingest_test
