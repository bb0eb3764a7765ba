#include "fuzz/fact_text.h"

#include <type_traits>

namespace conductor::fuzz {
namespace {

// One overload of Put for each kind of value; texts carry their length, so that no two values can
// run into each other.
class Writer {
 public:
  template <typename Number>
  requires std::is_integral_v<Number> || std::is_enum_v<Number> Writer& operator<<(Number value) {
    text_ += std::to_string(static_cast<std::int64_t>(value)) + " ";
    return *this;
  }
  Writer& operator<<(const std::string& value) {
    text_ += std::to_string(value.size()) + ":" + value + " ";
    return *this;
  }
  template <std::size_t N>
  Writer& operator<<(const std::array<std::uint8_t, N>& value) {
    return *this << std::string(value.begin(), value.end());
  }
  template <typename Value>
  Writer& operator<<(const std::optional<Value>& value) {
    *this << value.has_value();
    return value ? *this << *value : *this;
  }
  template <typename Value>
  Writer& operator<<(const std::vector<Value>& values) {
    *this << values.size();
    for (const Value& value : values) *this << value;
    return *this;
  }
  template <typename First, typename Second>
  Writer& operator<<(const std::pair<First, Second>& pair) {
    return *this << pair.first << pair.second;
  }
  template <typename Key, typename Value>
  Writer& operator<<(const std::map<Key, Value>& map) {
    *this << map.size();
    for (const auto& [key, value] : map) *this << key << value;
    return *this;
  }
  template <typename... Kinds>
  Writer& operator<<(const std::variant<Kinds...>& variant) {
    *this << variant.index();
    std::visit([this](const auto& value) { *this << value; }, variant);
    return *this;
  }

  Writer& operator<<(const BlockName& name) {
    return *this << name.projected << std::string(name.digest);
  }
  Writer& operator<<(const StoredBlock& block) {
    return *this << block.name << block.fingerprint << block.check;
  }
  Writer& operator<<(const Stored& stored) {
    return *this << stored.tier << stored.lora_name << stored.has_tokens
                 << stored.extra_keys_on_wire << stored.block_length << stored.parent << stored.salt
                 << stored.blocks << stored.last_digest;
  }
  Writer& operator<<(const Removed& removed) { return *this << removed.tier << removed.names; }
  Writer& operator<<(const Cleared& cleared) { return *this << cleared.all_tiers; }
  Writer& operator<<(const PoolObject& object) {
    const PoolOrigin& origin = origins_->at(object.origin);
    return *this << object.tier << origin.backend_id << origin.tenant_id << origin.model_name
                 << origin.lora_name << origin.block_size << object.name
                 << std::string(object.part);
  }
  Writer& operator<<(const PoolCleared& cleared) {
    return *this << cleared.backend_id << cleared.tenant_id;
  }

  Writer& operator<<(const HashProfile& profile) {
    return *this << profile.strategy << profile.algorithm << profile.python_hash_seed
                 << profile.root_digest;
  }
  Writer& operator<<(const Registration& r) {
    return *this << r.instance_id << r.endpoint << r.replay_endpoint << r.snapshot_endpoint
                 << r.topic << r.has_topic << r.type << r.model_name << r.lora_name << r.tenant_id
                 << r.block_size << r.dp_rank << r.has_cache_group << r.hash_profile << r.pool_parts
                 << r.origin << r.static_name;
  }
  Writer& operator<<(const Registered& fact) {
    return *this << fact.registration << fact.unverified_blocks;
  }
  Writer& operator<<(const Unregistered& fact) {
    return *this << fact.key.instance_id << fact.key.tenant_id << fact.key.dp_rank;
  }
  Writer& operator<<(const Frame& frame) {
    origins_ = &frame.origins;
    return *this << frame.stream << frame.number << frame.publisher_time_us << frame.fingerprint
                 << frame.events << frame.ignored;
  }
  Writer& operator<<(const NewEpoch& fact) {
    return *this << fact.stream << fact.unverified_blocks;
  }
  Writer& operator<<(const CountingGroup& fact) { return *this << fact.stream << fact.group; }
  Writer& operator<<(const HistoryStart& fact) { return *this << fact.stream << fact.number; }
  Writer& operator<<(const Lost& fact) { return *this << fact.stream << fact.from << fact.to; }
  Writer& operator<<(const Dropped& fact) { return *this << fact.stream << fact.reason; }
  Writer& operator<<(const Evicted& fact) {
    return *this << fact.stream << fact.tier << fact.lora_name << fact.name << fact.tenant_id
                 << fact.model_name << fact.block_size;
  }
  Writer& operator<<(const PublisherSnapshot& fact) {
    return *this << fact.stream << fact.resume_number << fact.epoch << fact.links;
  }

  std::string Take() && { return std::move(text_); }

 private:
  const std::vector<PoolOrigin>* origins_ = nullptr;  // of the frame at hand
  std::string text_;
};

}  // namespace

std::string Text(const Record& record) {
  Writer writer;
  writer << record.facts;
  return std::move(writer).Take();
}

std::string Text(const Registration& registration) {
  Writer writer;
  writer << registration;
  return std::move(writer).Take();
}

}  // namespace conductor::fuzz
