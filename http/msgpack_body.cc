// Msgpack bodies to events: iterative, bounded depth, and every declared length is checked against
// the bytes that are there (replay/wire/msgpack_reader.h) before a sink hears of it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "http/body_format.h"
#include "http/http_limits.h"
#include "http/int32_run.h"
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
      : bytes_(reinterpret_cast<const std::uint8_t*>(body.data()), body.size()),
        reader_(bytes_),
        sink_(sink) {}

  Status Run() {
    do {
      CONDUCTOR_RETURN_IF_ERROR(Step());
    } while (depth_ > 0);
    if (!reader_.AtEnd()) {
      return Invalid(reader_.Offset(),
                     std::to_string(reader_.Remaining()) + " bytes follow the end of the value");
    }
    return {};
  }

 private:
  // One value or key, then the ends of the containers it completes.
  Status Step() {
    if (depth_ == 0 || Innermost().owed > 0) {
      CONDUCTOR_RETURN_IF_ERROR(TakeValue());
    }
    while (depth_ > 0 && Innermost().owed == 0) {
      BodyEvent end;
      end.kind = Innermost().is_map ? Kind::kObjectEnd : Kind::kArrayEnd;
      --depth_;
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
    if (depth_ > 0) {
      OpenContainer& parent = Innermost();
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
      if (depth_ == kBodyDepthMax) {
        return Invalid(offset, "more than " + std::to_string(kBodyDepthMax) + " levels");
      }
      const bool is_map = event.kind == Kind::kObjectStart;
      containers_[depth_++] = {is_map, is_map, event.bits};
    }
    if (!sink_.OnEvent(event, &error_)) return tl::unexpected(std::move(error_));
    return event.kind == Kind::kArrayStart && sink_.WantsInt32s() ? TakeInt32s() : Status();
  }

  OpenContainer& Innermost() { return containers_[depth_ - 1]; }

  // As many elements of the array that has just begun as can be taken in one go.
  Status TakeInt32s() {
    std::array<std::int32_t, kInt32sAtOnce> numbers;
    std::uint64_t& owed = Innermost().owed;
    while (owed > 0) {
      const std::size_t room = std::min<std::uint64_t>(owed, numbers.size());
      const Int32Run run =
          DecodeMsgpackInt32s(bytes_.subspan(reader_.Offset()), {numbers.data(), room});
      if (run.count == 0) break;
      if (!sink_.OnInt32s({numbers.data(), run.count}, &error_)) {
        return tl::unexpected(std::move(error_));
      }
      owed -= run.count;
      reader_.Seek(reader_.Offset() + run.bytes);
    }
    return {};
  }

  std::span<const std::uint8_t> bytes_;
  MsgpackReader reader_;
  BodySink& sink_;
  std::array<OpenContainer, kBodyDepthMax> containers_;
  std::size_t depth_ = 0;
  Error error_;
};

}  // namespace

Status ReadMsgpack(std::string_view body, BodySink& sink) {
  return MsgpackWalk(body, sink).Run();
}

}  // namespace conductor::http
