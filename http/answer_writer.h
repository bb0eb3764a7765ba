// Writes an answer once, in either body format. Containers say their size first (msgpack needs
// it); the caller keeps that promise. One thread per writer.
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
#include "replay/wire/msgpack_writer.h"

namespace conductor::http {

class AnswerWriter {
 public:
  explicit AnswerWriter(BodyFormat format) : json_format_(format == BodyFormat::kJson) {}

  void BeginObject(std::size_t pairs);
  void EndObject();
  void BeginArray(std::size_t count);
  void EndArray();
  AnswerWriter& Key(std::string_view key);

  void Text(std::string_view text);
  void Unsigned(std::uint64_t number);
  void Signed(std::int64_t number);
  void Bool(bool value);
  void Null();

  std::string Take() &&;

 private:
  // Before a value: the comma that separates it from the one before.
  void Separate();
  void Quote(std::string_view text);

  const bool json_format_;
  bool comma_ = false;  // a value was written in the container that is open
  std::string json_;
  MsgpackWriter msgpack_;
};

}  // namespace conductor::http
