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

ObjectReader::~ObjectReader() {
  for (const Field& field : fields_) {
    if (field.owned) field.sink->~BodySink();
  }
}

ObjectReader::Field& ObjectReader::Add(std::string_view field, Presence presence, BodySink* sink) {
  Field& added = fields_.emplace_back();
  added.name = field;
  added.presence = presence;
  added.sink = sink;
  return added;
}

void ObjectReader::Object(std::string_view field, Presence presence, ObjectReader* nested) {
  Add(field, presence, nested);
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
      return InvalidField("missing", field,
                          std::string(name_) + ": the field " + field + " is missing");
    }
  }
  return {};
}

bool ObjectReader::Select(std::string_view key, Error* error) {
  for (Field& known : fields_) {
    if (known.name != key) continue;
    if (known.seen) {
      return Refuse(error, "invalid_value", key,
                    std::string(name_) + ": " + std::string(key) + " comes twice");
    }
    known.seen = true;
    active_ = &known;
    depth_ = 0;
    return true;
  }
  const std::string_view shown = key.substr(0, kShownKeyBytesMax);
  std::string message =
      std::string(name_) + ": unknown field " + std::string(shown) + ", expected one of";
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
    return Refuse(
        error, "invalid_type", name_ == "body" ? "" : name_,
        std::string(name_) + ": expected an object, got " + std::string(Describe(event.kind)));
  }
  if (event.kind == Kind::kKey) return Select(event.text, error);
  return true;  // its own end
}

}  // namespace conductor::http
