#include "storage/frame_encoder.h"

#include <algorithm>

#include "storage/record.pb.h"
#include "storage/reversed.h"

namespace conductor::storage {
namespace {

std::string_view BytesOf(const auto& array) {
  return {reinterpret_cast<const char*>(array.data()), array.size()};
}

std::uint64_t ZigZag(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}

template <typename Enum>
std::uint64_t Number(Enum value) {
  return static_cast<std::uint64_t>(value);
}

void WriteName(int field, const BlockName& name, BackwardWriter& out) {
  const std::size_t mark = out.size();
  out.Bytes(v1::BlockName::kDigestFieldNumber, name.digest);
  out.Fixed64(v1::BlockName::kProjectedFieldNumber, name.projected);
  out.EndLength(field, mark);
}

// A packed list: `value_of(i)` for i below `count`.
template <typename ValueOf>
void WriteFixed64s(int field, std::size_t count, const ValueOf& value_of, BackwardWriter& out) {
  if (count == 0) return;
  const std::size_t mark = out.size();
  char* to = out.Prepend(count * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < count; ++i, to += sizeof(std::uint64_t)) {
    BackwardWriter::StoreFixed64(value_of(i), to);
  }
  out.EndLength(field, mark);
}

// Nothing when no name has a digest.
template <typename NameOf>
void WriteDigests(int field, std::size_t count, const NameOf& name_of, BackwardWriter& out) {
  bool any_digest = false;
  for (std::size_t i = 0; i < count && !any_digest; ++i) any_digest = !name_of(i).digest.empty();
  if (!any_digest) return;
  for (std::size_t i = count; i > 0; --i) out.PresentBytes(field, name_of(i - 1).digest);
}

void WriteChecks(const std::vector<StoredBlock>& blocks, BackwardWriter& out) {
  if (blocks.empty()) return;
  const auto first = blocks.front().check;
  const bool all_same = std::ranges::all_of(blocks, [&](auto& b) { return b.check == first; });
  const std::size_t count = all_same ? 1 : blocks.size();
  const std::size_t mark = out.size();
  char* to = out.Prepend(count);
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<char>(blocks[i].check);
  out.EndLength(v1::Stored::kChecksFieldNumber, mark);
}

void WritePoolObject(const PoolObject& object, const PoolOrigin& origin, BackwardWriter& out) {
  using Message = v1::PoolObject;
  out.Bytes(Message::kPartFieldNumber, object.part);
  WriteName(Message::kNameFieldNumber, object.name, out);
  out.Varint(Message::kBlockSizeFieldNumber, origin.block_size);
  out.Bytes(Message::kLoraNameFieldNumber, origin.lora_name);
  out.Bytes(Message::kModelNameFieldNumber, origin.model_name);
  out.Bytes(Message::kTenantIdFieldNumber, origin.tenant_id);
  out.Bytes(Message::kBackendIdFieldNumber, origin.backend_id);
  out.Varint(Message::kTierFieldNumber, Number(object.tier));
}

// The content of each kind of event; the value is its field in Event.
struct EventWriter {
  BackwardWriter& out;
  const std::vector<PoolOrigin>& origins;

  int operator()(const Stored& stored) const {
    using Message = v1::Stored;
    const auto& blocks = stored.blocks;
    const auto name_of = [&](std::size_t i) -> const BlockName& { return blocks[i].name; };
    if (stored.last_digest) {
      out.PresentBytes(Message::kLastDigestFieldNumber, BytesOf(*stored.last_digest));
    }
    WriteChecks(blocks, out);
    if (std::ranges::any_of(blocks, [](auto& block) { return block.fingerprint != 0; })) {
      WriteFixed64s(
          Message::kFingerprintsFieldNumber, blocks.size(),
          [&](std::size_t i) { return blocks[i].fingerprint; }, out);
    }
    WriteDigests(Message::kDigestsFieldNumber, blocks.size(), name_of, out);
    WriteFixed64s(
        Message::kNamesFieldNumber, blocks.size(),
        [&](std::size_t i) { return blocks[i].name.projected; }, out);
    if (stored.salt) out.PresentBytes(Message::kSaltDigestFieldNumber, BytesOf(*stored.salt));
    if (stored.parent) WriteName(Message::kParentFieldNumber, *stored.parent, out);
    out.Varint(Message::kBlockLengthFieldNumber, stored.block_length);
    out.Varint(Message::kExtraKeysOnWireFieldNumber, stored.extra_keys_on_wire ? 1 : 0);
    out.Varint(Message::kTokenLessFieldNumber, stored.has_tokens ? 0 : 1);
    if (stored.lora_name) out.PresentBytes(Message::kLoraNameFieldNumber, *stored.lora_name);
    out.Varint(Message::kTierFieldNumber, Number(stored.tier));
    return v1::Event::kStoredFieldNumber;
  }
  int operator()(const Removed& removed) const {
    const auto& names = removed.names;
    WriteDigests(
        v1::Removed::kDigestsFieldNumber, names.size(),
        [&](std::size_t i) -> const BlockName& { return names[i]; }, out);
    WriteFixed64s(
        v1::Removed::kNamesFieldNumber, names.size(),
        [&](std::size_t i) { return names[i].projected; }, out);
    out.Varint(v1::Removed::kTierFieldNumber, Number(removed.tier));
    return v1::Event::kRemovedFieldNumber;
  }
  int operator()(const Cleared& cleared) const {
    out.Varint(v1::Cleared::kAllTiersFieldNumber, cleared.all_tiers ? 1 : 0);
    return v1::Event::kClearedFieldNumber;
  }
  int operator()(const PoolStored& object) const {
    WritePoolObject(object, origins[object.origin], out);
    return v1::Event::kPoolStoredFieldNumber;
  }
  int operator()(const PoolRemoved& object) const {
    WritePoolObject(object, origins[object.origin], out);
    return v1::Event::kPoolRemovedFieldNumber;
  }
  int operator()(const PoolCleared& cleared) const {
    out.Bytes(v1::PoolCleared::kTenantIdFieldNumber, cleared.tenant_id);
    out.Bytes(v1::PoolCleared::kBackendIdFieldNumber, cleared.backend_id);
    return v1::Event::kPoolClearedFieldNumber;
  }
};

void WriteIgnored(const Frame& frame, BackwardWriter& out) {
  if (frame.ignored.empty()) return;
  const std::size_t counts = out.size();
  for (const auto& [reason, count] : Reversed(frame.ignored)) out.PutVarint(count);
  out.EndLength(v1::Frame::kIgnoredCountsFieldNumber, counts);
  const std::size_t reasons = out.size();
  for (const auto& [reason, count] : Reversed(frame.ignored)) {
    out.PutVarint(Number(reason));
  }
  out.EndLength(v1::Frame::kIgnoredReasonsFieldNumber, reasons);
}

}  // namespace

void WriteFrameFact(const Frame& frame, BackwardWriter& out) {
  const std::size_t begin = out.size();
  WriteIgnored(frame, out);
  for (const Event& event : Reversed(frame.events)) {
    const std::size_t mark = out.size();
    const int kind = std::visit(EventWriter{out, frame.origins}, event);
    out.EndLength(kind, mark);
    out.EndLength(v1::Frame::kEventsFieldNumber, mark);
  }
  out.Fixed64(v1::Frame::kFingerprintFieldNumber, frame.fingerprint);
  out.Varint(v1::Frame::kPublisherTimeUsFieldNumber, ZigZag(frame.publisher_time_us));
  out.Varint(v1::Frame::kNumberFieldNumber, frame.number);
  out.Varint(v1::Frame::kStreamFieldNumber, frame.stream);
  out.EndLength(v1::Fact::kFrameFieldNumber, begin);
}

}  // namespace conductor::storage
