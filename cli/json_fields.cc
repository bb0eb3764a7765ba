#include "cli/json_fields.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "cli/text.h"

namespace conductor::cli {

namespace {

constexpr std::size_t kQuotedBytesMax = 64;

// Short, and on one line whatever it holds.
std::string Quoted(std::string text) {
  if (text.size() > kQuotedBytesMax) text = text.substr(0, kQuotedBytesMax) + "...";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, '?');
  return "'" + text + "'";
}

// "[json.exception.parse_error.101] parse error at line 3, ..." without the bracket.
std::string Reason(const std::exception& exception) {
  const std::string text = exception.what();
  const std::size_t end = text.find("] ");
  return text.starts_with("[") && end != std::string::npos ? text.substr(end + 2) : text;
}

}  // namespace

Result<Json> ParseJson(const std::string& text) {
  std::vector<std::set<std::string>> open_objects;
  std::string duplicate;
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (static_cast<std::size_t>(depth) > kJsonDepthMax) {
      too_deep = true;
      return false;
    }
    if (event == Event::object_start) open_objects.emplace_back();
    if (event == Event::object_end && !open_objects.empty()) open_objects.pop_back();
    if (event == Event::key && !open_objects.empty()) {
      const std::string key = parsed.get<std::string>();
      if (!open_objects.back().insert(key).second && duplicate.empty()) duplicate = key;
    }
    return true;
  };
  try {
    Json json = Json::parse(text, watch);
    if (too_deep) {
      return InvalidField("invalid_json", "",
                          "nested deeper than " + std::to_string(kJsonDepthMax) + " levels");
    }
    if (!duplicate.empty()) {
      return InvalidField("invalid_value", duplicate, duplicate + ": the key comes twice");
    }
    return json;
  } catch (const nlohmann::json::exception& exception) {
    return InvalidField("invalid_json", "", "not JSON: " + Reason(exception));
  }
}

std::string DescribeJson(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "text " + Quoted(value.get_ref<const std::string&>());
    case Json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case Json::value_t::number_float:
      return "a number with a fraction or beyond 64 bits";
    case Json::value_t::number_integer:
      return std::to_string(value.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return std::to_string(value.get<std::uint64_t>());
    default:
      return "something else";
  }
}

JsonFields::JsonFields(const Json& object, std::string path)
    : object_(object), path_(std::move(path)) {
  if (!object.is_object()) {
    error_ = Error{ErrorCode::kInvalidArgument,
                   (path_.empty() ? "the document" : path_) + ": expected an object, got " +
                       DescribeJson(object),
                   "invalid_type", path_, -1};
  }
}

void JsonFields::Text(const std::string& name, std::optional<std::string>* out) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_string()) {
    return Fail(name, "invalid_type", "expected text, got " + DescribeJson(*value));
  }
  *out = value->get<std::string>();
}

void JsonFields::TextOrNull(const std::string& name, std::optional<std::string>* out) {
  const Json* value = Find(name);
  if (value != nullptr && !value->is_null()) Text(name, out);
}

void JsonFields::Integer(const std::string& name, IntegerRange range, std::int64_t* out) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  const std::string expected = "expected an integer " + std::to_string(range.min) + ".." +
                               std::to_string(range.max) + ", got " + DescribeJson(*value);
  if (!value->is_number_integer()) return Fail(name, "invalid_type", expected);
  const bool fits = !value->is_number_unsigned() ||
                    value->get<std::uint64_t>() <=
                        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::int64_t number = fits ? value->get<std::int64_t>() : 0;
  if (!fits || number < range.min || number > range.max) {
    return Fail(name, "out_of_range", expected);
  }
  *out = number;
}

void JsonFields::IntegerOrNull(const std::string& name, std::optional<std::int64_t>* out) {
  const Json* value = Find(name);
  if (value == nullptr || value->is_null()) return;
  std::int64_t number = 0;
  Integer(name,
          {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()},
          &number);
  if (!error_) *out = number;
}

void JsonFields::Word(const std::string& name, const std::vector<std::string>& words,
                      std::size_t* out) {
  std::optional<std::string> text;
  Text(name, &text);
  if (!text) return;
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found != words.end()) {
    *out = static_cast<std::size_t>(found - words.begin());
    return;
  }
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  Fail(name, "invalid_value", "expected one of " + list + ", got " + Quoted(*text));
}

void JsonFields::Object(const std::string& name,
                        const std::function<Status(const Json&, const std::string&)>& read) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_object()) {
    return Fail(name, "invalid_type", "expected an object, got " + DescribeJson(*value));
  }
  if (Status status = read(*value, Path(name)); !status) error_ = status.error();
}

void JsonFields::Unsupported(const std::string& name, const std::string& why) {
  if (Find(name) != nullptr) Fail(name, "unsupported", "unsupported: " + why);
}

Status JsonFields::Finish() {
  if (error_) return tl::unexpected(*error_);
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    Fail(key, "unknown_field", "unknown key; the nearest known one is " + Nearest(key, known_));
    return tl::unexpected(*error_);
  }
  return {};
}

const Json* JsonFields::Find(const std::string& name) {
  if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.push_back(name);
  if (error_) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

std::string JsonFields::Path(const std::string& name) const {
  return path_.empty() ? name : path_ + "." + name;
}

void JsonFields::Fail(const std::string& name, std::string reason, const std::string& message) {
  if (error_) return;
  error_ = Error{ErrorCode::kInvalidArgument, Path(name) + ": " + message, std::move(reason),
                 Path(name), -1};
}

}  // namespace conductor::cli
