#include "http/answer_writer.h"

#include <charconv>
#include <utility>

#include "src/hash/utf8.h"

namespace conductor::http {

namespace {

template <typename Number>
void AppendNumber(std::string& out, Number number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

// Texts come from requests, which are checked; anything else must still not break the document.
std::string AsciiOnly(std::string_view text) {
  std::string ascii(text);
  for (char& c : ascii) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return ascii;
}

}  // namespace

void AnswerWriter::Separate() {
  if (comma_) json_.push_back(',');
  comma_ = true;
}

void AnswerWriter::BeginObject(std::size_t pairs) {
  if (!json_format_) return msgpack_.WriteMapHeader(static_cast<std::uint32_t>(pairs));
  Separate();
  json_.push_back('{');
  comma_ = false;
}

void AnswerWriter::EndObject() {
  if (!json_format_) return;
  json_.push_back('}');
  comma_ = true;
}

void AnswerWriter::BeginArray(std::size_t count) {
  if (!json_format_) return msgpack_.WriteArrayHeader(static_cast<std::uint32_t>(count));
  Separate();
  json_.push_back('[');
  comma_ = false;
}

void AnswerWriter::EndArray() {
  if (!json_format_) return;
  json_.push_back(']');
  comma_ = true;
}

AnswerWriter& AnswerWriter::Key(std::string_view key) {
  Text(key);
  if (json_format_) {
    json_.push_back(':');
    comma_ = false;
  }
  return *this;
}

void AnswerWriter::Text(std::string_view text) {
  const bool valid = IsValidUtf8(text);
  const std::string replaced = valid ? "" : AsciiOnly(text);
  const std::string_view clean = valid ? text : std::string_view(replaced);
  if (!json_format_) return msgpack_.WriteText(clean);
  Separate();
  Quote(clean);
}

void AnswerWriter::Quote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  json_.push_back('"');
  std::size_t written = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
    json_.append(text.substr(written, i - written));
    written = i + 1;
    switch (c) {
      case '"':
        json_ += "\\\"";
        break;
      case '\\':
        json_ += "\\\\";
        break;
      case '\n':
        json_ += "\\n";
        break;
      case '\r':
        json_ += "\\r";
        break;
      case '\t':
        json_ += "\\t";
        break;
      default:
        json_ += "\\u00";
        json_.push_back(kHex[c >> 4]);
        json_.push_back(kHex[c & 0xf]);
    }
  }
  json_.append(text.substr(written));
  json_.push_back('"');
}

void AnswerWriter::Unsigned(std::uint64_t number) {
  if (!json_format_) return msgpack_.WriteUint64(number);
  Separate();
  AppendNumber(json_, number);
}

void AnswerWriter::Signed(std::int64_t number) {
  if (!json_format_) return msgpack_.WriteInt64(number);
  Separate();
  AppendNumber(json_, number);
}

void AnswerWriter::Bool(bool value) {
  if (!json_format_) return msgpack_.WriteBool(value);
  Separate();
  json_ += value ? "true" : "false";
}

void AnswerWriter::Null() {
  if (!json_format_) return msgpack_.WriteNil();
  Separate();
  json_ += "null";
}

std::string AnswerWriter::Take() && {
  return json_format_ ? std::move(json_) : std::move(msgpack_).Take();
}

}  // namespace conductor::http
