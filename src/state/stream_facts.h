// StreamFacts: what the log says about one stream (one registration). Part of the state: the same
// after every restart. The apply thread mutates it; others copy it under the catalogue's lock.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/fact.h"
#include "src/index/entry.h"
#include "src/index/mix.h"
#include "src/ports.h"

namespace conductor {

inline constexpr int kIgnoreReasonCount = 13;

struct StreamFacts {
  StreamId id = 0;
  Registration registration;

  // --- this life of the publisher ---------------------------------------------------------------
  UnverifiedBlocks unverified_blocks = UnverifiedBlocks::kContent;
  std::uint64_t epoch = 1;
  std::optional<std::uint64_t> cursor;  // last number applied or lost
  std::optional<std::uint64_t> history_from;
  std::optional<std::int64_t> counting_group;
  bool verified_ever = false;  // a block's name was equal to its recomputed hash
  bool differs_ever = false;
  bool seen_full_size_block = false;
  // Inclusive, ascending, not adjacent; at most kLostRangesPerStreamMax.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> lost;
  // SGLang's word for this life, from a snapshot; empty: not known.
  std::string publisher_epoch;
  // (number, fingerprint) of the last frames; at most kRecentFingerprintsPerStream.
  std::deque<std::pair<std::uint64_t, std::uint64_t>> recent;

  // --- the whole registration -------------------------------------------------------------------
  std::set<ContextId> contexts;  // registered for or stored into
  // The one that it is registered for, if it is hashed as the registration says: both stay so for as
  // long as the stream is registered. Else 0. Not a fact of its own.
  ContextId own_context = 0;
  std::int64_t last_publisher_time_us = 0;

  // Counters; derived from the log, not part of the digest.
  std::uint64_t frames = 0, blocks_stored = 0, blocks_removed = 0, remove_unknown = 0;
  std::uint64_t blocks_rejected = 0, fragments_rejected = 0, clears = 0, epoch_changes = 0;
  std::uint64_t numbers_lost = 0, drops = 0, evictions = 0, snapshots = 0;
  std::array<std::uint64_t, kIgnoreReasonCount + 1> ignored{};  // by IgnoreReason

  void StartLife(UnverifiedBlocks mode);
  void AddLost(std::uint64_t from, std::uint64_t to);
  void AddRecent(std::uint64_t number, std::uint64_t fingerprint);
  std::string_view HashCheckWord() const;  // "verified", "mismatch", "unknown"
  std::vector<std::pair<std::string, std::uint64_t>> Counters() const;
  StreamSeed Seed() const;
  // Identity by facts (not by id), and everything the digest covers.
  Sum128 IdentityMix() const;
  Sum128 FactsMix() const;
};

std::string_view ToString(IgnoreReason reason);

}  // namespace conductor
