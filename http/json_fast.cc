// JSON bodies to events through simdjson's on-demand reader. A thread keeps its parser and its
// padded copy of the body, so that a query of usual size allocates nothing here.
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

#include "http/http_limits.h"
#include "http/json_readers.h"
#include "src/hash/utf8.h"

namespace conductor::http {

namespace {

namespace ondemand = simdjson::ondemand;
using Kind = BodyEvent::Kind;

struct Scratch {
  ondemand::parser parser;
  std::unique_ptr<char[]> bytes;
  std::size_t capacity = 0;

  // simdjson looks a little beyond the end.
  void Fill(std::string_view body) {
    const std::size_t needed = body.size() + simdjson::SIMDJSON_PADDING;
    if (capacity < needed) {
      bytes.reset(new char[needed]);
      capacity = needed;
    }
    body.copy(bytes.get(), body.size());
    std::memset(bytes.get() + body.size(), ' ', simdjson::SIMDJSON_PADDING);
  }
};

// What the text of a number says.
struct Number {
  Kind kind = Kind::kNull;  // kInteger, kHuge; kNull: not an integer's text
  bool negative = false;
  std::uint64_t bits = 0;
};

Number ParseInteger(std::string_view text) {
  constexpr std::uint64_t kMagnitudeMaxNegative = std::uint64_t{1} << 63;
  Number number;
  number.negative = text.starts_with('-');
  const std::string_view digits = text.substr(number.negative ? 1 : 0);
  if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) return {};
  bool huge = false;
  for (const char c : digits) {
    if (c < '0' || c > '9') return {};
    const auto digit = static_cast<std::uint64_t>(c - '0');
    huge |= number.bits > (std::numeric_limits<std::uint64_t>::max() - digit) / 10;
    number.bits = number.bits * 10 + digit;
  }
  huge |= number.negative && number.bits > kMagnitudeMaxNegative;
  number.kind = huge ? Kind::kHuge : Kind::kInteger;
  if (number.negative) number.bits = 0 - number.bits;
  number.negative &= number.bits != 0;
  return number;
}

std::string_view TrimEnd(std::string_view token) {
  const auto last = token.find_last_not_of(" \t\r\n");
  return token.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

class FastWalk {
 public:
  FastWalk(BodySink& sink, Error* error) : sink_(sink), error_(error) {}

  FastJson Run(ondemand::document& document) {
    ondemand::object object;
    if (document.get_object().get(object) != simdjson::SUCCESS) return FastJson::kInvalid;
    if (const FastJson end = Object(object, 1); end != FastJson::kRead) return end;
    const bool at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
    return at_end ? FastJson::kRead : FastJson::kInvalid;
  }

 private:
  FastJson Send(Kind kind) {
    event_.kind = kind;
    return sink_.OnEvent(event_, error_) ? FastJson::kRead : FastJson::kRefused;
  }
  FastJson Open(Kind kind, std::size_t depth) {
    if (depth > kBodyDepthMax) return FastJson::kInvalid;
    event_.bits = 0;
    return Send(kind);
  }
  FastJson SendText(Kind kind, std::string_view text) {
    // simdjson lets half a surrogate pair pass; such a text is no UTF-8.
    if (!IsValidUtf8(text)) return FastJson::kInvalid;
    event_.text = text;
    return Send(kind);
  }

  // Calls itself through Value, at most kBodyDepthMax deep: Open is asked before.
  FastJson Object(ondemand::object object, std::size_t depth) {
    if (const FastJson open = Open(Kind::kObjectStart, depth); open != FastJson::kRead) return open;
    for (auto field : object) {
      std::string_view key;
      if (field.unescaped_key().get(key) != simdjson::SUCCESS) return FastJson::kInvalid;
      if (const FastJson sent = SendText(Kind::kKey, key); sent != FastJson::kRead) return sent;
      ondemand::value value;
      if (field.value().get(value) != simdjson::SUCCESS) return FastJson::kInvalid;
      if (const FastJson sent = Value(value, depth); sent != FastJson::kRead) return sent;
    }
    return Send(Kind::kObjectEnd);
  }

  FastJson Array(ondemand::array array, std::size_t depth) {
    if (const FastJson open = Open(Kind::kArrayStart, depth); open != FastJson::kRead) return open;
    std::array<std::int32_t, kInt32sAtOnce> numbers;
    std::size_t count = 0;
    const bool int32s = sink_.WantsInt32s();
    const auto flush = [&] {
      const bool taken = sink_.OnInt32s({numbers.data(), count}, error_);
      count = 0;
      return taken;
    };
    for (auto element : array) {
      ondemand::value value;
      if (element.get(value) != simdjson::SUCCESS) return FastJson::kInvalid;
      std::int64_t number = 0;
      if (int32s && value.get_int64().get(number) == simdjson::SUCCESS) {
        const auto narrow = static_cast<std::int32_t>(number);
        if (narrow == number) {
          numbers[count++] = narrow;
          if (count == numbers.size() && !flush()) return FastJson::kRefused;
          continue;
        }
        if (count > 0 && !flush()) return FastJson::kRefused;
        event_.negative = number < 0;
        event_.bits = static_cast<std::uint64_t>(number);
        if (const FastJson sent = Send(Kind::kInteger); sent != FastJson::kRead) return sent;
        continue;
      }
      if (count > 0 && !flush()) return FastJson::kRefused;
      if (const FastJson sent = Value(value, depth); sent != FastJson::kRead) return sent;
    }
    if (count > 0 && !flush()) return FastJson::kRefused;
    return Send(Kind::kArrayEnd);
  }

  FastJson Value(ondemand::value& value, std::size_t depth) {
    ondemand::json_type type;
    if (value.type().get(type) != simdjson::SUCCESS) return FastJson::kInvalid;
    switch (type) {
      case ondemand::json_type::array: {
        ondemand::array array;
        if (value.get_array().get(array) != simdjson::SUCCESS) return FastJson::kInvalid;
        return Array(array, depth + 1);
      }
      case ondemand::json_type::object: {
        ondemand::object object;
        if (value.get_object().get(object) != simdjson::SUCCESS) return FastJson::kInvalid;
        return Object(object, depth + 1);
      }
      case ondemand::json_type::string: {
        std::string_view text;
        if (value.get_string().get(text) != simdjson::SUCCESS) return FastJson::kInvalid;
        return SendText(Kind::kText, text);
      }
      case ondemand::json_type::boolean:
        if (value.get_bool().get(event_.boolean) != simdjson::SUCCESS) return FastJson::kInvalid;
        return Send(Kind::kBool);
      case ondemand::json_type::null:
        return IsNull(value) ? Send(Kind::kNull) : FastJson::kInvalid;
      case ondemand::json_type::number:
        return SendNumber(value);
    }
    return FastJson::kInvalid;
  }

  // "nul" has the type of null too.
  static bool IsNull(ondemand::value& value) {
    bool null = false;
    return value.is_null().get(null) == simdjson::SUCCESS && null;
  }

  FastJson SendNumber(ondemand::value& value) {
    const Number number = ParseInteger(TrimEnd(value.raw_json_token()));
    double as_double = 0;
    if (number.kind == Kind::kNull) {
      if (value.get_double().get(as_double) != simdjson::SUCCESS) return FastJson::kInvalid;
      return Send(Kind::kFloat);
    }
    event_.negative = number.negative;
    event_.bits = number.bits;
    return Send(number.kind);
  }

  BodySink& sink_;
  Error* error_;
  BodyEvent event_;
};

FastJson Read(std::string_view body, Scratch& scratch, BodySink& sink, Error* error) {
  scratch.Fill(body);
  ondemand::document document;
  const auto failure =
      scratch.parser.iterate(scratch.bytes.get(), body.size(), scratch.capacity).get(document);
  if (failure != simdjson::SUCCESS) return FastJson::kInvalid;
  return FastWalk(sink, error).Run(document);
}

}  // namespace

FastJson ReadJsonFast(std::string_view body, BodySink& sink, Error* error) {
  if (body.size() > kFastJsonBytesKept) {
    Scratch scratch;
    return Read(body, scratch, sink, error);
  }
  thread_local Scratch scratch;
  return Read(body, scratch, sink, error);
}

}  // namespace conductor::http
