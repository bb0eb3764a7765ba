#include "replay/wire/snapshot.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "replay/wire/event_reading.h"
#include "replay/wire/payload_reader.h"
#include "src/hash/utf8.h"

namespace conductor {
namespace {

constexpr std::string_view kRequest = "snapshot-v1";
constexpr std::uint64_t kVersion = 1;

std::string_view TextOf(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

tl::unexpected<Error> Refuse(const char* reason, std::string message) {
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message), reason, "", -1});
}

// It ends up in answers and logs, so it is UTF-8 whatever the publisher sent, and not long.
std::string ErrorText(ByteView body) {
  std::string_view text = TextOf(body).substr(0, kSnapshotErrorBytesMax);
  // The cut may have gone through a character of up to 4 bytes.
  for (int i = 0; i < 4; ++i, text.remove_suffix(1)) {
    if (IsValidUtf8(text)) return std::string(text);
    if (text.size() < kSnapshotErrorBytesMax - 3) break;
  }
  return "(not UTF-8)";
}

bool IsHexText(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  });
}

// [version, epoch, rank, resume, barrier, barrier id, records]; a later release may add slots.
class HeaderReader {
 public:
  HeaderReader(ByteView body, const WireLimits& limits) : payload_(body, limits) {}

  Result<SnapshotHeader> Run() {
    constexpr std::uint32_t kSlots = 7;
    MsgpackReader& reader = payload_.reader();
    std::uint32_t slots = 0;
    if (reader.TryArrayHeader(&slots) != MsgpackFault::kNone || slots < kSlots) {
      return Wrong("header", "an array of 7 slots");
    }
    SnapshotHeader header;
    std::uint64_t version = 0;
    CONDUCTOR_RETURN_IF_ERROR(ReadNumber("version", &version));
    if (version != kVersion) return Wrong("version", "1");
    CONDUCTOR_RETURN_IF_ERROR(ReadText("epoch", &header.epoch));
    if (!IsHexText(header.epoch)) return Wrong("epoch", "hex digits");
    CONDUCTOR_RETURN_IF_ERROR(ReadNumber("replica_rank", &header.replica_rank));
    CONDUCTOR_RETURN_IF_ERROR(ReadNumber("resume_seq", &header.resume_seq));
    CONDUCTOR_RETURN_IF_ERROR(ReadNumber("barrier_seq", &header.barrier_seq));
    CONDUCTOR_RETURN_IF_ERROR(ReadBarrierId(&header.barrier_id));
    CONDUCTOR_RETURN_IF_ERROR(ReadNumber("record_count", &header.record_count));
    if (header.record_count > kSnapshotRecordsMax) {
      return Wrong("record_count", "at most kSnapshotRecordsMax");
    }
    for (std::uint32_t slot = kSlots; slot < slots; ++slot) {
      CONDUCTOR_RETURN_IF_ERROR(payload_.Skip());
    }
    CONDUCTOR_RETURN_IF_ERROR(payload_.CheckEnd());
    return header;
  }

 private:
  tl::unexpected<Error> Wrong(std::string_view what, std::string_view expected) const {
    return payload_.Refuse(wire_reason::kSnapshotHeader, what, expected);
  }

  // Below 2^63, as the numbers of frames are.
  Status ReadNumber(std::string_view what, std::uint64_t* value) {
    MsgpackInteger integer;
    if (payload_.reader().TryInteger(&integer) != MsgpackFault::kNone || integer.negative ||
        integer.bits > kFrameSeqMax) {
      return Wrong(what, "an integer from 0 to 2^63 - 1");
    }
    *value = integer.bits;
    return {};
  }

  Status ReadText(std::string_view what, std::string* text) {
    std::string_view read;
    if (payload_.reader().TryText(&read) != MsgpackFault::kNone ||
        read.size() > kSnapshotIdBytesMax) {
      return Wrong(what, "a text of at most kSnapshotIdBytesMax bytes");
    }
    *text = read;
    return {};
  }

  // A text in the topic; here a text or the number it spells.
  Status ReadBarrierId(std::string* id) {
    if (payload_.reader().PeekType() != MsgpackType::kInteger) return ReadText("barrier_id", id);
    std::uint64_t number = 0;
    CONDUCTOR_RETURN_IF_ERROR(ReadNumber("barrier_id", &number));
    *id = std::to_string(number);
    return {};
  }

  PayloadReader payload_;
};

// [[parent | nil, [name, ...]], ...]
class ChunkReader {
 public:
  ChunkReader(ByteView body, const WireLimits& limits)
      : payload_(body, limits), items_left_(limits.items_max) {}

  Result<SnapshotReply> Run() {
    std::uint32_t count = 0;
    if (payload_.reader().TryArrayHeader(&count) != MsgpackFault::kNone) {
      return Wrong("chunk", "an array");
    }
    if (count > kSnapshotChunkRecordsMax) {
      return Wrong("chunk", "at most kSnapshotChunkRecordsMax records");
    }
    reply_.kind = SnapshotReply::Kind::kChunk;
    reply_.records = count;
    reply_.links.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) CONDUCTOR_RETURN_IF_ERROR(ReadRecord());
    CONDUCTOR_RETURN_IF_ERROR(payload_.CheckEnd());
    return std::move(reply_);
  }

 private:
  tl::unexpected<Error> Wrong(std::string_view what, std::string_view expected) const {
    return payload_.Refuse(wire_reason::kSnapshotChunk, what, expected);
  }

  Status ReadRecord() {
    MsgpackReader& reader = payload_.reader();
    std::uint32_t slots = 0;
    if (reader.TryArrayHeader(&slots) != MsgpackFault::kNone || slots < 2) {
      return Wrong("record", "an array of 2 slots");
    }
    std::optional<BlockName> parent;
    if (reader.TryNil() != MsgpackFault::kNone) {
      CONDUCTOR_RETURN_IF_ERROR(ReadName("parent", &parent.emplace()));
    }
    std::uint32_t names = 0;
    if (reader.TryArrayHeader(&names) != MsgpackFault::kNone || names == 0) {
      return Wrong("hashes", "an array of at least one");
    }
    if (names > items_left_) return Wrong("hashes", "no more than a batch may have");
    items_left_ -= names;
    for (std::uint32_t i = 0; i < names; ++i) {
      BlockName name;
      CONDUCTOR_RETURN_IF_ERROR(ReadName("hash", &name));
      reply_.links.emplace_back(std::move(parent), name);
      parent = std::move(name);
    }
    for (std::uint32_t slot = 2; slot < slots; ++slot) CONDUCTOR_RETURN_IF_ERROR(payload_.Skip());
    return {};
  }

  Status ReadName(std::string_view what, BlockName* name) {
    const DecodeFault fault = ReadBlockName(payload_.reader(), /*sglang=*/true, what, -1, name);
    if (fault) return Wrong(what, fault.expected);
    return {};
  }

  PayloadReader payload_;
  std::uint64_t items_left_;
  SnapshotReply reply_;
};

}  // namespace

std::array<std::string, 2> BuildSnapshotRequest() {
  return {std::string(), std::string(kRequest)};
}

Result<SnapshotReply> ParseSnapshotReply(std::span<const ByteView> parts,
                                         const WireLimits& limits) {
  if (parts.size() != 3) {
    return Refuse(wire_reason::kFrameCount,
                  "snapshot reply: expected 3 frames, got " + std::to_string(parts.size()));
  }
  if (!parts[0].empty()) {
    return Refuse(wire_reason::kDelimiter,
                  "snapshot reply: delimiter: expected an empty frame, got " +
                      std::to_string(parts[0].size()) + " bytes");
  }
  const std::string_view word = TextOf(parts[1]);
  const ByteView body = parts[2];
  CONDUCTOR_RETURN_IF_ERROR(PayloadReader(body, limits).CheckSize());
  SnapshotReply reply;
  if (word == "header") {
    reply.kind = SnapshotReply::Kind::kHeader;
    CONDUCTOR_ASSIGN_OR_RETURN(reply.header, HeaderReader(body, limits).Run());
  } else if (word == "chunk") {
    return ChunkReader(body, limits).Run();
  } else if (word == "end") {
    if (!body.empty()) {
      return Refuse(wire_reason::kSnapshotEnd, "snapshot end: expected an empty frame, got " +
                                                   std::to_string(body.size()) + " bytes");
    }
  } else if (word == "error") {
    reply.kind = SnapshotReply::Kind::kError;
    reply.error = ErrorText(body);
  } else {
    return Refuse(wire_reason::kSnapshotWord,
                  "snapshot reply: expected header, chunk, end or error, got another word of " +
                      std::to_string(word.size()) + " bytes");
  }
  return reply;
}

Result<bool> SnapshotAssembler::Add(SnapshotReply&& reply) {
  using Kind = SnapshotReply::Kind;
  const auto fail = [this](std::string message) {
    ended_ = true;
    links_.clear();
    return Refuse(wire_reason::kSnapshotOrder, "snapshot: " + std::move(message));
  };
  if (ended_) return fail("expected nothing more, got another reply");
  if (reply.kind == Kind::kError) return fail("the publisher refused: " + reply.error);
  if (reply.kind == Kind::kHeader) {
    if (header_) return fail("expected one header, got two");
    header_ = std::move(reply.header);
    return false;
  }
  if (!header_) return fail("expected a header first");
  const std::string expected = std::to_string(header_->record_count) + " records, got ";
  if (reply.kind == Kind::kChunk) {
    if (reply.records > header_->record_count - records_) {
      return fail("expected " + expected + std::to_string(records_ + reply.records));
    }
    if (reply.links.size() > kSnapshotLinksMax - links_.size()) {
      return fail("expected at most " + std::to_string(kSnapshotLinksMax) + " blocks, got more");
    }
    records_ += reply.records;
    std::move(reply.links.begin(), reply.links.end(), std::back_inserter(links_));
    return false;
  }
  if (records_ != header_->record_count) {
    return fail("expected " + expected + std::to_string(records_));
  }
  ended_ = true;
  return true;
}

}  // namespace conductor
