// Strict reading of JSON objects that people write: no key twice, no unknown key, no silent
// conversion. The first error stays; Finish returns it, or names a key nobody asked for together
// with the nearest one that is known.
//
//   JsonFields fields(json, "limits");
//   fields.Integer("tokens_max", {1, 1'000'000}, &tokens_max);
//   CONDUCTOR_RETURN_IF_ERROR(fields.Finish());
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"

namespace conductor::cli {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kJsonDepthMax = 16;

// Errors say line and column, or the key that comes twice.
Result<Json> ParseJson(const std::string& text);

// "text \"8080\"", "a number with a fraction", ...: what was found, for error texts.
std::string DescribeJson(const Json& value);

struct IntegerRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

class JsonFields {
 public:
  // `path` names the object in error texts; empty for the document itself.
  JsonFields(const Json& object, std::string path);

  void Text(const std::string& name, std::optional<std::string>* out);
  // Absent and null are the same here.
  void TextOrNull(const std::string& name, std::optional<std::string>* out);
  void Integer(const std::string& name, IntegerRange range, std::int64_t* out);
  // Any 64-bit integer; absent and null are the same. Ranges are someone else's business.
  void IntegerOrNull(const std::string& name, std::optional<std::int64_t>* out);
  // One of `words`; `*out` becomes its index.
  void Word(const std::string& name, const std::vector<std::string>& words, std::size_t* out);
  // Calls `read` with the value and its path when it is there and an object.
  void Object(const std::string& name,
              const std::function<Status(const Json&, const std::string& path)>& read);
  // A key this release refuses whatever its value is.
  void Unsupported(const std::string& name, const std::string& why);

  Status Finish();

 private:
  // Null when absent, or when an error stays already. Remembers the name as known.
  const Json* Find(const std::string& name);
  std::string Path(const std::string& name) const;
  void Fail(const std::string& name, std::string reason, const std::string& message);

  const Json& object_;
  const std::string path_;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

}  // namespace conductor::cli
