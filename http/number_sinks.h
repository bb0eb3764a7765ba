// The fields that are arrays of numbers, and what every field's sink is made of. For
// field_sinks.cc.
#pragma once

#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "http/object_reader.h"

namespace conductor::http {

// "token_ids[3]: expected a 32-bit integer, got text".
inline bool WrongType(Error* error, std::string_view field, std::string_view expected,
                      BodyEvent::Kind got, long long index = -1) {
  std::string where(field);
  if (index >= 0) where += "[" + std::to_string(index) + "]";
  return Refuse(
      error, "invalid_type", field,
      where + ": expected " + std::string(expected) + ", got " + std::string(Describe(got)), index);
}

inline bool OutOfRange(Error* error, std::string_view field, std::string_view expected,
                       long long index = -1) {
  std::string where(field);
  if (index >= 0) where += "[" + std::to_string(index) + "]";
  return Refuse(error, "out_of_range", field,
                where + ": expected " + std::string(expected) + ", got one outside that range",
                index);
}

// A sink of one field, which knows the field's name.
class FieldSink : public BodySink {
 public:
  explicit FieldSink(std::string_view field) : field_(field) {}

 protected:
  const std::string_view field_;
};

// Shared by the arrays of numbers: the frame around the elements, the bytes form, the limit.
template <typename Number>
class NumbersSink : public FieldSink {
 public:
  NumbersSink(std::string_view field, std::size_t count_max, std::vector<Number>* out)
      : FieldSink(field), count_max_(count_max), out_(out) {}

  bool OnEvent(const BodyEvent& event, Error* error) override {
    if (open_) {
      if (event.kind == BodyEvent::Kind::kArrayEnd) return true;
      if (out_->size() >= count_max_) return TooMany(error);
      const auto index = static_cast<long long>(out_->size());
      return OnElement(event, index, error);
    }
    if (event.kind == BodyEvent::Kind::kBytes) return TakeBytes(event.text, error);
    if (event.kind != BodyEvent::Kind::kArrayStart) {
      return Refuse(
          error, "not_array", field_,
          std::string(field_) + ": expected an array, got " + std::string(Describe(event.kind)));
    }
    open_ = true;
    if (event.bits > count_max_) return TooMany(error);
    out_->reserve(event.bits);
    return true;
  }

 protected:
  virtual bool OnElement(const BodyEvent& event, long long index, Error* error) = 0;
  bool IsOpen() const { return open_; }
  void Put(Number number) { out_->push_back(number); }
  bool PutAll(std::span<const Number> numbers, Error* error) {
    if (numbers.size() > count_max_ - out_->size()) return TooMany(error);
    out_->insert(out_->end(), numbers.begin(), numbers.end());
    return true;
  }

 private:
  bool TooMany(Error* error) {
    return Refuse(
        error, "too_large", field_,
        std::string(field_) + ": expected at most " + std::to_string(count_max_) + " entries");
  }
  bool TakeBytes(std::string_view bytes, Error* error) {
    if (bytes.size() % sizeof(Number) != 0) {
      return Refuse(error, "invalid_value", field_,
                    std::string(field_) + ": expected a multiple of " +
                        std::to_string(sizeof(Number)) + " bytes, got " +
                        std::to_string(bytes.size()));
    }
    const std::size_t count = bytes.size() / sizeof(Number);
    if (count > count_max_) return TooMany(error);
    out_->resize(count);
    if constexpr (std::endian::native == std::endian::little) {
      if (count > 0) std::memcpy(out_->data(), bytes.data(), bytes.size());
      return true;
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::make_unsigned_t<Number> number = 0;
      for (std::size_t byte = sizeof(Number); byte-- > 0;) {
        number = number << 8 | static_cast<unsigned char>(bytes[i * sizeof(Number) + byte]);
      }
      (*out_)[i] = static_cast<Number>(number);
    }
    return true;
  }

  const std::size_t count_max_;
  std::vector<Number>* out_;
  bool open_ = false;
};

class TokensSink final : public NumbersSink<std::int32_t> {
 public:
  using NumbersSink::NumbersSink;

  bool WantsInt32s() const override { return IsOpen(); }
  bool OnInt32s(std::span<const std::int32_t> elements, Error* error) override {
    return PutAll(elements, error);
  }

 protected:
  bool OnElement(const BodyEvent& event, long long index, Error* error) override {
    constexpr std::string_view kExpected = "a 32-bit integer";
    if (event.kind == BodyEvent::Kind::kHuge) return OutOfRange(error, field_, kExpected, index);
    if (event.kind != BodyEvent::Kind::kInteger)
      return WrongType(error, field_, kExpected, event.kind, index);
    const auto value = static_cast<std::int64_t>(event.bits);
    const auto token = static_cast<std::int32_t>(value);
    if (token != value || (value < 0) != event.negative) {
      return OutOfRange(error, field_, kExpected, index);
    }
    Put(token);
    return true;
  }
};

class HashesSink final : public NumbersSink<std::uint64_t> {
 public:
  using NumbersSink::NumbersSink;

 protected:
  bool OnElement(const BodyEvent& event, long long index, Error* error) override {
    constexpr std::string_view kExpected = "a 64-bit hash";
    switch (event.kind) {
      case BodyEvent::Kind::kInteger:
        Put(event.bits);
        return true;
      case BodyEvent::Kind::kHuge:
        return OutOfRange(error, field_, kExpected, index);
      case BodyEvent::Kind::kText:
        return OnText(event.text, index, error);
      default:
        return WrongType(error, field_, "a 64-bit integer or its decimal text", event.kind, index);
    }
  }

 private:
  bool OnText(std::string_view text, long long index, Error* error) {
    const char* end = text.data() + text.size();
    std::uint64_t bits = 0;
    std::from_chars_result parsed{};
    if (text.starts_with('-')) {
      std::int64_t value = 0;
      parsed = std::from_chars(text.data(), end, value);
      bits = static_cast<std::uint64_t>(value);
    } else {
      parsed = std::from_chars(text.data(), end, bits);
    }
    if (parsed.ec == std::errc::result_out_of_range) {
      return OutOfRange(error, field_, "a 64-bit hash", index);
    }
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return Refuse(
          error, "invalid_value", field_,
          std::string(field_) + "[" + std::to_string(index) + "]: expected a decimal number",
          index);
    }
    Put(bits);
    return true;
  }
};

}  // namespace conductor::http
