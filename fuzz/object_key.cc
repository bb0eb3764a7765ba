// Keys of a store's objects, which any publisher may write.
// Property: reading never fails; a name is a number or one digest with its projection; the part
// fits the log; two keys of one form and one block have equal parts exactly when they say the same.
//
// Input: strategy, then one or two keys, separated.
#include <tuple>

#include "fuzz/golden.h"
#include "fuzz/target.h"
#include "replay/wire/object_key.h"
#include "replay/wire/wire_limits.h"
#include "src/hash/utf8.h"
#include "src/limits.h"

namespace conductor::fuzz {
namespace {

constexpr HashStrategy kStrategies[] = {HashStrategy::kVllmV1, HashStrategy::kSglang,
                                        HashStrategy::kSglangBigram};

std::uint64_t BigEndian64(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const unsigned char byte : bytes.substr(0, 8)) value = value << 8 | byte;
  return value;
}

// Everything a part is made of; the suffix speaks through the ranks it spells, if it spells any.
auto Coordinates(const ObjectKey& key) {
  const bool spelled = key.half != ObjectKey::Half::kNone;
  return std::tuple(key.tp_rank, key.pp_rank, key.pcp_rank, key.dcp_rank, key.layer_id, key.half,
                    key.group, key.cache_prefix, key.cache_role, key.cache_family, key.tag,
                    spelled ? std::string_view() : key.suffix);
}

ObjectKey RequireWellFormed(std::string_view text, HashStrategy strategy) {
  const ObjectKey key = ParseObjectKey(text, strategy);
  Require(PartOf(key).size() <= kNameBytesMax, "a part fits the log");
  if (!key.HasName()) return key;
  Require(text.size() <= kObjectKeyBytesMax, "a key that is too long names nothing");
  Require(!ToString(key.syntax).empty(), "a form has a name");
  const std::string_view digest = key.name.digest;
  if (digest.empty()) {
    Require(key.low64 == key.name.projected, "a number is its own projection");
    return key;
  }
  Require(digest.size() > 8 && digest.size() <= kWholeNameBytesMax, "a digest is a digest");
  const std::uint64_t first = BigEndian64(digest);
  const std::uint64_t last = BigEndian64(digest.substr(digest.size() - 8));
  Require(key.low64 == last, "low64 is the digest's end");
  Require(key.name.projected == (strategy == HashStrategy::kVllmV1 ? last : first),
          "the projection is the strategy's");
  return key;
}

}  // namespace

void RunInput(Bytes input) {
  InputReader reader(input);
  const HashStrategy strategy = kStrategies[reader.Byte() % std::size(kStrategies)];
  std::vector<ObjectKey> keys;
  for (const Bytes piece : Split(reader.rest(), kPartSeparator)) {
    const std::string_view text = AsText(piece);
    if (!IsValidUtf8(text)) return;  // the decoders refuse such an event
    ParseHashText(text);
    keys.push_back(RequireWellFormed(text, strategy));
  }
  for (std::size_t i = 1; i < keys.size(); ++i) {
    const ObjectKey& a = keys[i - 1];
    const ObjectKey& b = keys[i];
    if (!a.HasName() || a.syntax != b.syntax || a.name != b.name) continue;
    Require((PartOf(a) == PartOf(b)) == (Coordinates(a) == Coordinates(b)),
            "parts are equal exactly when the objects are", PartOf(a) + " and " + PartOf(b));
  }
}

std::vector<std::string> Seeds() {
  const std::string hash(64, 'a');
  std::vector<std::string> keys = {
      "m@tp_rank:0@pcp0@dcp0@pp_rank:0@" + hash,
      "pre@m@tp_rank:1@pcp0@dcp0@pp_rank:0@group:0@cache_role:r@cache_family:f@" + hash,
      "m@tp_rank:1@pcp0@dcp0@pp_rank:0@cache_role:r@" + hash,
      // Neighbours that once had the same part.
      "m@tp_rank:0@pcp0@dcp0@pp_rank:0@cache_role:x|@cache_family:y@" + hash,
      "m@tp_rank:0@pcp0@dcp0@pp_rank:0@cache_role:x|family=y@" + hash,
      "m@tp_rank:0@pcp0@dcp0@pp_rank:0@" + hash + "@grp:1",
      "m@pcp0@dcp0@head_or_tp_rank:3@pp_rank:0@layer_id:7@" + hash,
      "m@1@" + hash + "@2",
      "tag_" + hash + "_0_1_2_k",
      hash + "__0_k",
      hash + "_suffix",
      "0x1234567890abcdef",
      "18446744073709551615",
  };
  for (const GoldenFrame& frame : LoadGoldenFrames()) {
    keys.insert(keys.end(), frame.object_keys.begin(), frame.object_keys.end());
  }
  std::vector<std::string> seeds;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (const char strategy : {0, 1}) {
      seeds.push_back(std::string(1, strategy) + keys[i]);
      seeds.push_back(std::string(1, strategy) + keys[i] + std::string(kPartSeparator) +
                      keys[(i + 1) % keys.size()]);
    }
  }
  return seeds;
}

}  // namespace conductor::fuzz
