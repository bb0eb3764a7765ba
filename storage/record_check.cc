#include "storage/record_check.h"

#include <string>
#include <string_view>
#include <type_traits>

#include "src/limits.h"
#include "storage/log_format.h"

namespace conductor::storage {
namespace {

tl::unexpected<Error> Refuse(std::string message) {
  return MakeError(ErrorCode::kInvalidArgument, std::move(message));
}

Status CheckText(const char* field, std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return {};
  return Refuse(std::string(field) + ": " + std::to_string(text.size()) +
                " bytes, expected at most " + std::to_string(bytes_max));
}

Status CheckNumber(const char* field, std::uint64_t value, std::uint64_t value_max) {
  if (value <= value_max) return {};
  return Refuse(std::string(field) + ": " + std::to_string(value) + ", expected at most " +
                std::to_string(value_max));
}

template <typename Enum>
Status CheckEnum(const char* field, Enum value) {
  if (IsKnown<Enum>(static_cast<std::int64_t>(value))) return {};
  return Refuse(std::string(field) + ": " + std::to_string(static_cast<int>(value)) +
                " is no value of it");
}

Status CheckStream(StreamId stream) {
  if (stream != 0) return {};
  return Refuse("stream: 0, expected 1 or more");
}

Status CheckName(const char* field, const BlockName& name) {
  const std::size_t size = name.digest.size();
  if (size == 0 || (size >= kBlockDigestBytesMin && size <= kBlockDigestBytesMax)) return {};
  return Refuse(std::string(field) + ": a digest of " + std::to_string(size) +
                " bytes, expected none or " + std::to_string(kBlockDigestBytesMin) + " to " +
                std::to_string(kBlockDigestBytesMax));
}

Status CheckProfile(const HashProfile& profile) {
  CONDUCTOR_RETURN_IF_ERROR(CheckEnum("hash strategy", profile.strategy));
  CONDUCTOR_RETURN_IF_ERROR(CheckEnum("hash algorithm", profile.algorithm));
  return CheckText("python_hash_seed", profile.python_hash_seed, kNameBytesMax);
}

Status CheckRegistration(const Registration& registration) {
  const struct {
    const char* field;
    const std::string& text;
    std::size_t bytes_max;
  } texts[] = {
      {"instance_id", registration.instance_id, kNameBytesMax},
      {"endpoint", registration.endpoint, kEndpointBytesMax},
      {"replay_endpoint", registration.replay_endpoint, kEndpointBytesMax},
      {"snapshot_endpoint", registration.snapshot_endpoint, kEndpointBytesMax},
      {"topic", registration.topic, kNameBytesMax},
      {"model_name", registration.model_name, kNameBytesMax},
      {"lora_name", registration.lora_name, kNameBytesMax},
      {"tenant_id", registration.tenant_id, kNameBytesMax},
      {"static_name", registration.static_name, kNameBytesMax},
  };
  for (const auto& entry : texts) {
    CONDUCTOR_RETURN_IF_ERROR(CheckText(entry.field, entry.text, entry.bytes_max));
  }
  if (!registration.has_topic && !registration.topic.empty()) {
    return Refuse("topic: given although the registration has none");
  }
  CONDUCTOR_RETURN_IF_ERROR(CheckEnum("type", registration.type));
  CONDUCTOR_RETURN_IF_ERROR(CheckEnum("origin", registration.origin));
  CONDUCTOR_RETURN_IF_ERROR(CheckNumber("block_size", registration.block_size, kBlockSizeMax));
  CONDUCTOR_RETURN_IF_ERROR(CheckNumber("dp_rank", registration.dp_rank, kDpRankMax));
  CONDUCTOR_RETURN_IF_ERROR(
      CheckNumber("pool_parts", registration.pool_parts.size(), kPoolPartsMax));
  for (const auto& [part, total] : registration.pool_parts) {
    CONDUCTOR_RETURN_IF_ERROR(CheckText("pool_parts", part, kNameBytesMax));
  }
  return CheckProfile(registration.hash_profile);
}

Status CheckOrigin(const PoolOrigin& origin) {
  CONDUCTOR_RETURN_IF_ERROR(CheckText("backend_id", origin.backend_id, kNameBytesMax));
  CONDUCTOR_RETURN_IF_ERROR(CheckText("tenant_id", origin.tenant_id, kNameBytesMax));
  CONDUCTOR_RETURN_IF_ERROR(CheckText("model_name", origin.model_name, kNameBytesMax));
  CONDUCTOR_RETURN_IF_ERROR(CheckText("lora_name", origin.lora_name, kNameBytesMax));
  return CheckNumber("block_size", origin.block_size, kBlockSizeMax);
}

// One overload for each kind of event and of fact.
struct Checker {
  std::size_t origins = 0;  // of the frame at hand

  Status operator()(const Stored& stored) const {
    CONDUCTOR_RETURN_IF_ERROR(CheckEnum("tier", stored.tier));
    if (stored.lora_name) {
      CONDUCTOR_RETURN_IF_ERROR(CheckText("lora_name", *stored.lora_name, kNameBytesMax));
    }
    CONDUCTOR_RETURN_IF_ERROR(CheckNumber("block_length", stored.block_length, kBlockSizeMax));
    if (stored.parent && stored.salt) {
      return Refuse("salt: given beside a parent, expected only at the root");
    }
    if (stored.parent) CONDUCTOR_RETURN_IF_ERROR(CheckName("parent", *stored.parent));
    for (const StoredBlock& block : stored.blocks) {
      CONDUCTOR_RETURN_IF_ERROR(CheckName("name", block.name));
      CONDUCTOR_RETURN_IF_ERROR(CheckEnum("check", block.check));
    }
    return {};
  }
  Status operator()(const Removed& removed) const {
    CONDUCTOR_RETURN_IF_ERROR(CheckEnum("tier", removed.tier));
    for (const BlockName& name : removed.names) {
      CONDUCTOR_RETURN_IF_ERROR(CheckName("name", name));
    }
    return {};
  }
  Status operator()(const Cleared&) const { return {}; }
  Status operator()(const PoolObject& object) const {
    CONDUCTOR_RETURN_IF_ERROR(CheckEnum("tier", object.tier));
    CONDUCTOR_RETURN_IF_ERROR(CheckText("part", object.part, kNameBytesMax));
    if (object.origin >= origins) {
      return Refuse("origin: " + std::to_string(object.origin) + ", expected less than " +
                    std::to_string(origins));
    }
    return CheckName("name", object.name);
  }
  Status operator()(const PoolCleared& cleared) const {
    CONDUCTOR_RETURN_IF_ERROR(CheckText("backend_id", cleared.backend_id, kNameBytesMax));
    return CheckText("tenant_id", cleared.tenant_id, kNameBytesMax);
  }

  Status operator()(const Registered& registered) const {
    CONDUCTOR_RETURN_IF_ERROR(CheckEnum("unverified_blocks", registered.unverified_blocks));
    return CheckRegistration(registered.registration);
  }
  Status operator()(const Unregistered& unregistered) const {
    CONDUCTOR_RETURN_IF_ERROR(
        CheckText("instance_id", unregistered.key.instance_id, kNameBytesMax));
    CONDUCTOR_RETURN_IF_ERROR(CheckText("tenant_id", unregistered.key.tenant_id, kNameBytesMax));
    return CheckNumber("dp_rank", unregistered.key.dp_rank, kDpRankMax);
  }
  Status operator()(const Frame& frame) const {
    CONDUCTOR_RETURN_IF_ERROR(CheckStream(frame.stream));
    for (std::size_t i = 0; i < frame.origins.size(); ++i) {
      Status checked = CheckOrigin(frame.origins[i]);
      if (!checked) return Refuse("origin " + std::to_string(i) + ": " + checked.error().message);
    }
    const Checker of_frame{frame.origins.size()};
    for (std::size_t i = 0; i < frame.events.size(); ++i) {
      Status checked = std::visit(of_frame, frame.events[i]);
      if (!checked) {
        return Refuse("event " + std::to_string(i) + " (" + KindName(frame.events[i]) +
                      "): " + checked.error().message);
      }
    }
    for (const auto& [reason, count] : frame.ignored) {
      CONDUCTOR_RETURN_IF_ERROR(CheckEnum("ignored", reason));
    }
    return {};
  }
  Status operator()(const NewEpoch& epoch) const {
    CONDUCTOR_RETURN_IF_ERROR(CheckStream(epoch.stream));
    return CheckEnum("unverified_blocks", epoch.unverified_blocks);
  }
  Status operator()(const CountingGroup& group) const { return CheckStream(group.stream); }
  Status operator()(const HistoryStart& start) const { return CheckStream(start.stream); }
  Status operator()(const Lost& lost) const {
    CONDUCTOR_RETURN_IF_ERROR(CheckStream(lost.stream));
    if (lost.from <= lost.to) return {};
    return Refuse("range: from " + std::to_string(lost.from) + " to " + std::to_string(lost.to) +
                  ", expected from <= to");
  }
  Status operator()(const Dropped& dropped) const {
    CONDUCTOR_RETURN_IF_ERROR(CheckStream(dropped.stream));
    return CheckEnum("reason", dropped.reason);
  }
  Status operator()(const Evicted& evicted) const {
    CONDUCTOR_RETURN_IF_ERROR(CheckStream(evicted.stream));
    CONDUCTOR_RETURN_IF_ERROR(CheckEnum("tier", evicted.tier));
    CONDUCTOR_RETURN_IF_ERROR(CheckText("lora_name", evicted.lora_name, kNameBytesMax));
    CONDUCTOR_RETURN_IF_ERROR(CheckText("tenant_id", evicted.tenant_id, kNameBytesMax));
    CONDUCTOR_RETURN_IF_ERROR(CheckText("model_name", evicted.model_name, kNameBytesMax));
    CONDUCTOR_RETURN_IF_ERROR(CheckNumber("block_size", evicted.block_size, kBlockSizeMax));
    return CheckName("name", evicted.name);
  }
  Status operator()(const PublisherSnapshot& snapshot) const {
    CONDUCTOR_RETURN_IF_ERROR(CheckStream(snapshot.stream));
    CONDUCTOR_RETURN_IF_ERROR(CheckText("epoch", snapshot.epoch, kNameBytesMax));
    for (const auto& [parent, name] : snapshot.links) {
      if (parent) CONDUCTOR_RETURN_IF_ERROR(CheckName("parent", *parent));
      CONDUCTOR_RETURN_IF_ERROR(CheckName("name", name));
    }
    return {};
  }
};

}  // namespace

Status CheckRecord(const Record& record) {
  for (std::size_t i = 0; i < record.facts.size(); ++i) {
    Status checked = std::visit(Checker{}, record.facts[i]);
    if (!checked) {
      return Refuse("fact " + std::to_string(i) + " (" + KindName(record.facts[i]) +
                    "): " + checked.error().message);
    }
  }
  return {};
}

const char* KindName(const Fact& fact) {
  static constexpr const char* kNames[] = {
      "registered",    "unregistered", "frame",   "new_epoch", "counting_group",
      "history_start", "lost",         "dropped", "evicted",   "publisher_snapshot"};
  static_assert(std::size(kNames) == std::variant_size_v<Fact>);
  return kNames[fact.index()];
}

const char* KindName(const Event& event) {
  static constexpr const char* kNames[] = {"stored",      "removed",      "cleared",
                                           "pool_stored", "pool_removed", "pool_cleared"};
  static_assert(std::size(kNames) == std::variant_size_v<Event>);
  return kNames[event.index()];
}

}  // namespace conductor::storage
