// Reads one object of a request body by a list of known fields: unknown and repeated fields, wrong
// types and missing ones are errors that carry the contract's reason, field and index.
//
//   ObjectReader reader("body");
//   std::optional<std::string> model;
//   reader.Text("model", Presence::kRequired, &model);
//   CONDUCTOR_RETURN_IF_ERROR(ReadBody(bytes, format, reader));
//   CONDUCTOR_RETURN_IF_ERROR(reader.CheckRequired());
//
// Outputs and names must outlive the reader. null in an optional field is the same as no field.
// The reader of a query is built for every request: what it needs is in place, not on the heap.
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/body_event.h"
#include "src/result.h"
#include "src/types.h"

namespace conductor::http {

enum class Presence { kRequired, kOptional };

class ObjectReader : public BodySink {
 public:
  // `name`: how error texts call the object.
  explicit ObjectReader(std::string_view name) : name_(name) { fields_.reserve(kFieldsInPlace); }
  ~ObjectReader() override;
  ObjectReader(const ObjectReader&) = delete;
  ObjectReader& operator=(const ObjectReader&) = delete;

  void Text(std::string_view field, Presence presence, std::optional<std::string>* out);
  // Any integer of 64 bits with sign; bool and floats are none.
  void Integer(std::string_view field, Presence presence, std::optional<std::int64_t>* out);
  void Bool(std::string_view field, bool* out);
  // An array of int32, or (msgpack) bytes of little-endian int32. More than `count_max`: too_large.
  void Tokens(std::string_view field, std::size_t count_max, std::vector<std::int32_t>* out);
  // An array of 64-bit hashes (integers of either sign, decimal texts), or (msgpack) bytes of
  // little-endian u64.
  void Hashes(std::string_view field, Presence presence, std::size_t count_max,
              std::vector<std::uint64_t>* out);
  // One entry per block: null, or an array of text, integer, bytes and [identifier, offset].
  void ExtraKeysOfBlocks(std::string_view field, std::size_t count_max,
                         std::vector<ExtraKeys>* out);
  void IntegerMap(std::string_view field, std::optional<std::map<std::string, std::int64_t>>* out);
  void Object(std::string_view field, Presence presence, ObjectReader* nested);
  // Accepted, whatever it is.
  void Ignored(std::string_view field);

  bool Has(std::string_view field) const;
  // The first required field that did not come: reason missing.
  Status CheckRequired() const;

  bool OnEvent(const BodyEvent& event, Error* error) override;
  bool WantsInt32s() const override {
    return active_ != nullptr && depth_ == 1 && active_->sink->WantsInt32s();
  }
  bool OnInt32s(std::span<const std::int32_t> elements, Error* error) override {
    return active_->sink->OnInt32s(elements, error);
  }

 private:
  // Enough for the largest object there is; more would only mean an allocation.
  static constexpr std::size_t kFieldsInPlace = 16;
  static constexpr std::size_t kBytesInPlace = 2'048;

  struct Field {
    std::string_view name;
    Presence presence = Presence::kOptional;
    BodySink* sink = nullptr;
    bool owned = false;  // the sink ends with the reader, its memory is memory_'s
    bool seen = false;
    bool given = false;  // seen with a value that was not null
  };

  Field& Add(std::string_view field, Presence presence, BodySink* sink);
  template <typename Sink, typename... Arguments>
  void Emplace(std::string_view field, Presence presence, Arguments... arguments);
  bool Select(std::string_view key, Error* error);

  const std::string_view name_;
  alignas(std::max_align_t) std::byte in_place_[kBytesInPlace];
  std::pmr::monotonic_buffer_resource memory_{in_place_, sizeof in_place_};
  std::pmr::vector<Field> fields_{&memory_};
  bool started_ = false;
  Field* active_ = nullptr;  // the field whose value is being read
  std::size_t depth_ = 0;    // open containers of that value
};

// Fills `error` and returns false: how sinks end.
bool Refuse(Error* error, std::string_view reason, std::string_view field, std::string message,
            long long index = -1);

}  // namespace conductor::http
