// Msgpack bodies to events: iterative, bounded depth, and every declared length is checked against
// the bytes that are there (replay/wire/msgpack_reader.h) before a sink hears of it.
#include <cstddef>
#include <string>
#include <vector>

#include "http/body_format.h"
#include "http/http_limits.h"
#include "replay/wire/msgpack_reader.h"

namespace conductor::http {

namespace {

using Kind = BodyEvent::Kind;

struct OpenContainer {
  bool is_map = false;
  bool key_next = false;
  std::uint64_t owed = 0;  // elements, or pairs
};

tl::unexpected<Error> Invalid(std::size_t offset, const std::string& what) {
  return InvalidField("invalid_msgpack", "",
                      "body: invalid msgpack at byte " + std::to_string(offset) + ": " + what);
}

std::string_view View(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads the head of one value (the whole of it, unless it is a container) into `event`.
MsgpackFault ReadValue(MsgpackReader& reader, BodyEvent& event) {
  std::uint32_t count = 0;
  MsgpackInteger integer;
  std::span<const std::uint8_t> bytes;
  MsgpackExt ext;
  double number = 0;
  MsgpackFault fault = MsgpackFault::kNone;
  switch (reader.PeekType()) {
    case MsgpackType::kNil:
      event.kind = Kind::kNull;
      return reader.TryNil();
    case MsgpackType::kBool:
      event.kind = Kind::kBool;
      return reader.TryBool(&event.boolean);
    case MsgpackType::kInteger:
      event.kind = Kind::kInteger;
      fault = reader.TryInteger(&integer);
      event.bits = integer.bits;
      event.negative = integer.negative;
      return fault;
    case MsgpackType::kFloat:
      event.kind = Kind::kFloat;
      return reader.TryDouble(&number);
    case MsgpackType::kText:
      event.kind = Kind::kText;
      return reader.TryText(&event.text);
    case MsgpackType::kBytes:
      event.kind = Kind::kBytes;
      fault = reader.TryBytes(&bytes);
      event.text = View(bytes);
      return fault;
    case MsgpackType::kExt:
      event.kind = Kind::kExt;
      return reader.TryExt(&ext);
    case MsgpackType::kArray:
      event.kind = Kind::kArrayStart;
      fault = reader.TryArrayHeader(&count);
      event.bits = count;
      return fault;
    case MsgpackType::kMap:
      event.kind = Kind::kObjectStart;
      fault = reader.TryMapHeader(&count);
      event.bits = count;
      return fault;
    case MsgpackType::kReserved:
      return MsgpackFault::kReserved;
    case MsgpackType::kEnd:
      return MsgpackFault::kTruncated;
  }
  return MsgpackFault::kReserved;
}

class MsgpackWalk {
 public:
  MsgpackWalk(std::string_view body, BodySink& sink)
      : reader_({reinterpret_cast<const std::uint8_t*>(body.data()), body.size()}), sink_(sink) {}

  Status Run() {
    do {
      CONDUCTOR_RETURN_IF_ERROR(Step());
    } while (!open_.empty());
    if (!reader_.AtEnd()) {
      return Invalid(reader_.Offset(),
                     std::to_string(reader_.Remaining()) + " bytes follow the end of the value");
    }
    return {};
  }

 private:
  // One value or key, then the ends of the containers it completes.
  Status Step() {
    if (open_.empty() || open_.back().owed > 0) {
      CONDUCTOR_RETURN_IF_ERROR(TakeValue());
    }
    while (!open_.empty() && open_.back().owed == 0) {
      BodyEvent end;
      end.kind = open_.back().is_map ? Kind::kObjectEnd : Kind::kArrayEnd;
      open_.pop_back();
      if (!sink_.OnEvent(end, &error_)) return tl::unexpected(std::move(error_));
    }
    return {};
  }

  Status TakeValue() {
    const std::size_t offset = reader_.Offset();
    BodyEvent event;
    if (const auto fault = ReadValue(reader_, event); fault != MsgpackFault::kNone) {
      return Invalid(offset, std::string(ToString(fault)));
    }
    if (!open_.empty()) {
      OpenContainer& parent = open_.back();
      if (parent.is_map && parent.key_next) {
        if (event.kind != Kind::kText) {
          return Invalid(offset, "expected a text key, got " + std::string(Describe(event.kind)));
        }
        event.kind = Kind::kKey;
      }
      if (parent.is_map) parent.key_next = !parent.key_next;
      if (event.kind != Kind::kKey) --parent.owed;
    }
    if (event.IsStart()) {
      if (open_.size() == kBodyDepthMax) {
        return Invalid(offset, "more than " + std::to_string(kBodyDepthMax) + " levels");
      }
      const bool is_map = event.kind == Kind::kObjectStart;
      open_.push_back({is_map, is_map, event.bits});
    }
    if (!sink_.OnEvent(event, &error_)) return tl::unexpected(std::move(error_));
    return {};
  }

  MsgpackReader reader_;
  BodySink& sink_;
  std::vector<OpenContainer> open_;
  Error error_;
};

}  // namespace

Status ReadMsgpack(std::string_view body, BodySink& sink) {
  return MsgpackWalk(body, sink).Run();
}

}  // namespace conductor::http
