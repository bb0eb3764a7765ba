// What a request body says, one event at a time: the common tongue of the JSON and the msgpack
// reader, so that one set of field rules serves both and no tree is built for long arrays.
// Views in an event are valid during the call only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/result.h"

namespace conductor::http {

struct BodyEvent {
  enum class Kind : std::uint8_t {
    kNull,
    kBool,
    kInteger,  // `bits`, two's complement when `negative`
    kHuge,     // an integer outside 64 bits (JSON only)
    kFloat,
    kText,   // UTF-8
    kBytes,  // msgpack only
    kExt,    // msgpack only
    kKey,
    kArrayStart,  // `bits`: the number of elements if the format says it, else 0
    kArrayEnd,
    kObjectStart,
    kObjectEnd,
  };

  Kind kind = Kind::kNull;
  bool negative = false;
  bool boolean = false;
  std::uint64_t bits = 0;
  std::string_view text;

  bool IsStart() const { return kind == Kind::kArrayStart || kind == Kind::kObjectStart; }
  bool IsEnd() const { return kind == Kind::kArrayEnd || kind == Kind::kObjectEnd; }
};

// "an integer", "text": for error texts.
std::string_view Describe(BodyEvent::Kind kind);

class BodySink {
 public:
  virtual ~BodySink() = default;
  // False: the body is wrong, `error` says how, no further event is wanted. One call per token of
  // a prompt: no Status is built on the way.
  virtual bool OnEvent(const BodyEvent& event, Error* error) = 0;

  // True inside an array whose elements are 32-bit integers by rights. A reader may then hand over
  // any stretch of elements that are, and sends every other element as an event.
  virtual bool WantsInt32s() const { return false; }
  virtual bool OnInt32s(std::span<const std::int32_t> /*elements*/, Error* /*error*/) {
    return true;
  }
};

}  // namespace conductor::http
