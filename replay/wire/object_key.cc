#include "replay/wire/object_key.h"

#include <array>
#include <charconv>
#include <utility>

#include "replay/wire/wire_limits.h"

namespace conductor {
namespace {

using Syntax = ObjectKey::Syntax;

constexpr std::size_t kHashDigitsMin = 16;
constexpr std::size_t kProjectionBytes = 8;

// By byte; -1: no digit.
constexpr auto kHexValues = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (const std::string_view digits : {"0123456789abcdef", "0123456789ABCDEF"}) {
    for (std::size_t i = 0; i < digits.size(); ++i) {
      values[static_cast<unsigned char>(digits[i])] = static_cast<std::int8_t>(i);
    }
  }
  return values;
}();

int HexValue(char c) {
  return kHexValues[static_cast<unsigned char>(c)];
}

bool IsHex(std::string_view text) {
  int all = 0;
  for (char c : text) all |= HexValue(c);
  return all >= 0;
}

std::string_view WithoutHexPrefix(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return text;
}

// All of `text` as a number of `base`; no sign, no blanks.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text, int base = 10) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

std::uint64_t BigEndian64(std::string_view bytes) {
  std::uint64_t value = 0;
  for (unsigned char byte : bytes.substr(0, kProjectionBytes)) value = value << 8 | byte;
  return value;
}

// An even number of hex digits, at least kHashDigitsMin, as what is kept of a digest of that many:
// its last bytes, all of them if it is no longer than a name.
class DigestBytes {
 public:
  explicit DigestBytes(std::string_view digits) {
    if (digits.size() > 2 * bytes_.size())
      digits = digits.substr(digits.size() - 2 * bytes_.size());
    size_ = digits.size() / 2;
    for (std::size_t i = 0; i < size_; ++i) {
      bytes_[i] = static_cast<char>(HexValue(digits[2 * i]) << 4 | HexValue(digits[2 * i + 1]));
    }
  }
  std::string_view bytes() const { return {bytes_.data(), size_}; }
  std::uint64_t low64() const { return BigEndian64(bytes().substr(size_ - kProjectionBytes)); }

 private:
  std::array<char, kWholeNameBytesMax> bytes_;
  std::size_t size_ = 0;
};

// Takes the parts of a key that is joined by '@' off its end, one by one. The end is where the
// forms differ; before it stand a model and a prefix, which may hold '@' themselves.
class KeyTail {
 public:
  explicit KeyTail(std::string_view key) : rest_(key) {}

  std::string_view rest() const { return rest_; }
  std::string_view last() const { return rest_.substr(LastStart()); }
  bool more() const { return rest_.find('@') != std::string_view::npos; }

  // The last part, which must not be the only one: something has to be left for a model.
  std::optional<std::string_view> Take() {
    if (!more()) return std::nullopt;
    const std::string_view part = last();
    rest_.remove_suffix(part.size() + 1);
    return part;
  }

  // "pp_rank:3" with "pp_rank:".
  std::optional<std::uint32_t> TakeNumber(std::string_view label) {
    if (!more() || !last().starts_with(label)) return std::nullopt;
    const auto number = ParseNumber<std::uint32_t>(last().substr(label.size()));
    if (number) Take();
    return number;
  }

  bool TakeText(std::string_view label, std::string_view* text) {
    if (!more() || !last().starts_with(label) || last().size() == label.size()) return false;
    *text = last().substr(label.size());
    Take();
    return true;
  }

  bool TakeHash(ObjectKey* key) {
    if (!more()) return false;
    const auto name = ParseHashText(last());
    if (!name) return false;
    key->name = *name;
    key->low64 = name->projected;
    Take();
    return true;
  }

 private:
  std::size_t LastStart() const {
    const std::size_t at = rest_.rfind('@');
    return at == std::string_view::npos ? 0 : at + 1;
  }

  std::string_view rest_;
};

// [@group:N][@cache_role:R][@cache_family:F], from the end.
void TakeLabels(KeyTail* tail, ObjectKey* key) {
  tail->TakeText("cache_family:", &key->cache_family);
  tail->TakeText("cache_role:", &key->cache_role);
  if (!key->group) key->group = tail->TakeNumber("group:");
}

// pcpN or, from one test of a connector, pcp:N.
std::optional<std::uint32_t> TakeContextRank(KeyTail* tail, std::string_view with_colon) {
  if (const auto rank = tail->TakeNumber(with_colon)) return rank;
  return tail->TakeNumber(with_colon.substr(0, with_colon.size() - 1));
}

// A copy: nothing half-read is left behind when the form does not fit.
std::optional<ObjectKey> ParseVllm(KeyTail tail) {
  ObjectKey key;
  key.syntax = Syntax::kVllm;
  key.group = tail.TakeNumber("grp:");
  if (key.group) key.syntax = Syntax::kVllmGroupSuffix;
  if (!tail.TakeHash(&key)) return std::nullopt;
  TakeLabels(&tail, &key);
  key.pp_rank = tail.TakeNumber("pp_rank:");
  key.dcp_rank = TakeContextRank(&tail, "dcp:");
  key.pcp_rank = TakeContextRank(&tail, "pcp:");
  key.tp_rank = tail.TakeNumber("tp_rank:");
  if (!key.pp_rank || !key.dcp_rank || !key.pcp_rank || !key.tp_rank) return std::nullopt;
  key.model_name = tail.last();
  if (key.model_name.empty()) return std::nullopt;
  if (tail.Take()) key.cache_prefix = tail.rest();
  return key;
}

std::optional<ObjectKey> ParseAscend(KeyTail tail) {
  ObjectKey key;
  key.syntax = Syntax::kAscend;
  if (!tail.TakeHash(&key)) {
    key.layer_id = tail.TakeNumber("");
    if (!key.layer_id || !tail.TakeHash(&key)) return std::nullopt;
  } else {
    key.layer_id = tail.TakeNumber("layer_id:");
  }
  if (key.layer_id) key.syntax = Syntax::kAscendLayer;
  TakeLabels(&tail, &key);
  key.pp_rank = tail.TakeNumber("pp_rank:");
  key.tp_rank = tail.TakeNumber("head_or_tp_rank:");
  key.dcp_rank = TakeContextRank(&tail, "dcp:");
  key.pcp_rank = TakeContextRank(&tail, "pcp:");
  if (!key.tp_rank || !key.dcp_rank || !key.pcp_rank) return std::nullopt;
  key.model_name = tail.rest();
  if (key.model_name.empty()) return std::nullopt;
  return key;
}

std::optional<ObjectKey> ParseAscendCompact(KeyTail tail) {
  ObjectKey key;
  key.syntax = Syntax::kAscendCompact;
  key.tp_rank = tail.TakeNumber("");
  if (!key.tp_rank || !tail.TakeHash(&key)) return std::nullopt;
  key.group = tail.TakeNumber("");
  // More parts than a model: one of the longer forms, with something in it that is not known.
  if (tail.more() || tail.rest().empty()) return std::nullopt;
  key.model_name = tail.rest();
  return key;
}

std::optional<ObjectKey> ParseNumberKey(std::string_view text) {
  constexpr std::size_t kDecimalDigitsMax = 20;
  constexpr std::size_t kHexDigitsMax = 16;
  const std::string_view digits = WithoutHexPrefix(text);
  const bool hex = digits.size() != text.size();
  if (digits.size() > (hex ? kHexDigitsMax : kDecimalDigitsMax)) return std::nullopt;
  const auto number = ParseNumber<std::uint64_t>(digits, hex ? 16 : 10);
  if (!number) return std::nullopt;
  ObjectKey key;
  key.syntax = hex ? Syntax::kHex : Syntax::kDecimal;
  key.name.projected = *number;
  key.low64 = *number;
  return key;
}

// _<tp>[_<pp>[_<cp>]]_k or _v, or _<pp or empty>[_<cp>]_k. The two cannot be told apart when only
// numbers are there; an empty first one is certain. Anything else leaves no coordinates.
void ParseSglangSuffix(ObjectKey* key) {
  std::string_view rest = key->suffix;
  ObjectKey::Half half = ObjectKey::Half::kNone;
  if (rest.ends_with("_k")) half = ObjectKey::Half::kKey;
  if (rest.ends_with("_v")) half = ObjectKey::Half::kValue;
  if (half == ObjectKey::Half::kNone) return;
  rest.remove_suffix(2);
  const bool no_pp = rest == "_" || rest.starts_with("__");
  if (no_pp) rest.remove_prefix(1);
  constexpr std::size_t kRanksMax = 3;
  std::array<std::optional<std::uint32_t>, kRanksMax> ranks;
  std::size_t count = 0;
  while (!rest.empty()) {
    if (rest.front() != '_' || count == kRanksMax) return;
    rest.remove_prefix(1);
    const std::string_view digits = rest.substr(0, rest.find('_'));
    ranks[count] = ParseNumber<std::uint32_t>(digits);
    if (!ranks[count++]) return;
    rest.remove_prefix(digits.size());
  }
  if (no_pp ? count > 1 || half == ObjectKey::Half::kValue : count == 0) return;
  key->half = half;
  if (no_pp) {
    key->pcp_rank = ranks[0];
    return;
  }
  key->tp_rank = ranks[0];
  key->pp_rank = ranks[1];
  key->pcp_rank = ranks[2];
}

// 64 hex digits between underscores or the ends. The last such run: a tag comes before the hash
// and may itself be one.
std::optional<ObjectKey> ParseSglang(std::string_view text) {
  constexpr std::size_t kDigits = 64;
  ObjectKey key;
  std::size_t end = text.size();
  for (;;) {
    const std::size_t underscore = end == 0 ? std::string_view::npos : text.rfind('_', end - 1);
    const std::size_t start = underscore == std::string_view::npos ? 0 : underscore + 1;
    const std::string_view piece = text.substr(start, end - start);
    if (piece.size() == kDigits && IsHex(piece)) {
      key.syntax = Syntax::kSglang;
      const DigestBytes digest(piece);
      key.name.digest = digest.bytes();
      key.name.projected = BigEndian64(digest.bytes());
      key.low64 = digest.low64();
      key.tag = text.substr(0, start == 0 ? 0 : underscore);
      key.suffix = text.substr(end);
      ParseSglangSuffix(&key);
      return key;
    }
    if (start == 0) return std::nullopt;
    end = underscore;
  }
}

}  // namespace

std::string_view ToString(ObjectKey::Syntax syntax) {
  switch (syntax) {
    case Syntax::kUnknown:
      return "unknown";
    case Syntax::kVllm:
      return "vllm";
    case Syntax::kVllmGroupSuffix:
      return "vllm_grp_suffix";
    case Syntax::kAscend:
      return "vllm_ascend";
    case Syntax::kAscendLayer:
      return "vllm_ascend_layer";
    case Syntax::kAscendCompact:
      return "vllm_ascend_compact";
    case Syntax::kSglang:
      return "sglang";
    case Syntax::kDecimal:
      return "u64_decimal";
    case Syntax::kHex:
      return "u64_hex";
  }
  return "unknown";
}

std::optional<BlockName> ParseHashText(std::string_view text) {
  const std::string_view digits = WithoutHexPrefix(text);
  if (digits.size() < kHashDigitsMin || digits.size() % 2 != 0 || !IsHex(digits)) {
    return std::nullopt;
  }
  BlockName name;
  const DigestBytes digest(digits);
  const std::size_t bytes = digits.size() / 2;
  name.projected = digest.low64();
  if (bytes > kProjectionBytes && bytes <= kWholeNameBytesMax) name.digest = digest.bytes();
  return name;
}

ObjectKey ParseObjectKey(std::string_view key, HashStrategy strategy) {
  if (key.size() > kObjectKeyBytesMax) return {};
  if (auto number = ParseNumberKey(key)) return *number;
  if (strategy != HashStrategy::kVllmV1) return ParseSglang(key).value_or(ObjectKey{});
  const KeyTail tail(key);
  if (auto parsed = ParseVllm(tail)) return *std::move(parsed);
  if (auto parsed = ParseAscend(tail)) return *std::move(parsed);
  return ParseAscendCompact(tail).value_or(ObjectKey{});
}

std::string PartOf(const ObjectKey& key) {
  std::string part;
  AppendPart(key, &part);
  return part;
}

void AppendPart(const ObjectKey& key, std::string* part) {
  bool separate = false;  // never judged by the text: a value may end with anything
  const auto begin = [&](std::string_view name) {
    if (separate) *part += '@';
    separate = true;
    part->append(name).append("=");
  };
  const auto add = [&](std::string_view name, std::string_view value) {
    begin(name);
    part->append(value);
  };
  const auto add_number = [&](std::string_view name, const std::optional<std::uint32_t>& value) {
    if (value) add(name, std::to_string(*value));
  };
  add_number("tp", key.tp_rank);
  add_number("pp", key.pp_rank);
  add_number("pcp", key.pcp_rank);
  add_number("dcp", key.dcp_rank);
  add_number("layers", key.layer_id);
  if (key.half != ObjectKey::Half::kNone) {
    add("kv", key.half == ObjectKey::Half::kKey ? "k" : "v");
  }
  *part += '|';
  separate = false;
  add_number("group", key.group);
  if (!key.cache_role.empty()) add("role", key.cache_role);
  if (!key.cache_family.empty()) add("family", key.cache_family);
  // Texts that may hold '@' come last; a length keeps a tag and a suffix apart.
  if (!key.cache_prefix.empty()) add("prefix", key.cache_prefix);
  if (key.half == ObjectKey::Half::kNone && !key.suffix.empty()) {
    begin("suffix");
    part->append(std::to_string(key.suffix.size())).append(":").append(key.suffix);
  }
  if (!key.tag.empty()) add("tag", key.tag);
}

}  // namespace conductor
