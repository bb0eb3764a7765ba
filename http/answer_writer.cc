#include "http/answer_writer.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "src/check.h"
#include "src/hash/utf8.h"

namespace conductor::http {

namespace {

constexpr std::size_t kDigitsMax = 20;
constexpr std::size_t kPackedBytesMax = 9;
constexpr std::size_t kRealDigitsMax = 320;  // the largest double has 309 before the point

// Texts come from requests, which are checked; anything else must still not break the document.
std::string AsciiOnly(std::string_view text) {
  std::string ascii(text);
  for (char& c : ascii) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return ascii;
}

bool IsAscii(std::string_view text) {
  unsigned char seen = 0;
  for (const char c : text) seen |= static_cast<unsigned char>(c);
  return seen < 0x80;
}

// The tag and then the lowest `width` bytes of the number, big-endian. Returns how many they are.
std::size_t Put(char* target, std::uint8_t tag, std::uint64_t number, std::size_t width) {
  target[0] = static_cast<char>(tag);
  for (std::size_t i = 0; i < width; ++i) {
    target[1 + i] = static_cast<char>(number >> (8 * (width - 1 - i)));
  }
  return 1 + width;
}

void Pack(std::string& out, std::uint8_t tag, std::uint64_t number, std::size_t width) {
  char bytes[kPackedBytesMax];
  out.append(bytes, Put(bytes, tag, number, width));
}

std::size_t PutUnsigned(char* target, std::uint64_t number) {
  if (number <= 0x7f) {
    *target = static_cast<char>(number);
    return 1;
  }
  if (number <= std::numeric_limits<std::uint8_t>::max()) return Put(target, 0xcc, number, 1);
  if (number <= std::numeric_limits<std::uint16_t>::max()) return Put(target, 0xcd, number, 2);
  if (number <= std::numeric_limits<std::uint32_t>::max()) return Put(target, 0xce, number, 4);
  return Put(target, 0xcf, number, 8);
}

void PackUnsigned(std::string& out, std::uint64_t number) {
  char bytes[kPackedBytesMax];
  out.append(bytes, PutUnsigned(bytes, number));
}

template <typename Number>
void AppendNumber(std::string& out, Number number) {
  char digits[kDigitsMax];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

}  // namespace

void AnswerWriter::PackHeader(std::uint8_t fix, std::uint8_t wide, std::size_t count) {
  CHECK(count <= std::numeric_limits<std::uint32_t>::max());
  if (count <= 15) return out_.push_back(static_cast<char>(fix | count));
  if (count <= std::numeric_limits<std::uint16_t>::max()) return Pack(out_, wide, count, 2);
  Pack(out_, wide + 1, count, 4);
}

void AnswerWriter::PackText(std::string_view text) {
  CHECK(text.size() <= std::numeric_limits<std::uint32_t>::max());
  if (text.size() <= 31) {
    out_.push_back(static_cast<char>(0xa0 | text.size()));
  } else if (text.size() <= std::numeric_limits<std::uint8_t>::max()) {
    Pack(out_, 0xd9, text.size(), 1);
  } else if (text.size() <= std::numeric_limits<std::uint16_t>::max()) {
    Pack(out_, 0xda, text.size(), 2);
  } else {
    Pack(out_, 0xdb, text.size(), 4);
  }
  out_.append(text);
}

void AnswerWriter::BeginObject(std::size_t pairs) {
  if (!json_format_) return PackHeader(0x80, 0xde, pairs);
  Separate();
  out_.push_back('{');
  comma_ = false;
}

void AnswerWriter::EndObject() {
  if (!json_format_) return;
  out_.push_back('}');
  comma_ = true;
}

void AnswerWriter::BeginArray(std::size_t count) {
  if (!json_format_) return PackHeader(0x90, 0xdc, count);
  Separate();
  out_.push_back('[');
  comma_ = false;
}

void AnswerWriter::EndArray() {
  if (!json_format_) return;
  out_.push_back(']');
  comma_ = true;
}

std::size_t AnswerWriter::PutKey(FieldName name, char* target) {
  const std::string_view text = name.text();
  std::size_t size = 0;
  if (!json_format_) {
    target[size++] = static_cast<char>(0xa0 | text.size());
    return size + text.copy(target + size, text.size());
  }
  if (comma_) target[size++] = ',';
  target[size++] = '"';
  size += text.copy(target + size, text.size());
  target[size++] = '"';
  target[size++] = ':';
  comma_ = false;
  return size;
}

AnswerWriter& AnswerWriter::Key(FieldName name) {
  char bytes[kKeyBytesMax];
  out_.append(bytes, PutKey(name, bytes));
  return *this;
}

void AnswerWriter::Count(FieldName name, std::uint64_t number) {
  char bytes[kKeyBytesMax + kDigitsMax];
  std::size_t size = PutKey(name, bytes);
  if (!json_format_) {
    size += PutUnsigned(bytes + size, number);
  } else {
    size =
        static_cast<std::size_t>(std::to_chars(bytes + size, std::end(bytes), number).ptr - bytes);
    comma_ = true;
  }
  out_.append(bytes, size);
}

AnswerWriter& AnswerWriter::TextKey(std::string_view key) {
  Text(key);
  EndKey();
  return *this;
}

AnswerWriter& AnswerWriter::NumberKey(std::uint64_t key) {
  char digits[kDigitsMax];
  const auto end = std::to_chars(digits, digits + sizeof digits, key).ptr;
  const std::string_view text(digits, static_cast<std::size_t>(end - digits));
  if (json_format_) {
    Separate();
    out_.append(1, '"').append(text).append(1, '"');
  } else {
    PackText(text);
  }
  EndKey();
  return *this;
}

void AnswerWriter::Text(std::string_view text) {
  const bool valid = IsAscii(text) || IsValidUtf8(text);
  const std::string replaced = valid ? "" : AsciiOnly(text);
  const std::string_view clean = valid ? text : std::string_view(replaced);
  if (!json_format_) return PackText(clean);
  Separate();
  Quote(clean);
}

void AnswerWriter::Quote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out_.push_back('"');
  std::size_t written = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
    out_.append(text.substr(written, i - written));
    written = i + 1;
    switch (c) {
      case '"':
        out_ += "\\\"";
        break;
      case '\\':
        out_ += "\\\\";
        break;
      case '\n':
        out_ += "\\n";
        break;
      case '\r':
        out_ += "\\r";
        break;
      case '\t':
        out_ += "\\t";
        break;
      default:
        out_ += "\\u00";
        out_.push_back(kHex[c >> 4]);
        out_.push_back(kHex[c & 0xf]);
    }
  }
  out_.append(text.substr(written));
  out_.push_back('"');
}

void AnswerWriter::Unsigned(std::uint64_t number) {
  if (!json_format_) return PackUnsigned(out_, number);
  Separate();
  AppendNumber(out_, number);
}

void AnswerWriter::Tenths(double number) {
  const double rounded = std::round(number * 10) / 10;
  if (!std::isfinite(rounded)) return Null();
  if (!json_format_) return Pack(out_, 0xcb, std::bit_cast<std::uint64_t>(rounded), 8);
  Separate();
  char digits[kRealDigitsMax];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, rounded, std::chars_format::fixed, 1).ptr;
  out_.append(digits, end);
}

void AnswerWriter::Signed(std::int64_t number) {
  if (json_format_) {
    Separate();
    return AppendNumber(out_, number);
  }
  const auto bits = static_cast<std::uint64_t>(number);
  if (number >= 0) return PackUnsigned(out_, bits);
  if (number >= -32) return out_.push_back(static_cast<char>(bits));
  if (number >= std::numeric_limits<std::int8_t>::min()) return Pack(out_, 0xd0, bits, 1);
  if (number >= std::numeric_limits<std::int16_t>::min()) return Pack(out_, 0xd1, bits, 2);
  if (number >= std::numeric_limits<std::int32_t>::min()) return Pack(out_, 0xd2, bits, 4);
  Pack(out_, 0xd3, bits, 8);
}

void AnswerWriter::Bool(bool value) {
  if (!json_format_) return out_.push_back(static_cast<char>(value ? 0xc3 : 0xc2));
  Separate();
  out_ += value ? "true" : "false";
}

void AnswerWriter::Null() {
  if (!json_format_) return out_.push_back(static_cast<char>(0xc0));
  Separate();
  out_ += "null";
}

}  // namespace conductor::http
