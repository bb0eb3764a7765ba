#include "http/body_event.h"

namespace conductor::http {

std::string_view Describe(BodyEvent::Kind kind) {
  using Kind = BodyEvent::Kind;
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "a bool";
    case Kind::kInteger:
      return "an integer";
    case Kind::kHuge:
      return "an integer of more than 64 bits";
    case Kind::kFloat:
      return "a float";
    case Kind::kText:
      return "text";
    case Kind::kBytes:
      return "bytes";
    case Kind::kExt:
      return "an extension value";
    case Kind::kKey:
      return "a key";
    case Kind::kArrayStart:
      return "an array";
    case Kind::kArrayEnd:
      return "the end of an array";
    case Kind::kObjectStart:
      return "an object";
    case Kind::kObjectEnd:
      return "the end of an object";
  }
  return "unknown";
}

}  // namespace conductor::http
