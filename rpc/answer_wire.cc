#include "rpc/answer_wire.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#include "src/check.h"
#include "src/hash/utf8.h"

namespace conductor::rpc {
namespace {

// Of protobuf's wire format. Every field number here is below 16: a tag is one byte.
constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kLengthDelimited = 2;
constexpr std::uint8_t Tag(std::uint32_t field, std::uint32_t type) {
  return static_cast<std::uint8_t>(field << 3 | type);
}
constexpr std::uint8_t Number(std::uint32_t field) {
  return Tag(field, kVarint);
}
constexpr std::uint8_t Nested(std::uint32_t field) {
  return Tag(field, kLengthDelimited);
}

// The tags of conductor.proto, which never change their meaning.
constexpr std::uint8_t kInstances = Nested(1), kLogSeq = Number(2), kDegraded = Nested(3),
                       kContextKnown = Number(4);
constexpr std::uint8_t kInstanceId = Nested(1), kLongestMatched = Number(2), kDp = Nested(3),
                       kRankMatches = Nested(4), kDevice = Number(5), kCpuLocal = Number(6),
                       kCpuShare = Number(7), kDisk = Number(8);
constexpr std::uint8_t kMapKey = Number(1), kMapNumber = Number(2), kMapMessage = Nested(2);
constexpr std::uint8_t kTierDevice = Number(1), kTierCpuLocal = Number(2),
                       kTierCpuShare = Number(3), kTierDisk = Number(4);

// --- writing ------------------------------------------------------------------------------------

constexpr std::size_t VarintBytes(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7;
}
// Of a field with its tag; a number that is 0 is absent.
constexpr std::size_t NumberBytes(std::uint64_t value) {
  return value == 0 ? 0 : 1 + VarintBytes(value);
}
constexpr std::size_t NestedBytes(std::size_t bytes) {
  return 1 + VarintBytes(bytes) + bytes;
}

std::size_t TierBytes(const TierCounts& counts) {
  return NumberBytes(counts.device) + NumberBytes(counts.cpu_local) +
         NumberBytes(counts.cpu_share) + NumberBytes(counts.disk);
}
// Entries of maps say their key and value also when they are 0.
std::size_t DpBytes(const RankCounts::Item& item) {
  return 2 + VarintBytes(item.first) + VarintBytes(item.second.device);
}
std::size_t RankBytes(const RankCounts::Item& item) {
  return 1 + VarintBytes(item.first) + NestedBytes(TierBytes(item.second));
}
std::size_t InstanceBytes(const InstanceHits& hits) {
  std::size_t bytes =
      NestedBytes(hits.instance_id.size()) + NumberBytes(hits.best.disk) + TierBytes(hits.best);
  for (const auto& item : hits.ranks) {
    bytes += NestedBytes(DpBytes(item)) + NestedBytes(RankBytes(item));
  }
  return bytes;
}

class Writer {
 public:
  explicit Writer(char* at) : at_(at) {}
  char* at() const { return at_; }

  void Always(std::uint8_t tag, std::uint64_t value) {
    *at_++ = static_cast<char>(tag);
    for (; value >= 0x80; value >>= 7) *at_++ = static_cast<char>(value | 0x80);
    *at_++ = static_cast<char>(value);
  }
  void Number(std::uint8_t tag, std::uint64_t value) {
    if (value != 0) Always(tag, value);
  }
  void Text(std::uint8_t tag, std::string_view text) {
    Always(tag, text.size());
    at_ = std::copy(text.begin(), text.end(), at_);
  }
  void Instance(const InstanceHits& hits) {
    Always(kInstances, InstanceBytes(hits));
    Text(kInstanceId, hits.instance_id);
    Number(kLongestMatched, hits.best.disk);
    for (const auto& item : hits.ranks) {
      Always(kDp, DpBytes(item));
      Always(kMapKey, item.first);
      Always(kMapNumber, item.second.device);
    }
    for (const auto& item : hits.ranks) {
      Always(kRankMatches, RankBytes(item));
      Always(kMapKey, item.first);
      Always(kMapMessage, TierBytes(item.second));
      Number(kTierDevice, item.second.device);
      Number(kTierCpuLocal, item.second.cpu_local);
      Number(kTierCpuShare, item.second.cpu_share);
      Number(kTierDisk, item.second.disk);
    }
    Number(kDevice, hits.best.device);
    Number(kCpuLocal, hits.best.cpu_local);
    Number(kCpuShare, hits.best.cpu_share);
    Number(kDisk, hits.best.disk);
  }

 private:
  char* at_;
};

// --- reading ------------------------------------------------------------------------------------

// Takes fields off the front of a message. What is wrong makes it end early and stay not ok().
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }

  // False: at the end, or not ok().
  bool Next(std::uint8_t* tag) {
    if (!ok_ || bytes_.empty()) return false;
    *tag = Take();
    return true;
  }
  std::uint64_t Number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const std::uint8_t byte = Take();
      if (shift == 63 && byte > 1) break;  // beyond 64 bits
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  std::string_view Nested() {
    const std::uint64_t length = Number();
    if (!ok_ || length > bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view nested = bytes_.substr(0, length);
    bytes_.remove_prefix(length);
    return nested;
  }
  std::string_view Text() {
    const std::string_view text = Nested();
    ok_ = ok_ && IsValidUtf8(text);
    return text;
  }
  void Refuse() { ok_ = false; }

 private:
  std::uint8_t Take() {
    const auto byte = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

bool ReadTiers(std::string_view bytes, TierCounts* counts) {
  Reader reader(bytes);
  for (std::uint8_t tag = 0; reader.Next(&tag);) {
    switch (tag) {
      case kTierDevice:
        counts->device = reader.Number();
        break;
      case kTierCpuLocal:
        counts->cpu_local = reader.Number();
        break;
      case kTierCpuShare:
        counts->cpu_share = reader.Number();
        break;
      case kTierDisk:
        counts->disk = reader.Number();
        break;
      default:
        reader.Refuse();
    }
  }
  return reader.ok();
}

// The key of a map's entry, which must be its first field; the reader is then at the value's tag.
bool TakeKey(Reader* reader, std::uint8_t value_tag, std::uint32_t* key) {
  std::uint8_t tag = 0;
  if (!reader->Next(&tag) || tag != kMapKey) return false;
  const std::uint64_t number = reader->Number();
  if (number > std::numeric_limits<std::uint32_t>::max()) return false;
  *key = static_cast<std::uint32_t>(number);
  return reader->Next(&tag) && tag == value_tag;
}
bool EndsHere(Reader* reader) {
  std::uint8_t tag = 0;
  return !reader->Next(&tag) && reader->ok();
}

// `dp` repeats what the ranks say.
bool CheckDp(std::string_view bytes) {
  Reader reader(bytes);
  std::uint32_t rank = 0;
  if (!TakeKey(&reader, kMapNumber, &rank)) return false;
  reader.Number();
  return EndsHere(&reader);
}

bool ReadRank(std::string_view bytes, RankCounts* ranks) {
  Reader reader(bytes);
  std::uint32_t rank = 0;
  TierCounts counts;
  if (!TakeKey(&reader, kMapMessage, &rank) || !ReadTiers(reader.Nested(), &counts)) return false;
  (*ranks)[rank] = counts;
  return EndsHere(&reader);
}

bool ReadInstance(std::string_view bytes, InstanceHits* hits) {
  Reader reader(bytes);
  for (std::uint8_t tag = 0; reader.Next(&tag);) {
    switch (tag) {
      case kInstanceId:
        hits->instance_id = reader.Text();
        break;
      case kLongestMatched:  // is `disk`
        reader.Number();
        break;
      case kDp:
        if (!CheckDp(reader.Nested())) return false;
        break;
      case kRankMatches:
        if (!ReadRank(reader.Nested(), &hits->ranks)) return false;
        break;
      case kDevice:
        hits->best.device = reader.Number();
        break;
      case kCpuLocal:
        hits->best.cpu_local = reader.Number();
        break;
      case kCpuShare:
        hits->best.cpu_share = reader.Number();
        break;
      case kDisk:
        hits->best.disk = reader.Number();
        break;
      default:
        return false;
    }
  }
  return reader.ok();
}

}  // namespace

bool WritePlainAnswer(const QueryAnswer& answer,
                      const std::function<char*(std::size_t bytes)>& allocate) {
  std::size_t bytes = NumberBytes(answer.log_seq) + NumberBytes(answer.context_known ? 1 : 0);
  for (const InstanceHits& hits : answer.instances) {
    // An empty text is absent from a message; no instance has one.
    if (hits.instance_id.empty() || !IsValidUtf8(hits.instance_id)) return false;
    bytes += NestedBytes(InstanceBytes(hits));
  }
  for (const std::string& id : answer.degraded) {
    if (!IsValidUtf8(id)) return false;
    bytes += NestedBytes(id.size());
  }
  char* const begin = allocate(bytes);
  Writer writer(begin);
  for (const InstanceHits& hits : answer.instances) writer.Instance(hits);
  writer.Number(kLogSeq, answer.log_seq);
  for (const std::string& id : answer.degraded) writer.Text(kDegraded, id);
  writer.Number(kContextKnown, answer.context_known ? 1 : 0);
  CHECK(writer.at() == begin + bytes);
  return true;
}

std::optional<QueryAnswer> ReadPlainAnswer(std::string_view bytes) {
  QueryAnswer answer;
  Reader reader(bytes);
  for (std::uint8_t tag = 0; reader.Next(&tag);) {
    switch (tag) {
      case kInstances:
        if (!ReadInstance(reader.Nested(), &answer.instances.emplace_back())) return std::nullopt;
        break;
      case kLogSeq:
        answer.log_seq = reader.Number();
        break;
      case kDegraded:
        answer.degraded.emplace_back(reader.Text());
        break;
      case kContextKnown:
        answer.context_known = reader.Number() != 0;
        break;
      default:
        return std::nullopt;
    }
  }
  if (!reader.ok()) return std::nullopt;
  return answer;
}

}  // namespace conductor::rpc
