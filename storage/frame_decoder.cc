#include "storage/frame_decoder.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <utility>

#include "storage/forward_reader.h"
#include "storage/record.pb.h"
#include "storage/record_check.h"
#include "storage/record_from_proto.h"

namespace conductor::storage {
namespace {

template <typename Enum>
Enum ToEnum(std::uint64_t value, ForwardReader& in) {
  in.Expect(value <= 0xff && IsKnown<Enum>(static_cast<std::int64_t>(value)));
  return static_cast<Enum>(value);
}

std::int64_t UnZigZag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

// An array of bytes that is there, and has its size.
template <typename Array>
void ReadArray(int field, std::optional<Array>* array, ForwardReader& in) {
  if (!in.NextBytes(field)) return;
  const std::string_view bytes = in.Bytes(field);
  in.Expect(bytes.size() == sizeof(Array));
  if (in.ok()) std::copy(bytes.begin(), bytes.end(), array->emplace().begin());
}

BlockName ReadName(int field, ForwardReader& in) {
  BlockName name;
  ForwardReader own(in.Bytes(field));
  name.projected = own.Fixed64(v1::BlockName::kProjectedFieldNumber);
  name.digest = own.Bytes(v1::BlockName::kDigestFieldNumber);
  in.Expect(own.Done());
  return name;
}

// The fields of consecutive numbers that spell names: as many blocks as there are names.
// `name_of` finds the place of a name in an element.
template <typename Element, typename NameOf>
void ReadNames(int names_field, int digests_field, std::vector<Element>* elements,
               const NameOf& name_of, ForwardReader& in) {
  const std::string_view names = in.Bytes(names_field);
  in.Expect(names.size() % sizeof(std::uint64_t) == 0);
  if (!in.ok()) return;
  elements->resize(names.size() / sizeof(std::uint64_t));
  const char* at = names.data();
  for (Element& element : *elements) {
    name_of(element).projected = ForwardReader::LoadFixed64(at);
    at += sizeof(std::uint64_t);
  }
  if (!in.NextBytes(digests_field)) return;
  for (Element& element : *elements) {
    in.Expect(in.NextBytes(digests_field));
    name_of(element).digest = in.Bytes(digests_field);
  }
}

void ReadFingerprints(std::vector<StoredBlock>& blocks, ForwardReader& in) {
  if (!in.NextBytes(v1::Stored::kFingerprintsFieldNumber)) return;
  const std::string_view bytes = in.Bytes(v1::Stored::kFingerprintsFieldNumber);
  in.Expect(bytes.size() == blocks.size() * sizeof(std::uint64_t));
  if (!in.ok()) return;
  const char* at = bytes.data();
  for (StoredBlock& block : blocks) {
    block.fingerprint = ForwardReader::LoadFixed64(at);
    at += sizeof(std::uint64_t);
  }
}

void ReadChecks(std::vector<StoredBlock>& blocks, ForwardReader& in) {
  const std::string_view checks = in.Bytes(v1::Stored::kChecksFieldNumber);
  const bool one_for_all = checks.size() == 1 && !blocks.empty();
  in.Expect(one_for_all || checks.size() == blocks.size());
  for (std::size_t i = 0; i < blocks.size() && in.ok(); ++i) {
    const auto check = static_cast<std::uint8_t>(checks[one_for_all ? 0 : i]);
    blocks[i].check = ToEnum<HashCheck>(check, in);
  }
}

Stored ReadStored(ForwardReader& in) {
  using Message = v1::Stored;
  Stored stored;
  stored.tier = ToEnum<Tier>(in.Varint(Message::kTierFieldNumber), in);
  if (in.NextBytes(Message::kLoraNameFieldNumber)) {
    stored.lora_name.emplace(in.Bytes(Message::kLoraNameFieldNumber));
  }
  stored.has_tokens = !in.Bool(Message::kTokenLessFieldNumber);
  stored.extra_keys_on_wire = in.Bool(Message::kExtraKeysOnWireFieldNumber);
  stored.block_length = in.Varint32(Message::kBlockLengthFieldNumber);
  if (in.NextBytes(Message::kParentFieldNumber)) {
    stored.parent = ReadName(Message::kParentFieldNumber, in);
  }
  ReadArray(Message::kSaltDigestFieldNumber, &stored.salt, in);
  ReadNames(
      Message::kNamesFieldNumber, Message::kDigestsFieldNumber, &stored.blocks,
      [](StoredBlock& block) -> BlockName& { return block.name; }, in);
  ReadFingerprints(stored.blocks, in);
  ReadChecks(stored.blocks, in);
  ReadArray(Message::kLastDigestFieldNumber, &stored.last_digest, in);
  return stored;
}

Removed ReadRemoved(ForwardReader& in) {
  Removed removed;
  removed.tier = ToEnum<Tier>(in.Varint(v1::Removed::kTierFieldNumber), in);
  ReadNames(
      v1::Removed::kNamesFieldNumber, v1::Removed::kDigestsFieldNumber, &removed.names,
      [](BlockName& name) -> BlockName& { return name; }, in);
  return removed;
}

template <typename PoolEvent>
PoolEvent ReadPoolObject(std::vector<PoolOrigin>& origins, ForwardReader& in) {
  using Message = v1::PoolObject;
  PoolEvent object;
  object.tier = ToEnum<Tier>(in.Varint(Message::kTierFieldNumber), in);
  PoolOriginText origin;
  origin.backend_id = in.Bytes(Message::kBackendIdFieldNumber);
  origin.tenant_id = in.Bytes(Message::kTenantIdFieldNumber);
  origin.model_name = in.Bytes(Message::kModelNameFieldNumber);
  origin.lora_name = in.Bytes(Message::kLoraNameFieldNumber);
  origin.block_size = in.Varint32(Message::kBlockSizeFieldNumber);
  if (in.ok()) object.origin = OriginNumber(origin, origins);
  in.Expect(in.NextBytes(Message::kNameFieldNumber));
  object.name = ReadName(Message::kNameFieldNumber, in);
  object.part = in.Bytes(Message::kPartFieldNumber);
  return object;
}

// The content of one Event, of whatever kind it is; origins are those of its frame.
Event ReadEvent(std::vector<PoolOrigin>& origins, ForwardReader& event) {
  const auto content = [&event](int field, const auto& read) -> Event {
    ForwardReader in(event.Bytes(field));
    Event result = read(in);
    event.Expect(in.Done());
    return result;
  };
  using Kind = v1::Event;
  if (event.NextBytes(Kind::kStoredFieldNumber)) {
    return content(Kind::kStoredFieldNumber, ReadStored);
  }
  if (event.NextBytes(Kind::kRemovedFieldNumber)) {
    return content(Kind::kRemovedFieldNumber, ReadRemoved);
  }
  if (event.NextBytes(Kind::kPoolStoredFieldNumber)) {
    return content(Kind::kPoolStoredFieldNumber, [&origins](ForwardReader& in) {
      return ReadPoolObject<PoolStored>(origins, in);
    });
  }
  if (event.NextBytes(Kind::kPoolRemovedFieldNumber)) {
    return content(Kind::kPoolRemovedFieldNumber, [&origins](ForwardReader& in) {
      return ReadPoolObject<PoolRemoved>(origins, in);
    });
  }
  if (event.NextBytes(Kind::kClearedFieldNumber)) {
    return content(Kind::kClearedFieldNumber, [](ForwardReader& in) {
      return Cleared{in.Bool(v1::Cleared::kAllTiersFieldNumber)};
    });
  }
  if (event.NextBytes(Kind::kPoolClearedFieldNumber)) {
    return content(Kind::kPoolClearedFieldNumber, [](ForwardReader& in) {
      PoolCleared cleared;
      cleared.backend_id = in.Bytes(v1::PoolCleared::kBackendIdFieldNumber);
      cleared.tenant_id = in.Bytes(v1::PoolCleared::kTenantIdFieldNumber);
      return cleared;
    });
  }
  event.Expect(false);
  return Cleared{};
}

void ReadIgnored(Frame* frame, ForwardReader& in) {
  ForwardReader reasons(in.Bytes(v1::Frame::kIgnoredReasonsFieldNumber));
  ForwardReader counts(in.Bytes(v1::Frame::kIgnoredCountsFieldNumber));
  while (in.ok() && !reasons.AtEnd()) {
    const auto reason = ToEnum<IgnoreReason>(reasons.TakeVarint(), in);
    in.Expect(frame->ignored.empty() || reason > frame->ignored.rbegin()->first);
    frame->ignored.emplace_hint(frame->ignored.end(), reason, counts.TakeVarint());
    in.Expect(reasons.ok() && counts.ok());
  }
  in.Expect(counts.Done());
}

Frame ReadFrame(ForwardReader& in) {
  using Message = v1::Frame;
  Frame frame;
  frame.stream = in.Varint(Message::kStreamFieldNumber);
  frame.number = in.Varint(Message::kNumberFieldNumber);
  frame.publisher_time_us = UnZigZag(in.Varint(Message::kPublisherTimeUsFieldNumber));
  frame.fingerprint = in.Fixed64(Message::kFingerprintFieldNumber);
  while (in.NextBytes(Message::kEventsFieldNumber)) {
    ForwardReader event(in.Bytes(Message::kEventsFieldNumber));
    frame.events.push_back(ReadEvent(frame.origins, event));
    in.Expect(event.Done());
  }
  ReadIgnored(&frame, in);
  return frame;
}

std::optional<Fact> ReadOther(std::string_view bytes) {
  google::protobuf::Arena arena;
  auto* message = google::protobuf::Arena::CreateMessage<v1::Fact>(&arena);
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return std::nullopt;
  Result<Fact> fact = FromProto(*message);
  if (!fact) return std::nullopt;
  return *std::move(fact);
}

}  // namespace

std::optional<Record> ReadCanonicalRecord(std::string_view body) {
  Record record;
  // Facts are large, and moved one by one when the vector grows: count first.
  std::size_t count = 0;
  for (ForwardReader facts(body); facts.NextBytes(v1::Record::kFactsFieldNumber); ++count) {
    facts.Bytes(v1::Record::kFactsFieldNumber);
  }
  record.facts.reserve(count);
  ForwardReader in(body);
  while (in.NextBytes(v1::Record::kFactsFieldNumber)) {
    const std::string_view bytes = in.Bytes(v1::Record::kFactsFieldNumber);
    ForwardReader fact(bytes);
    if (fact.NextBytes(v1::Fact::kFrameFieldNumber)) {
      ForwardReader content(fact.Bytes(v1::Fact::kFrameFieldNumber));
      record.facts.emplace_back(ReadFrame(content));
      if (content.Done() && fact.Done()) continue;
      record.facts.pop_back();
    }
    std::optional<Fact> other = ReadOther(bytes);
    if (!other) return std::nullopt;
    record.facts.push_back(*std::move(other));
  }
  if (!in.Done()) return std::nullopt;
  return record;
}

}  // namespace conductor::storage
