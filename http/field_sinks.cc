// The kinds of field an ObjectReader knows. Every rule about a single value of a body is here or,
// for arrays of numbers, in number_sinks.h.
#include <algorithm>
#include <limits>
#include <utility>

#include "http/http_limits.h"
#include "http/number_sinks.h"
#include "http/object_reader.h"

namespace conductor::http {

namespace {

using Kind = BodyEvent::Kind;

class TextSink final : public FieldSink {
 public:
  TextSink(std::string_view field, std::optional<std::string>* out) : FieldSink(field), out_(out) {}
  bool OnEvent(const BodyEvent& event, Error* error) override {
    if (event.kind != Kind::kText) return WrongType(error, field_, "text", event.kind);
    *out_ = std::string(event.text);
    return true;
  }

 private:
  std::optional<std::string>* out_;
};

bool TakeInt64(const BodyEvent& event, std::string_view field, std::int64_t* out, Error* error) {
  const bool integer = event.kind == Kind::kInteger || event.kind == Kind::kHuge;
  if (!integer) return WrongType(error, field, "an integer", event.kind);
  const bool fits = event.kind == Kind::kInteger &&
                    (event.negative || event.bits <= std::numeric_limits<std::int64_t>::max());
  if (!fits) return OutOfRange(error, field, "a signed 64-bit integer");
  *out = static_cast<std::int64_t>(event.bits);
  return true;
}

class IntegerSink final : public FieldSink {
 public:
  IntegerSink(std::string_view field, std::optional<std::int64_t>* out)
      : FieldSink(field), out_(out) {}
  bool OnEvent(const BodyEvent& event, Error* error) override {
    return TakeInt64(event, field_, &out_->emplace(), error);
  }

 private:
  std::optional<std::int64_t>* out_;
};

class BoolSink final : public FieldSink {
 public:
  BoolSink(std::string_view field, bool* out) : FieldSink(field), out_(out) {}
  bool OnEvent(const BodyEvent& event, Error* error) override {
    if (event.kind != Kind::kBool) return WrongType(error, field_, "a bool", event.kind);
    *out_ = event.boolean;
    return true;
  }

 private:
  bool* out_;
};

class IgnoredSink final : public BodySink {
 public:
  bool OnEvent(const BodyEvent&, Error*) override { return true; }
};

class ExtraKeysSink final : public FieldSink {
 public:
  ExtraKeysSink(std::string_view field, std::size_t count_max, std::vector<ExtraKeys>* out)
      : FieldSink(field), count_max_(count_max), out_(out) {}

  bool OnEvent(const BodyEvent& event, Error* error) override {
    if (event.IsEnd()) {
      if (level_ == 3 && pair_size_ != 2) return WrongPair(event.kind, error);
      --level_;
      return true;
    }
    switch (level_) {
      case 0:
        if (event.kind != Kind::kArrayStart) return NotArray(event.kind, -1, error);
        level_ = 1;
        return event.bits <= count_max_ || TooMany(error);
      case 1:
        return OnBlock(event, error);
      case 2:
        return OnKey(event, error);
      default:
        return OnPair(event, error);
    }
  }

 private:
  long long Block() const { return static_cast<long long>(out_->size()) - 1; }

  bool NotArray(Kind got, long long index, Error* error) {
    return Refuse(error, "not_array", field_,
                  std::string(field_) + ": expected an array, got " + std::string(Describe(got)),
                  index);
  }
  bool WrongPair(Kind got, Error* error) {
    return WrongType(error, field_, "[identifier, offset]", got, Block());
  }
  bool Count(Error* error) { return ++count_ <= count_max_ || TooMany(error); }
  bool TooMany(Error* error) {
    return Refuse(
        error, "too_large", field_,
        std::string(field_) + ": expected at most " + std::to_string(count_max_) + " entries");
  }

  bool OnBlock(const BodyEvent& event, Error* error) {
    if (!Count(error)) return false;
    out_->emplace_back();
    if (event.kind == Kind::kNull) return true;
    if (event.kind != Kind::kArrayStart) return NotArray(event.kind, Block(), error);
    level_ = 2;
    return true;
  }

  bool OnKey(const BodyEvent& event, Error* error) {
    if (!Count(error)) return false;
    ExtraKey key;
    switch (event.kind) {
      case Kind::kText:
        key = {ExtraKey::Kind::kText, std::string(event.text), 0};
        break;
      case Kind::kBytes:
        key = {ExtraKey::Kind::kBytes, std::string(event.text), 0};
        break;
      case Kind::kInteger:
        key.kind = ExtraKey::Kind::kInteger;
        if (!TakeOffset(event, &key.integer, error)) return false;
        break;
      case Kind::kArrayStart:
        key.kind = ExtraKey::Kind::kItem;
        level_ = 3;
        pair_size_ = 0;
        break;
      default:
        return WrongType(error, field_, "an extra key", event.kind, Block());
    }
    out_->back().push_back(std::move(key));
    return true;
  }

  bool OnPair(const BodyEvent& event, Error* error) {
    ExtraKey& item = out_->back().back();
    const int position = pair_size_++;
    if (position == 0 && event.kind == Kind::kText) {
      item.text = std::string(event.text);
      return true;
    }
    if (position == 1 && event.kind == Kind::kInteger) {
      return TakeOffset(event, &item.integer, error);
    }
    return WrongPair(event.kind, error);
  }

  bool TakeOffset(const BodyEvent& event, std::int64_t* out, Error* error) {
    if (!event.negative && event.bits > std::numeric_limits<std::int64_t>::max()) {
      return OutOfRange(error, field_, "a signed 64-bit integer", Block());
    }
    *out = static_cast<std::int64_t>(event.bits);
    return true;
  }

  const std::size_t count_max_;
  std::vector<ExtraKeys>* out_;
  std::size_t count_ = 0;  // blocks and keys together
  int level_ = 0;          // 1: in the list of blocks, 2: in a block, 3: in a pair
  int pair_size_ = 0;
};

class IntegerMapSink final : public FieldSink {
 public:
  IntegerMapSink(std::string_view field, std::optional<std::map<std::string, std::int64_t>>* out)
      : FieldSink(field), out_(out) {}

  bool OnEvent(const BodyEvent& event, Error* error) override {
    if (!out_->has_value()) {
      if (event.kind != Kind::kObjectStart) {
        return WrongType(error, field_, "an object", event.kind);
      }
      out_->emplace();
      return true;
    }
    if (event.kind == Kind::kObjectEnd) return true;
    if (event.kind != Kind::kKey) return TakeInt64(event, Name(), &(**out_)[key_], error);
    key_ = event.text;
    if ((*out_)->contains(key_)) {
      return Refuse(error, "invalid_value", Name(), Name() + " comes twice");
    }
    if ((*out_)->size() < kMapEntriesMax) return true;
    return Refuse(
        error, "too_large", field_,
        std::string(field_) + ": expected at most " + std::to_string(kMapEntriesMax) + " entries");
  }

 private:
  std::string Name() const { return std::string(field_) + "." + key_.substr(0, kShownKeyBytesMax); }

  std::optional<std::map<std::string, std::int64_t>>* out_;
  std::string key_;
};

}  // namespace

template <typename Sink, typename... Arguments>
void ObjectReader::Emplace(std::string_view field, Presence presence, Arguments... arguments) {
  void* const place = memory_.allocate(sizeof(Sink), alignof(Sink));
  Add(field, presence, new (place) Sink(arguments...)).owned = true;
}

void ObjectReader::Text(std::string_view field, Presence presence,
                        std::optional<std::string>* out) {
  Emplace<TextSink>(field, presence, field, out);
}

void ObjectReader::Integer(std::string_view field, Presence presence,
                           std::optional<std::int64_t>* out) {
  Emplace<IntegerSink>(field, presence, field, out);
}

void ObjectReader::Bool(std::string_view field, bool* out) {
  Emplace<BoolSink>(field, Presence::kOptional, field, out);
}

void ObjectReader::Tokens(std::string_view field, std::size_t count_max,
                          std::vector<std::int32_t>* out) {
  Emplace<TokensSink>(field, Presence::kRequired, field, count_max, out);
}

void ObjectReader::Hashes(std::string_view field, Presence presence, std::size_t count_max,
                          std::vector<std::uint64_t>* out) {
  Emplace<HashesSink>(field, presence, field, count_max, out);
}

void ObjectReader::ExtraKeysOfBlocks(std::string_view field, std::size_t count_max,
                                     std::vector<ExtraKeys>* out) {
  Emplace<ExtraKeysSink>(field, Presence::kOptional, field, count_max, out);
}

void ObjectReader::IntegerMap(std::string_view field,
                              std::optional<std::map<std::string, std::int64_t>>* out) {
  Emplace<IntegerMapSink>(field, Presence::kOptional, field, out);
}

void ObjectReader::Ignored(std::string_view field) {
  Emplace<IgnoredSink>(field, Presence::kOptional);
}

}  // namespace conductor::http
