// Records as the log holds them.
// Property: bytes are refused by one of the codec's two codes, or they decode; what decodes
// re-encodes, that decodes to the same meaning and encodes to the same bytes; applying both gives
// the same state. A changed byte of the body is never another record.
//
// Input: flags, then a whole value or (flag) a body that gets a right header.
#include "fuzz/fact_text.h"
#include "fuzz/logged_record.h"
#include "fuzz/target.h"
#include "replay/messages.h"
#include "src/hash/profile.h"
#include "storage/log_format.h"
#include "storage/record_codec.h"

namespace conductor::fuzz {
namespace {

constexpr std::uint8_t kBodyFlag = 1;
constexpr std::uint8_t kStatesFlag = 2;  // states cost far more than decoding

// docs/log_format.md in code of its own.
std::string WithHeader(Bytes body) {
  std::string value(storage::kRecordHeaderBytes, '\0');
  value[0] = static_cast<char>(storage::kRecordMagic);
  value[1] = static_cast<char>(storage::kRecordFormatVersion);
  value[2] = static_cast<char>(storage::kRecordHeaderBytes);
  const std::uint64_t checksum = FingerprintPayload(body);  // XXH3-64 too
  for (int i = 0; i < 4; ++i) value[4 + i] = static_cast<char>(checksum >> (8 * i));
  return value.append(AsText(body));
}

void RequireDamageIsSeen(std::string value) {
  if (value.size() <= storage::kRecordHeaderBytes) return;
  value.back() = static_cast<char>(value.back() ^ 1);
  const auto damaged = storage::DecodeRecord(value);
  Require(!damaged && damaged.error().code == ErrorCode::kDataLoss, "a changed byte is seen");
}

void RequireStable(const Record& record) {
  const auto bytes = storage::EncodeRecord(record);
  Require(bytes.has_value(), "what decodes encodes", bytes ? "" : bytes.error().message);
  const auto again = storage::DecodeRecord(*bytes);
  Require(again.has_value(), "what was encoded decodes", again ? "" : again.error().message);
  Require(Text(*again) == Text(record), "the meaning stays");
  const auto bytes_again = storage::EncodeRecord(*again);
  Require(bytes_again && *bytes_again == *bytes, "equal records are equal bytes");
  RequireDamageIsSeen(*bytes);
}

Registration Engine(const std::string& instance, PublisherType type) {
  Registration registration;
  registration.instance_id = instance;
  registration.endpoint = "tcp://" + instance + ":1";
  registration.type = type;
  registration.model_name = "m";
  registration.block_size = 4;
  registration.hash_profile = *MakeHashProfile("vllm_v1", "sha256_cbor", "0", "low64_be");
  return registration;
}

}  // namespace

void RunInput(Bytes input) {
  InputReader reader(input);
  const std::uint8_t flags = reader.Byte();
  const std::string value =
      (flags & kBodyFlag) != 0 ? WithHeader(reader.rest()) : std::string(AsText(reader.rest()));
  const auto record = storage::DecodeRecord(value);
  if (!record) {
    const ErrorCode code = record.error().code;
    Require(code == ErrorCode::kDataLoss || code == ErrorCode::kFailedPrecondition,
            "damage and later releases are told apart", record.error().message);
    return;
  }
  RequireStable(*record);
  if ((flags & kStatesFlag) == 0) return;
  static const auto* const registered =
      new Record{{Registered{Engine("e", PublisherType::kVllm), UnverifiedBlocks::kContent},
                  Registered{Engine("p", PublisherType::kMooncake), UnverifiedBlocks::kContent}}};
  LivePair states;
  states.Apply(*registered);
  states.Apply(*record);
}

namespace {

Stored SomeBlocks() {
  Stored stored;
  stored.lora_name = "adapter";
  stored.block_length = 4;
  stored.salt = SaltDigest{1, 2, 3};
  stored.extra_keys_on_wire = true;
  stored.blocks = {{{1, ""}, 11, HashCheck::kEqual},
                   {{2, std::string(32, 'd')}, 12, HashCheck::kDiffers},
                   {{3, ""}, 13, HashCheck::kNotComputed}};
  stored.last_digest = Digest{9};
  return stored;
}

Frame SomeFrame() {
  Frame frame;
  frame.stream = 1;
  frame.number = 7;
  frame.publisher_time_us = -1;
  frame.fingerprint = 99;
  frame.events.push_back(SomeBlocks());
  Stored child = SomeBlocks();
  child.parent = BlockName{3, ""};
  child.salt.reset();
  frame.events.push_back(child);
  child.has_tokens = false;
  frame.events.push_back(child);
  Stored plain;  // what SomeBlocks says yes to, it says no to
  plain.tier = Tier::kDisk;
  plain.block_length = 4;
  plain.blocks = {{{5, ""}, 0, HashCheck::kEqual}};
  frame.events.push_back(plain);
  frame.events.push_back(Removed{Tier::kDevice, {{1, ""}, {2, std::string(32, 'd')}}});
  frame.events.push_back(Cleared{true});
  frame.ignored = {{IgnoreReason::kRemote, 3}, {IgnoreReason::kOtherGroup, 1}};
  return frame;
}

Frame SomePoolFrame() {
  Frame frame;
  frame.stream = 2;
  const BlockName name{1, ""};
  frame.origins = {{"backend", "default", "m", "", 4}};
  frame.events.push_back(PoolStored{{Tier::kCpuShare, 0, name, "tp=0|"}});
  frame.events.push_back(PoolRemoved{{Tier::kCpuShare, 0, name, "tp=0|"}});
  frame.events.push_back(PoolCleared{"backend", "default"});
  return frame;
}

}  // namespace

std::vector<std::string> Seeds() {
  Registration full = Engine("third", PublisherType::kVllm);
  full.replay_endpoint = "tcp://third:2";
  full.topic = "kv";
  full.has_topic = true;
  full.pool_parts = {{"kv", 2}, {"tp", 4}};
  PublisherSnapshot snapshot;
  snapshot.stream = 1;
  snapshot.resume_number = 8;
  snapshot.epoch = "0f";
  snapshot.links = {{std::nullopt, {1, ""}}, {BlockName{1, ""}, {2, std::string(32, 'd')}}};
  std::vector<Fact> facts = {Registered{full, UnverifiedBlocks::kNameOnly},
                             Unregistered{{"e", "default", 0}},
                             SomeFrame(),
                             SomePoolFrame(),
                             NewEpoch{1, UnverifiedBlocks::kContent},
                             CountingGroup{1, -2},
                             HistoryStart{1, 5},
                             Lost{1, 8, 9},
                             Dropped{1, DropReason::kOperator},
                             Evicted{1, Tier::kDevice, "adapter", {1, ""}, "tenant", "model", 16},
                             snapshot};
  std::vector<Record> records = {Record{facts}, Record{}};
  for (const Fact& fact : facts) records.push_back(Record{{fact}});
  std::vector<std::string> seeds;
  for (const Record& record : records) {
    const std::string bytes = RequireLogged(record);
    seeds.push_back(std::string(1, '\0') + bytes);
    for (const int flags : {kBodyFlag + 0, kBodyFlag | kStatesFlag}) {
      seeds.push_back(std::string(1, static_cast<char>(flags)) +
                      bytes.substr(storage::kRecordHeaderBytes));
    }
  }
  return seeds;
}

}  // namespace conductor::fuzz
