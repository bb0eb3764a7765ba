#include "http/object_reader.h"

#include <utility>

#include "http/http_limits.h"

namespace conductor::http {

namespace {
using Kind = BodyEvent::Kind;
}  // namespace

bool Refuse(Error* error, std::string_view reason, std::string_view field, std::string message,
            long long index) {
  const auto code =
      reason == "too_large" ? ErrorCode::kResourceExhausted : ErrorCode::kInvalidArgument;
  *error = Error{code, std::move(message), std::string(reason), std::string(field), index};
  return false;
}

void ObjectReader::Add(std::string_view field, Presence presence, std::unique_ptr<BodySink> sink) {
  Field added;
  added.name = field;
  added.presence = presence;
  added.sink = sink.get();
  added.owned = std::move(sink);
  fields_.push_back(std::move(added));
}

void ObjectReader::Object(std::string_view field, Presence presence, ObjectReader* nested) {
  Field added;
  added.name = field;
  added.presence = presence;
  added.sink = nested;
  fields_.push_back(std::move(added));
}

bool ObjectReader::Has(std::string_view field) const {
  for (const Field& known : fields_) {
    if (known.name == field) return known.given;
  }
  return false;
}

Status ObjectReader::CheckRequired() const {
  for (const Field& known : fields_) {
    if (known.presence == Presence::kRequired && !known.given) {
      const std::string field(known.name);
      return InvalidField("missing", field, name_ + ": the field " + field + " is missing");
    }
  }
  return {};
}

bool ObjectReader::Select(std::string_view key, Error* error) {
  for (Field& known : fields_) {
    if (known.name != key) continue;
    if (known.seen) {
      return Refuse(error, "invalid_value", key, name_ + ": " + std::string(key) + " comes twice");
    }
    known.seen = true;
    active_ = &known;
    depth_ = 0;
    return true;
  }
  const std::string_view shown = key.substr(0, kShownKeyBytesMax);
  std::string message = name_ + ": unknown field " + std::string(shown) + ", expected one of";
  for (const Field& known : fields_) message.append(" ").append(known.name);
  return Refuse(error, "unknown_field", shown, std::move(message));
}

bool ObjectReader::OnEvent(const BodyEvent& event, Error* error) {
  if (active_ != nullptr) {
    const bool is_null = depth_ == 0 && event.kind == Kind::kNull;
    if (!is_null || active_->presence == Presence::kRequired) {
      active_->given = true;
      if (!active_->sink->OnEvent(event, error)) return false;
    }
    if (event.IsStart()) ++depth_;
    if (event.IsEnd()) --depth_;
    if (depth_ == 0) active_ = nullptr;
    return true;
  }
  if (!started_) {
    started_ = true;
    if (event.kind == Kind::kObjectStart) return true;
    return Refuse(error, "invalid_type", name_ == "body" ? "" : name_,
                  name_ + ": expected an object, got " + std::string(Describe(event.kind)));
  }
  if (event.kind == Kind::kKey) return Select(event.text, error);
  return true;  // its own end
}

}  // namespace conductor::http
