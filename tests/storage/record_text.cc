#include "tests/storage/record_text.h"

#include <cstdio>
#include <string_view>

namespace conductor::storage {
namespace {

std::string Hex(std::string_view bytes) {
  std::string text = "'";
  for (unsigned char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text + "'";
}

template <std::size_t kSize>
std::string Hex(const std::array<std::uint8_t, kSize>& bytes) {
  return Hex(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// Appends "name=value " for each field; overloads say how a value is spelled.
class Writer {
 public:
  Writer& Kind(const char* kind) {
    text += std::string(kind) + " ";
    return *this;
  }
  Writer& Field(const char* name, const std::string& value) {
    return Raw(name, Hex(std::string_view(value)));
  }
  template <std::size_t kSize>
  Writer& Field(const char* name, const std::array<std::uint8_t, kSize>& value) {
    return Raw(name, Hex(value));
  }
  template <typename Number>
  requires std::is_arithmetic_v<Number> Writer& Field(const char* name, Number value) {
    return Raw(name, std::to_string(value));
  }
  template <typename Enum>
  requires std::is_enum_v<Enum> Writer& Field(const char* name, Enum value) {
    return Raw(name, std::to_string(static_cast<int>(value)));
  }
  Writer& Field(const char* name, const BlockName& value) {
    return Raw(name, std::to_string(value.projected) + Hex(std::string_view(value.digest)));
  }
  template <typename Value>
  Writer& Field(const char* name, const std::optional<Value>& value) {
    return value ? Field(name, *value) : Raw(name, "none");
  }

  std::string text;

 private:
  Writer& Raw(const char* name, const std::string& value) {
    text += std::string(name) + "=" + value + " ";
    return *this;
  }
};

struct Describer {
  Writer& out;
  const std::vector<PoolOrigin>* origins = nullptr;  // of the frame at hand

  void Pool(const char* kind, const PoolObject& object) const {
    const PoolOrigin& origin = origins->at(object.origin);
    out.Kind(kind).Field("tier", object.tier).Field("backend", origin.backend_id);
    out.Field("tenant", origin.tenant_id).Field("model", origin.model_name);
    out.Field("lora", origin.lora_name).Field("size", origin.block_size);
    out.Field("name", object.name).Field("part", std::string(object.part));
  }

  void operator()(const Stored& stored) const {
    out.Kind("stored").Field("tier", stored.tier).Field("lora", stored.lora_name);
    out.Field("tokens", stored.has_tokens).Field("extra", stored.extra_keys_on_wire);
    out.Field("length", stored.block_length).Field("parent", stored.parent);
    out.Field("salt", stored.salt).Field("last", stored.last_digest);
    for (const StoredBlock& block : stored.blocks) {
      out.Field("name", block.name).Field("fp", block.fingerprint).Field("check", block.check);
    }
  }
  void operator()(const Removed& removed) const {
    out.Kind("removed").Field("tier", removed.tier);
    for (const BlockName& name : removed.names) out.Field("name", name);
  }
  void operator()(const Cleared& cleared) const {
    out.Kind("cleared").Field("all", cleared.all_tiers);
  }
  void operator()(const PoolStored& object) const { Pool("pool_stored", object); }
  void operator()(const PoolRemoved& object) const { Pool("pool_removed", object); }
  void operator()(const PoolCleared& cleared) const {
    out.Kind("pool_cleared")
        .Field("backend", cleared.backend_id)
        .Field("tenant", cleared.tenant_id);
  }

  void operator()(const Registered& registered) const {
    const Registration& r = registered.registration;
    out.Kind("registered").Field("instance", r.instance_id).Field("endpoint", r.endpoint);
    out.Field("replay", r.replay_endpoint).Field("snapshot", r.snapshot_endpoint);
    out.Field("has_topic", r.has_topic).Field("topic", r.topic).Field("type", r.type);
    out.Field("model", r.model_name).Field("lora", r.lora_name).Field("tenant", r.tenant_id);
    out.Field("size", r.block_size).Field("rank", r.dp_rank).Field("group", r.has_cache_group);
    out.Field("strategy", r.hash_profile.strategy).Field("algorithm", r.hash_profile.algorithm);
    out.Field("seed", r.hash_profile.python_hash_seed).Field("root", r.hash_profile.root_digest);
    for (const auto& [part, total] : r.pool_parts) out.Field("part", part).Field("total", total);
    out.Field("origin", r.origin).Field("static_name", r.static_name);
    out.Field("unverified", registered.unverified_blocks);
  }
  void operator()(const Unregistered& unregistered) const {
    out.Kind("unregistered").Field("instance", unregistered.key.instance_id);
    out.Field("tenant", unregistered.key.tenant_id).Field("rank", unregistered.key.dp_rank);
  }
  void operator()(const Frame& frame) const {
    out.Kind("frame").Field("stream", frame.stream).Field("number", frame.number);
    out.Field("time", frame.publisher_time_us).Field("fp", frame.fingerprint);
    const Describer of_frame{out, &frame.origins};
    for (const Event& event : frame.events) std::visit(of_frame, event);
    for (const auto& [reason, count] : frame.ignored) {
      out.Field("ignored", reason).Field("count", count);
    }
  }
  void operator()(const NewEpoch& epoch) const {
    out.Kind("epoch").Field("stream", epoch.stream).Field("unverified", epoch.unverified_blocks);
  }
  void operator()(const CountingGroup& group) const {
    out.Kind("group").Field("stream", group.stream).Field("group", group.group);
  }
  void operator()(const HistoryStart& start) const {
    out.Kind("history").Field("stream", start.stream).Field("number", start.number);
  }
  void operator()(const Lost& lost) const {
    out.Kind("lost").Field("stream", lost.stream).Field("from", lost.from).Field("to", lost.to);
  }
  void operator()(const Dropped& dropped) const {
    out.Kind("dropped").Field("stream", dropped.stream).Field("reason", dropped.reason);
  }
  void operator()(const Evicted& evicted) const {
    out.Kind("evicted").Field("stream", evicted.stream).Field("tier", evicted.tier);
    out.Field("lora", evicted.lora_name).Field("name", evicted.name);
    out.Field("tenant", evicted.tenant_id).Field("model", evicted.model_name);
    out.Field("block_size", evicted.block_size);
  }
  void operator()(const PublisherSnapshot& snapshot) const {
    out.Kind("snapshot").Field("stream", snapshot.stream).Field("resume", snapshot.resume_number);
    out.Field("epoch", snapshot.epoch);
    for (const auto& [parent, name] : snapshot.links) {
      out.Field("parent", parent).Field("name", name);
    }
  }
};

}  // namespace

std::string RecordText(const Record& record) {
  Writer writer;
  for (const Fact& fact : record.facts) {
    std::visit(Describer{writer}, fact);
    writer.text += "\n";
  }
  return writer.text;
}

std::vector<std::string> LogTexts(const EventLog& log) {
  std::vector<std::string> texts;
  const Status read =
      log.Read(log.FirstSeq(), log.LastSeq(), [&](Seq, const Record& record) -> Status {
        texts.push_back(RecordText(record));
        return {};
      });
  if (!read) texts.push_back("error: " + read.error().message);
  return texts;
}

std::vector<std::string> RecordTexts(const std::vector<Record>& records) {
  std::vector<std::string> texts;
  for (const Record& record : records) texts.push_back(RecordText(record));
  return texts;
}

}  // namespace conductor::storage
