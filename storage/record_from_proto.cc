#include "storage/record_from_proto.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <string>
#include <utility>

#include "storage/record_check.h"

namespace conductor::storage {
namespace {

tl::unexpected<Error> Damaged(std::string message) {
  return MakeError(ErrorCode::kDataLoss, std::move(message));
}
tl::unexpected<Error> Newer(std::string message) {
  return MakeError(ErrorCode::kFailedPrecondition,
                   std::move(message) + " is not known to this build");
}

// The numbers of the domain are the numbers on disk.
static_assert(int{v1::TIER_DISK} == static_cast<int>(Tier::kDisk));
static_assert(int{v1::PUBLISHER_TYPE_MOONCAKE} == static_cast<int>(PublisherType::kMooncake));
static_assert(int{v1::HASH_STRATEGY_SGLANG_BIGRAM} ==
              static_cast<int>(HashStrategy::kSglangBigram));
static_assert(int{v1::HASH_ALGORITHM_SHA256_RAW} == static_cast<int>(HashAlgorithm::kSha256Raw));
static_assert(int{v1::REGISTRATION_ORIGIN_STATIC} == static_cast<int>(RegistrationOrigin::kStatic));
static_assert(int{v1::UNVERIFIED_BLOCKS_NAME_ONLY} ==
              static_cast<int>(UnverifiedBlocks::kNameOnly));
static_assert(int{v1::HASH_CHECK_NOT_COMPUTED} == static_cast<int>(HashCheck::kNotComputed));
static_assert(int{v1::IGNORE_REASON_SECOND_PUBLISHER} ==
              static_cast<int>(IgnoreReason::kSecondPublisher));
static_assert(int{v1::DROP_REASON_OPERATOR} == static_cast<int>(DropReason::kOperator));

template <typename Message>
Status CheckFields(const char* kind, const Message& message) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  if (unknown.empty()) return {};
  return Newer(std::string(kind) + ": field " + std::to_string(unknown.field(0).number()));
}

template <typename Enum>
Status ReadEnum(const char* field, int value, Enum* out) {
  if (value == 0) return Damaged(std::string(field) + ": missing");
  if (!IsKnown<Enum>(value)) return Newer(std::string(field) + " " + std::to_string(value));
  *out = static_cast<Enum>(value);
  return {};
}

template <typename Array>
Status ReadArray(const char* field, const std::string& bytes, Array* out) {
  if (bytes.size() != out->size()) {
    return Damaged(std::string(field) + ": " + std::to_string(bytes.size()) + " bytes, expected " +
                   std::to_string(out->size()));
  }
  std::copy(bytes.begin(), bytes.end(), out->begin());
  return {};
}

// A parallel array is as long as the names, or absent where the format says so.
Status CheckParallel(const char* field, int got, int expected, bool may_be_absent) {
  if (got == expected || (may_be_absent && got == 0)) return {};
  return Damaged(std::string(field) + ": " + std::to_string(got) + " entries, expected " +
                 std::to_string(expected));
}

Status ReadName(const v1::BlockName& message, BlockName* out) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("block name", message));
  out->projected = message.projected();
  out->digest = message.digest();
  return {};
}

Status ReadProfile(const v1::HashProfile& message, HashProfile* out) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("hash_profile", message));
  CONDUCTOR_RETURN_IF_ERROR(ReadEnum("hash strategy", message.strategy(), &out->strategy));
  CONDUCTOR_RETURN_IF_ERROR(ReadEnum("hash algorithm", message.algorithm(), &out->algorithm));
  out->python_hash_seed = message.python_hash_seed();
  return ReadArray("root_digest", message.root_digest(), &out->root_digest);
}

Status ReadRegistration(const v1::Registration& message, Registration* out) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("registration", message));
  out->instance_id = message.instance_id();
  out->endpoint = message.endpoint();
  out->replay_endpoint = message.replay_endpoint();
  out->snapshot_endpoint = message.snapshot_endpoint();
  out->has_topic = message.has_topic();
  out->topic = message.topic();
  CONDUCTOR_RETURN_IF_ERROR(ReadEnum("type", message.type(), &out->type));
  out->model_name = message.model_name();
  out->lora_name = message.lora_name();
  out->tenant_id = message.tenant_id();
  out->block_size = message.block_size();
  out->dp_rank = message.dp_rank();
  out->has_cache_group = message.has_cache_group();
  if (!message.has_hash_profile()) return Damaged("hash_profile: missing");
  CONDUCTOR_RETURN_IF_ERROR(ReadProfile(message.hash_profile(), &out->hash_profile));
  for (const v1::PoolPart& part : message.pool_parts()) {
    CONDUCTOR_RETURN_IF_ERROR(CheckFields("pool_parts", part));
    if (!out->pool_parts.empty() && part.name() <= out->pool_parts.rbegin()->first) {
      return Damaged("pool_parts: not ascending");
    }
    out->pool_parts.emplace(part.name(), part.total());
  }
  CONDUCTOR_RETURN_IF_ERROR(ReadEnum("origin", message.origin(), &out->origin));
  out->static_name = message.static_name();
  return {};
}

Status ReadStored(const v1::Stored& message, Stored* out) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("stored", message));
  CONDUCTOR_RETURN_IF_ERROR(ReadEnum("tier", message.tier(), &out->tier));
  if (message.has_lora_name()) out->lora_name = message.lora_name();
  out->has_tokens = !message.token_less();
  out->extra_keys_on_wire = message.extra_keys_on_wire();
  out->block_length = message.block_length();
  if (message.has_parent()) {
    CONDUCTOR_RETURN_IF_ERROR(ReadName(message.parent(), &out->parent.emplace()));
  }
  if (message.has_salt_digest()) {
    CONDUCTOR_RETURN_IF_ERROR(
        ReadArray("salt_digest", message.salt_digest(), &out->salt.emplace()));
  }
  if (message.has_last_digest()) {
    CONDUCTOR_RETURN_IF_ERROR(
        ReadArray("last_digest", message.last_digest(), &out->last_digest.emplace()));
  }
  const int count = message.names_size();
  CONDUCTOR_RETURN_IF_ERROR(CheckParallel("digests", message.digests_size(), count, true));
  CONDUCTOR_RETURN_IF_ERROR(
      CheckParallel("fingerprints", message.fingerprints_size(), count, true));
  const std::string& checks = message.checks();
  const bool one_check = checks.size() == 1 && count > 0;
  if (!one_check) {
    CONDUCTOR_RETURN_IF_ERROR(
        CheckParallel("checks", static_cast<int>(checks.size()), count, false));
  }
  out->blocks.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    StoredBlock& block = out->blocks[static_cast<std::size_t>(i)];
    block.name.projected = message.names(i);
    if (message.digests_size() != 0) block.name.digest = message.digests(i);
    if (message.fingerprints_size() != 0) block.fingerprint = message.fingerprints(i);
    const auto check = static_cast<std::uint8_t>(checks[one_check ? 0 : i]);
    CONDUCTOR_RETURN_IF_ERROR(ReadEnum("check", check, &block.check));
  }
  return {};
}

Status ReadRemoved(const v1::Removed& message, Removed* out) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("removed", message));
  CONDUCTOR_RETURN_IF_ERROR(ReadEnum("tier", message.tier(), &out->tier));
  const int count = message.names_size();
  CONDUCTOR_RETURN_IF_ERROR(CheckParallel("digests", message.digests_size(), count, true));
  out->names.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    BlockName& name = out->names[static_cast<std::size_t>(i)];
    name.projected = message.names(i);
    if (message.digests_size() != 0) name.digest = message.digests(i);
  }
  return {};
}

Status ReadPoolObject(const v1::PoolObject& message, std::vector<PoolOrigin>& origins,
                      PoolObject* out) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("pool object", message));
  CONDUCTOR_RETURN_IF_ERROR(ReadEnum("tier", message.tier(), &out->tier));
  out->origin = OriginNumber({message.backend_id(), message.tenant_id(), message.model_name(),
                              message.lora_name(), message.block_size()},
                             origins);
  out->part = message.part();
  if (!message.has_name()) return Damaged("name: missing");
  return ReadName(message.name(), &out->name);
}

// `origins` are those of its frame.
Status ReadEvent(const v1::Event& message, std::vector<PoolOrigin>& origins, Event* out) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("kind of event", message));
  switch (message.kind_case()) {
    case v1::Event::kStored:
      return ReadStored(message.stored(), &out->emplace<Stored>());
    case v1::Event::kRemoved:
      return ReadRemoved(message.removed(), &out->emplace<Removed>());
    case v1::Event::kCleared:
      out->emplace<Cleared>().all_tiers = message.cleared().all_tiers();
      return CheckFields("cleared", message.cleared());
    case v1::Event::kPoolStored:
      return ReadPoolObject(message.pool_stored(), origins, &out->emplace<PoolStored>());
    case v1::Event::kPoolRemoved:
      return ReadPoolObject(message.pool_removed(), origins, &out->emplace<PoolRemoved>());
    case v1::Event::kPoolCleared: {
      const v1::PoolCleared& cleared = message.pool_cleared();
      *out = PoolCleared{cleared.backend_id(), cleared.tenant_id()};
      return CheckFields("pool_cleared", cleared);
    }
    case v1::Event::KIND_NOT_SET:
      break;
  }
  return Damaged("kind of event: missing");
}

Status ReadFrame(const v1::Frame& message, Frame* out) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("frame", message));
  out->stream = message.stream();
  out->number = message.number();
  out->publisher_time_us = message.publisher_time_us();
  out->fingerprint = message.fingerprint();
  out->events.resize(static_cast<std::size_t>(message.events_size()));
  for (int i = 0; i < message.events_size(); ++i) {
    Status read =
        ReadEvent(message.events(i), out->origins, &out->events[static_cast<std::size_t>(i)]);
    if (!read) {
      return MakeError(read.error().code,
                       "event " + std::to_string(i) + ": " + read.error().message);
    }
  }
  const int reasons = message.ignored_reasons_size();
  CONDUCTOR_RETURN_IF_ERROR(
      CheckParallel("ignored_counts", message.ignored_counts_size(), reasons, false));
  for (int i = 0; i < reasons; ++i) {
    IgnoreReason reason;
    CONDUCTOR_RETURN_IF_ERROR(ReadEnum("ignored", message.ignored_reasons(i), &reason));
    if (!out->ignored.empty() && reason <= out->ignored.rbegin()->first) {
      return Damaged("ignored_reasons: not ascending");
    }
    out->ignored.emplace(reason, message.ignored_counts(i));
  }
  return {};
}

Status ReadPublisherSnapshot(const v1::PublisherSnapshot& message, PublisherSnapshot* out) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("publisher_snapshot", message));
  out->stream = message.stream();
  out->resume_number = message.resume_number();
  out->epoch = message.epoch();
  const int count = message.names_size();
  const std::string& has_parent = message.has_parent();
  CONDUCTOR_RETURN_IF_ERROR(CheckParallel("digests", message.digests_size(), count, true));
  CONDUCTOR_RETURN_IF_ERROR(
      CheckParallel("has_parent", static_cast<int>(has_parent.size()), count, false));
  CONDUCTOR_RETURN_IF_ERROR(CheckParallel("parents", message.parents_size(), count, false));
  CONDUCTOR_RETURN_IF_ERROR(
      CheckParallel("parent_digests", message.parent_digests_size(), count, true));
  out->links.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    auto& [parent, name] = out->links[static_cast<std::size_t>(i)];
    name.projected = message.names(i);
    if (message.digests_size() != 0) name.digest = message.digests(i);
    const bool with_digest = message.parent_digests_size() != 0;
    if (has_parent[i] == 1) {
      parent = BlockName{message.parents(i), with_digest ? message.parent_digests(i) : ""};
    } else if (has_parent[i] != 0) {
      return Damaged("has_parent: " + std::to_string(has_parent[i]) + ", expected 0 or 1");
    } else if (message.parents(i) != 0 || (with_digest && !message.parent_digests(i).empty())) {
      return Damaged("parents: given for link " + std::to_string(i) + ", which has none");
    }
  }
  return {};
}

Status ReadRegistered(const v1::Registered& message, Registered* out) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("registered", message));
  if (!message.has_registration()) return Damaged("registration: missing");
  CONDUCTOR_RETURN_IF_ERROR(
      ReadEnum("unverified_blocks", message.unverified_blocks(), &out->unverified_blocks));
  return ReadRegistration(message.registration(), &out->registration);
}

Status ReadEvicted(const v1::Evicted& message, Evicted* out) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("evicted", message));
  out->stream = message.stream();
  out->lora_name = message.lora_name();
  out->tenant_id = message.tenant_id();
  out->model_name = message.model_name();
  out->block_size = message.block_size();
  CONDUCTOR_RETURN_IF_ERROR(ReadEnum("tier", message.tier(), &out->tier));
  if (!message.has_name()) return Damaged("name: missing");
  return ReadName(message.name(), &out->name);
}

Status ReadFact(const v1::Fact& message, Fact* out) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("kind of fact", message));
  switch (message.kind_case()) {
    case v1::Fact::kRegistered:
      return ReadRegistered(message.registered(), &out->emplace<Registered>());
    case v1::Fact::kUnregistered: {
      const v1::Unregistered& in = message.unregistered();
      *out = Unregistered{{in.instance_id(), in.tenant_id(), in.dp_rank()}};
      return CheckFields("unregistered", in);
    }
    case v1::Fact::kFrame:
      return ReadFrame(message.frame(), &out->emplace<Frame>());
    case v1::Fact::kNewEpoch: {
      NewEpoch& epoch = out->emplace<NewEpoch>();
      epoch.stream = message.new_epoch().stream();
      CONDUCTOR_RETURN_IF_ERROR(CheckFields("new_epoch", message.new_epoch()));
      return ReadEnum("unverified_blocks", message.new_epoch().unverified_blocks(),
                      &epoch.unverified_blocks);
    }
    case v1::Fact::kCountingGroup: {
      const v1::CountingGroup& in = message.counting_group();
      *out = CountingGroup{in.stream(), in.group()};
      return CheckFields("counting_group", in);
    }
    case v1::Fact::kHistoryStart: {
      const v1::HistoryStart& in = message.history_start();
      *out = HistoryStart{in.stream(), in.number()};
      return CheckFields("history_start", in);
    }
    case v1::Fact::kLost:
      *out = Lost{message.lost().stream(), message.lost().from(), message.lost().to()};
      return CheckFields("lost", message.lost());
    case v1::Fact::kDropped: {
      Dropped& dropped = out->emplace<Dropped>();
      dropped.stream = message.dropped().stream();
      CONDUCTOR_RETURN_IF_ERROR(CheckFields("dropped", message.dropped()));
      return ReadEnum("reason", message.dropped().reason(), &dropped.reason);
    }
    case v1::Fact::kEvicted:
      return ReadEvicted(message.evicted(), &out->emplace<Evicted>());
    case v1::Fact::kPublisherSnapshot:
      return ReadPublisherSnapshot(message.publisher_snapshot(),
                                   &out->emplace<PublisherSnapshot>());
    case v1::Fact::KIND_NOT_SET:
      break;
  }
  return Damaged("kind of fact: missing");
}

}  // namespace

Result<Record> FromProto(const v1::Record& message) {
  CONDUCTOR_RETURN_IF_ERROR(CheckFields("record", message));
  Record record;
  record.facts.resize(static_cast<std::size_t>(message.facts_size()));
  for (int i = 0; i < message.facts_size(); ++i) {
    Status read = ReadFact(message.facts(i), &record.facts[static_cast<std::size_t>(i)]);
    if (!read) {
      return MakeError(read.error().code,
                       "fact " + std::to_string(i) + ": " + read.error().message);
    }
  }
  return record;
}

Result<Fact> FromProto(const v1::Fact& message) {
  Fact fact;
  CONDUCTOR_RETURN_IF_ERROR(ReadFact(message, &fact));
  return fact;
}

}  // namespace conductor::storage
