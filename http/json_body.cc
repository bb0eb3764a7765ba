// Which reader takes a JSON body: the fast one, unless the body is no object (a refusal anyway) or
// so large that the fast one's memory would be a load. Where a document is broken, only the careful
// one can tell.
#include <string>

#include "http/http_limits.h"
#include "http/json_readers.h"

namespace conductor::http {

namespace {

class Nothing final : public BodySink {
 public:
  bool OnEvent(const BodyEvent&, Error*) override { return true; }
};

bool IsObject(std::string_view body) {
  const auto first = body.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && body[first] == '{';
}

}  // namespace

Status ReadJson(std::string_view body, BodySink& sink) {
  if (body.size() > kFastJsonBytesMax || !IsObject(body)) return ReadJsonCarefully(body, sink);
  Error refused;
  switch (ReadJsonFast(body, sink, &refused)) {
    case FastJson::kRead:
      return {};
    case FastJson::kRefused:
      return tl::unexpected(std::move(refused));
    case FastJson::kInvalid:
      break;
  }
  Nothing nothing;
  CONDUCTOR_RETURN_IF_ERROR(ReadJsonCarefully(body, nothing));
  return InvalidField("invalid_json", "", "body: invalid JSON");
}

}  // namespace conductor::http
