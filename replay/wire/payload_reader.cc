#include "replay/wire/payload_reader.h"

#include <string>
#include <utility>

namespace conductor {

Status PayloadReader::CheckSize() const {
  if (payload_.size() <= limits_.payload_bytes_max) return {};
  return tl::unexpected(Error{ErrorCode::kInvalidArgument,
                              "payload: expected at most " +
                                  std::to_string(limits_.payload_bytes_max) + " bytes, got " +
                                  std::to_string(payload_.size()),
                              wire_reason::kPayloadSize, "", -1});
}

Result<std::uint32_t> PayloadReader::ReadEnvelopeSlots() {
  std::uint32_t slots = 0;
  const MsgpackFault fault = reader_.TryArrayHeader(&slots);
  if (fault != MsgpackFault::kNone) return Malformed(fault);
  if (slots < 2) return Refuse(wire_reason::kEnvelopeArity, "envelope", "at least 2 slots");
  return slots;
}

Result<std::optional<std::int64_t>> PayloadReader::ReadRank() {
  if (reader_.TryNil() == MsgpackFault::kNone) return std::optional<std::int64_t>();
  MsgpackInteger rank;
  if (reader_.TryInteger(&rank) != MsgpackFault::kNone || rank.negative || !rank.FitsInt64()) {
    return Refuse(wire_reason::kDpRankType, "dp rank", "nil or a non-negative int64");
  }
  return std::optional<std::int64_t>(rank.AsInt64());
}

Status PayloadReader::Skip() {
  const MsgpackFault fault = reader_.TrySkip();
  if (fault != MsgpackFault::kNone) return Malformed(fault);
  return {};
}

Status PayloadReader::CheckEnd() const {
  if (!reader_.AtEnd()) return Malformed(MsgpackFault::kTrailing);
  return {};
}

Result<std::uint32_t> PayloadReader::ReadEventCount(std::uint64_t events_max) {
  std::uint32_t count = 0;
  if (reader_.TryArrayHeader(&count) != MsgpackFault::kNone) {
    return Refuse(wire_reason::kEventsNotArray, "events", "an array");
  }
  if (count > events_max) {
    return Refuse(wire_reason::kBatchLimit, "events",
                  "at most " + std::to_string(events_max) + " events");
  }
  return count;
}

Status PayloadReader::SkipDropped(std::size_t start, bool limit_exceeded) {
  reader_.Seek(start);
  CONDUCTOR_RETURN_IF_ERROR(Skip());
  if (limit_exceeded) {
    return Refuse(wire_reason::kBatchLimit, "names and extra keys",
                  "at most " + std::to_string(limits_.items_max) + " in a batch");
  }
  return {};
}

void PayloadReader::Count(const DecodeFault& fault, std::uint32_t index, BatchEnvelope& batch) {
  ++batch.rejected_counts[static_cast<std::size_t>(fault.fault)];
  if (batch.rejected.size() < kRejectedDetailsMax) {
    batch.rejected.push_back({index, fault.fault, Describe(fault, index)});
  }
}

tl::unexpected<Error> PayloadReader::Refuse(const char* reason, std::string_view what,
                                            std::string_view expected) const {
  MsgpackReader whole(payload_);
  const MsgpackFault malformed = whole.TrySkip();
  if (malformed != MsgpackFault::kNone) return Malformed(malformed);
  std::string message = "payload, byte " + std::to_string(reader_.Offset()) + ": ";
  message.append(what).append(": expected ").append(expected);
  message.append(", found ").append(ToString(reader_.PeekType()));
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message), reason, "", -1});
}

tl::unexpected<Error> PayloadReader::Malformed(MsgpackFault fault) const {
  std::string message = "payload of " + std::to_string(payload_.size()) + " bytes, value at byte " +
                        std::to_string(reader_.Offset()) +
                        ": expected well-formed MessagePack, got ";
  message.append(ToString(fault));
  return tl::unexpected(
      Error{ErrorCode::kInvalidArgument, std::move(message), std::string(ToString(fault)), "", -1});
}

}  // namespace conductor
