#include "src/state/stream_facts.h"

#include <algorithm>

#include "src/limits.h"

namespace conductor {
namespace {

// Bytes for a mix: fixed widths, texts with their length.
class MixBytes {
 public:
  void Add(std::uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }
  void Add(const std::string& text) {
    Add(text.size());
    bytes_ += text;
  }
  template <typename T>
  void AddOptional(const std::optional<T>& value) {
    Add(value ? 1 : 0);
    Add(value ? static_cast<std::uint64_t>(*value) : 0);
  }
  Sum128 Mix() const { return FactMix(bytes_.data(), bytes_.size()); }

 private:
  std::string bytes_;
};

}  // namespace

std::string_view ToString(IgnoreReason reason) {
  switch (reason) {
    case IgnoreReason::kUndecodableFrame:
      return "undecodable_frames";
    case IgnoreReason::kUndecodableEvent:
      return "undecodable_events";
    case IgnoreReason::kOtherGroup:
      return "other_group";
    case IgnoreReason::kUnknownMedium:
      return "unknown_medium";
    case IgnoreReason::kPartialEntry:
      return "partial_entry";
    case IgnoreReason::kRemote:
      return "remote";
    case IgnoreReason::kRankMismatch:
      return "rank_mismatch";
    case IgnoreReason::kBlockSizeMismatch:
      return "block_size_mismatch";
    case IgnoreReason::kAmbiguousLength:
      return "ambiguous_length";
    case IgnoreReason::kTopicMismatch:
      return "topic_mismatch";
    case IgnoreReason::kUnparsableKey:
      return "unparsable_key";
    case IgnoreReason::kUnsupported:
      return "unsupported";
    case IgnoreReason::kSecondPublisher:
      return "second_publisher";
  }
  return "unknown";
}

void StreamFacts::StartLife(UnverifiedBlocks mode) {
  unverified_blocks = mode;
  cursor.reset();
  history_from.reset();
  counting_group.reset();
  verified_ever = differs_ever = seen_full_size_block = false;
  lost.clear();
  publisher_epoch.clear();
  recent.clear();
}

void StreamFacts::AddLost(std::uint64_t from, std::uint64_t to) {
  numbers_lost += to - from + 1;
  if (!lost.empty() && from <= lost.back().second + 1) {
    lost.back().second = std::max(lost.back().second, to);
    return;
  }
  lost.emplace_back(from, to);
  if (lost.size() > kLostRangesPerStreamMax) {
    // The two oldest become one that covers both: more may be called lost, never less.
    lost[1].first = lost[0].first;
    lost.erase(lost.begin());
  }
}

void StreamFacts::AddRecent(std::uint64_t number, std::uint64_t fingerprint) {
  recent.emplace_back(number, fingerprint);
  if (recent.size() > kRecentFingerprintsPerStream) recent.pop_front();
}

std::string_view StreamFacts::HashCheckWord() const {
  if (verified_ever) return "verified";
  return differs_ever ? "mismatch" : "unknown";
}

std::vector<std::pair<std::string, std::uint64_t>> StreamFacts::Counters() const {
  std::vector<std::pair<std::string, std::uint64_t>> counters = {
      {"frames_total", frames},
      {"blocks_stored_total", blocks_stored},
      {"blocks_removed_total", blocks_removed},
      {"remove_unknown_total", remove_unknown},
      {"blocks_rejected_total", blocks_rejected},
      {"fragments_rejected_total", fragments_rejected},
      {"clears_total", clears},
      {"epoch_changes_total", epoch_changes},
      {"lost_total", numbers_lost},
      {"drops_total", drops},
      {"evictions_total", evictions},
      {"publisher_snapshots_total", snapshots},
  };
  std::uint64_t decode_errors = 0;
  for (int i = 1; i <= kIgnoreReasonCount; ++i) {
    const auto reason = static_cast<IgnoreReason>(i);
    // Refused before they are frames of the stream: counted where they are read, not in the log.
    if (reason == IgnoreReason::kTopicMismatch || reason == IgnoreReason::kSecondPublisher)
      continue;
    const std::uint64_t count = ignored[static_cast<std::size_t>(i)];
    if (reason == IgnoreReason::kUndecodableFrame || reason == IgnoreReason::kUndecodableEvent) {
      decode_errors += count;
    }
    counters.emplace_back("ignored_" + std::string(ToString(reason)) + "_total", count);
  }
  counters.emplace_back("decode_errors_total", decode_errors);
  return counters;
}

StreamSeed StreamFacts::Seed() const {
  StreamSeed seed;
  seed.stream = id;
  seed.registration = registration;
  seed.epoch = epoch;
  seed.cursor = cursor;
  seed.history_from = history_from;
  seed.counting_group = counting_group;
  seed.seen_full_size_block = seen_full_size_block;
  seed.has_lost_ranges = !lost.empty();
  seed.publisher_epoch = publisher_epoch;
  seed.recent.assign(recent.begin(), recent.end());
  return seed;
}

Sum128 StreamFacts::IdentityMix() const {
  MixBytes bytes;
  bytes.Add(registration.instance_id);
  bytes.Add(registration.tenant_id);
  bytes.Add(registration.dp_rank);
  return bytes.Mix();
}

Sum128 StreamFacts::FactsMix() const {
  const Registration& r = registration;
  MixBytes bytes;
  for (const std::string* text :
       {&r.instance_id, &r.tenant_id, &r.endpoint, &r.replay_endpoint, &r.snapshot_endpoint,
        &r.topic, &r.model_name, &r.lora_name, &r.hash_profile.python_hash_seed}) {
    bytes.Add(*text);
  }
  bytes.Add(r.has_topic ? 1 : 0);
  bytes.Add(static_cast<std::uint64_t>(r.type));
  bytes.Add(r.block_size);
  bytes.Add(r.dp_rank);
  bytes.Add(static_cast<std::uint64_t>(r.hash_profile.strategy));
  bytes.Add(static_cast<std::uint64_t>(r.hash_profile.algorithm));
  bytes.Add(r.pool_parts.size());
  for (const auto& [part, total] : r.pool_parts) {
    bytes.Add(part);
    bytes.Add(total);
  }
  bytes.Add(static_cast<std::uint64_t>(unverified_blocks));
  bytes.Add(epoch);
  bytes.AddOptional(cursor);
  bytes.AddOptional(history_from);
  bytes.AddOptional(counting_group);
  bytes.Add((verified_ever ? 1u : 0u) | (differs_ever ? 2u : 0u) |
            (seen_full_size_block ? 4u : 0u));
  bytes.Add(lost.size());
  for (const auto& [from, to] : lost) {
    bytes.Add(from);
    bytes.Add(to);
  }
  bytes.Add(recent.size());
  for (const auto& [number, fingerprint] : recent) {
    bytes.Add(number);
    bytes.Add(fingerprint);
  }
  // Only where there is one: the digests of older logs stay what they were.
  if (!publisher_epoch.empty()) bytes.Add(publisher_epoch);
  return bytes.Mix();
}

}  // namespace conductor
