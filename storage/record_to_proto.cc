#include "storage/record_to_proto.h"

#include <string>

#include "src/check.h"

namespace conductor::storage {
namespace {

std::string_view Bytes(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

v1::Tier ToProto(Tier tier) {
  return static_cast<v1::Tier>(tier);
}

void ToProto(const BlockName& name, v1::BlockName* message) {
  message->set_projected(name.projected);
  if (!name.digest.empty()) message->set_digest(name.digest.data(), name.digest.size());
}

// Names as parallel arrays: `name_of(i)` for i below `count`.
template <typename NameOf, typename Message>
void NamesToProto(std::size_t count, const NameOf& name_of, Message* message) {
  message->mutable_names()->Reserve(static_cast<int>(count));
  bool any_digest = false;
  for (std::size_t i = 0; i < count; ++i) {
    message->add_names(name_of(i).projected);
    any_digest = any_digest || !name_of(i).digest.empty();
  }
  if (!any_digest) return;
  for (std::size_t i = 0; i < count; ++i) {
    const WholeDigest& digest = name_of(i).digest;
    message->add_digests(digest.data(), digest.size());
  }
}

void ToProto(const Registration& registration, v1::Registration* message) {
  message->set_instance_id(registration.instance_id);
  message->set_endpoint(registration.endpoint);
  message->set_replay_endpoint(registration.replay_endpoint);
  message->set_snapshot_endpoint(registration.snapshot_endpoint);
  if (registration.has_topic) message->set_topic(registration.topic);
  message->set_type(static_cast<v1::PublisherType>(registration.type));
  message->set_model_name(registration.model_name);
  message->set_lora_name(registration.lora_name);
  message->set_tenant_id(registration.tenant_id);
  message->set_block_size(registration.block_size);
  message->set_dp_rank(registration.dp_rank);
  message->set_has_cache_group(registration.has_cache_group);
  v1::HashProfile* profile = message->mutable_hash_profile();
  profile->set_strategy(static_cast<v1::HashStrategy>(registration.hash_profile.strategy));
  profile->set_algorithm(static_cast<v1::HashAlgorithm>(registration.hash_profile.algorithm));
  profile->set_python_hash_seed(registration.hash_profile.python_hash_seed);
  profile->set_root_digest(std::string(Bytes(registration.hash_profile.root_digest)));
  for (const auto& [part, total] : registration.pool_parts) {
    v1::PoolPart* entry = message->add_pool_parts();
    entry->set_name(part);
    entry->set_total(total);
  }
  message->set_origin(static_cast<v1::RegistrationOrigin>(registration.origin));
  message->set_static_name(registration.static_name);
}

struct FactWriter {
  v1::Fact* message;

  void operator()(const Registered& registered) const {
    v1::Registered* out = message->mutable_registered();
    ToProto(registered.registration, out->mutable_registration());
    out->set_unverified_blocks(static_cast<v1::UnverifiedBlocks>(registered.unverified_blocks));
  }
  void operator()(const Unregistered& unregistered) const {
    v1::Unregistered* out = message->mutable_unregistered();
    out->set_instance_id(unregistered.key.instance_id);
    out->set_tenant_id(unregistered.key.tenant_id);
    out->set_dp_rank(unregistered.key.dp_rank);
  }
  void operator()(const Frame&) const { CHECK(false); }  // never comes here
  void operator()(const NewEpoch& epoch) const {
    v1::NewEpoch* out = message->mutable_new_epoch();
    out->set_stream(epoch.stream);
    out->set_unverified_blocks(static_cast<v1::UnverifiedBlocks>(epoch.unverified_blocks));
  }
  void operator()(const CountingGroup& group) const {
    message->mutable_counting_group()->set_stream(group.stream);
    message->mutable_counting_group()->set_group(group.group);
  }
  void operator()(const HistoryStart& start) const {
    message->mutable_history_start()->set_stream(start.stream);
    message->mutable_history_start()->set_number(start.number);
  }
  void operator()(const Lost& lost) const {
    v1::Lost* out = message->mutable_lost();
    out->set_stream(lost.stream);
    out->set_from(lost.from);
    out->set_to(lost.to);
  }
  void operator()(const Dropped& dropped) const {
    message->mutable_dropped()->set_stream(dropped.stream);
    message->mutable_dropped()->set_reason(static_cast<v1::DropReason>(dropped.reason));
  }
  void operator()(const Evicted& evicted) const {
    v1::Evicted* out = message->mutable_evicted();
    out->set_stream(evicted.stream);
    out->set_tier(ToProto(evicted.tier));
    out->set_lora_name(evicted.lora_name);
    ToProto(evicted.name, out->mutable_name());
    out->set_tenant_id(evicted.tenant_id);
    out->set_model_name(evicted.model_name);
    out->set_block_size(evicted.block_size);
  }
  void operator()(const PublisherSnapshot& snapshot) const {
    v1::PublisherSnapshot* out = message->mutable_publisher_snapshot();
    out->set_stream(snapshot.stream);
    out->set_resume_number(snapshot.resume_number);
    out->set_epoch(snapshot.epoch);
    const auto& links = snapshot.links;
    NamesToProto(
        links.size(), [&](std::size_t i) -> const BlockName& { return links[i].second; }, out);
    bool any_digest = false;
    for (const auto& [parent, name] : links) {
      out->mutable_has_parent()->push_back(parent ? 1 : 0);
      out->add_parents(parent ? parent->projected : 0);
      any_digest = any_digest || (parent && !parent->digest.empty());
    }
    if (!any_digest) return;
    const WholeDigest none;
    for (const auto& [parent, name] : links) {
      const WholeDigest& digest = parent ? parent->digest : none;
      out->add_parent_digests(digest.data(), digest.size());
    }
  }
};

}  // namespace

void ToProto(const Fact& fact, v1::Fact* message) {
  std::visit(FactWriter{message}, fact);
}

}  // namespace conductor::storage
