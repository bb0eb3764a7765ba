// Writes an answer once, in either body format. Containers say their size first (msgpack needs
// it); the caller keeps that promise. One buffer, no tree. One thread per writer.
//
//   AnswerWriter writer(BodyFormat::kJson);
//   writer.BeginObject(1);
//   writer.Key("status").Text("ok");
//   writer.EndObject();
//   std::string body = std::move(writer).Take();
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/body_format.h"

namespace conductor::http {

// A name of the contract: plain ASCII without quotes or backslashes, at most 31 bytes. Checked
// when the program is compiled, so that nothing is checked when it is written.
class FieldName {
 public:
  template <std::size_t kSize>
  consteval FieldName(const char (&name)[kSize]) : name_(name, kSize - 1) {  // NOLINT: implicit
    if (kSize > 32) throw "a field name is longer than 31 bytes";
    for (const char c : name_) {
      if (c < ' ' || c > '~' || c == '"' || c == '\\') throw "not a plain field name";
    }
  }
  std::string_view text() const { return name_; }

 private:
  std::string_view name_;
};

class AnswerWriter {
 public:
  // `bytes`: about how large the answer becomes.
  explicit AnswerWriter(BodyFormat format, std::size_t bytes = 0)
      : json_format_(format == BodyFormat::kJson) {
    out_.reserve(bytes);
  }

  void BeginObject(std::size_t pairs);
  void EndObject();
  void BeginArray(std::size_t count);
  void EndArray();
  AnswerWriter& Key(FieldName name);
  // Key(name).Unsigned(number), in one piece: most of a query's answer are such pairs.
  void Count(FieldName name, std::uint64_t number);
  AnswerWriter& TextKey(std::string_view key);
  AnswerWriter& NumberKey(std::uint64_t key);  // as text: "7"

  void Text(std::string_view text);
  void Unsigned(std::uint64_t number);
  void Signed(std::int64_t number);
  void Tenths(double number);  // rounded; what is not finite is null
  void Bool(bool value);
  void Null();

  std::string Take() && { return std::move(out_); }

 private:
  static constexpr std::size_t kKeyBytesMax = 35;

  // Before a value: the comma that separates it from the one before.
  void Separate() {
    if (comma_) out_.push_back(',');
    comma_ = true;
  }
  void EndKey() {
    if (!json_format_) return;
    out_.push_back(':');
    comma_ = false;
  }
  // Returns how many bytes it wrote: at most kKeyBytesMax.
  std::size_t PutKey(FieldName name, char* target);
  void Quote(std::string_view text);
  void PackText(std::string_view text);
  void PackHeader(std::uint8_t fix, std::uint8_t wide, std::size_t count);

  const bool json_format_;
  bool comma_ = false;  // a value was written in the container that is open
  std::string out_;
};

}  // namespace conductor::http
