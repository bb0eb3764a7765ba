// The careful reader: nlohmann's SAX parser, which keeps its own stack, builds no tree and needs no
// memory beyond one text. Error texts give the position only: what was read may be a salt.
#include <nlohmann/json.hpp>
#include <string>

#include "http/http_limits.h"
#include "http/json_readers.h"

namespace conductor::http {

namespace {

using Kind = BodyEvent::Kind;

class JsonEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonEvents(BodySink& sink) : sink_(sink) {}

  Error TakeError() { return std::move(error_); }

  bool null() override { return Send(Kind::kNull); }
  bool boolean(bool value) override {
    event_.boolean = value;
    return Send(Kind::kBool);
  }
  bool number_integer(std::int64_t value) override {
    event_.negative = value < 0;
    event_.bits = static_cast<std::uint64_t>(value);
    return Send(Kind::kInteger);
  }
  bool number_unsigned(std::uint64_t value) override {
    event_.negative = false;
    event_.bits = value;
    return Send(Kind::kInteger);
  }
  bool number_float(double, const std::string& digits) override {
    // An integer beyond 64 bits arrives here too; its spelling tells.
    const bool integer = digits.find_first_of(".eE") == std::string::npos;
    return Send(integer ? Kind::kHuge : Kind::kFloat);
  }
  bool string(std::string& value) override {
    event_.text = value;
    return Send(Kind::kText);
  }
  bool binary(nlohmann::json::binary_t&) override { return Send(Kind::kBytes); }
  bool key(std::string& value) override {
    event_.text = value;
    return Send(Kind::kKey);
  }
  bool start_object(std::size_t) override { return Open(Kind::kObjectStart); }
  bool start_array(std::size_t) override { return Open(Kind::kArrayStart); }
  bool end_object() override { return Close(Kind::kObjectEnd); }
  bool end_array() override { return Close(Kind::kArrayEnd); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    return Fail("body: invalid JSON at byte " + std::to_string(position));
  }

 private:
  bool Send(Kind kind) {
    event_.kind = kind;
    return sink_.OnEvent(event_, &error_);
  }
  bool Open(Kind kind) {
    if (++depth_ > kBodyDepthMax) {
      return Fail("body: more than " + std::to_string(kBodyDepthMax) + " levels");
    }
    event_.bits = 0;
    return Send(kind);
  }
  bool Close(Kind kind) {
    --depth_;
    return Send(kind);
  }
  bool Fail(std::string message) {
    error_ = InvalidField("invalid_json", "", std::move(message)).value();
    return false;
  }

  BodySink& sink_;
  BodyEvent event_;
  std::size_t depth_ = 0;
  Error error_;
};

}  // namespace

Status ReadJsonCarefully(std::string_view body, BodySink& sink) {
  JsonEvents events(sink);
  if (nlohmann::json::sax_parse(body.begin(), body.end(), &events)) return {};
  return tl::unexpected(events.TakeError());
}

}  // namespace conductor::http
