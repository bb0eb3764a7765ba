// Messages of a store's master, in few words: Batch({StoredMap(), ClearedMap()}).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/replay/wire/wire_test_util.h"

namespace conductor::wire_test::store {

using Pairs = std::vector<std::pair<std::string, Write>>;

inline constexpr std::int64_t kTime = 1'786'000'000'123;
inline const std::string kKey = "m@tp_rank:0@pcp0@dcp0@pp_rank:0@fedcba9876543210";
inline constexpr std::uint64_t kName = 0xfedcba9876543210;

inline std::string Message(const Write& value) {
  MsgpackWriter writer;
  value(writer);
  return std::move(writer).Take();
}
inline std::string Batch(std::vector<Write> events) {
  return Message(Array({Int(kTime), Array(std::move(events)), Int(0)}));
}

// A valid stored event; `changes` replace, add, or (null) remove keys.
inline Write StoredMap(const Pairs& changes = {}) {
  Pairs pairs = {{"event_id", Int(1)},           {"timestamp", Int(kTime)},
                 {"event_type", Text("stored")}, {"tenant_id", Text("default")},
                 {"backend_id", Text("pool")},   {"medium", Text("cpu")},
                 {"object_key", Text(kKey)},     {"seq_hashes", Array({})}};
  for (const auto& [key, value] : changes) {
    const auto at = std::find_if(pairs.begin(), pairs.end(),
                                 [&key = key](const auto& pair) { return pair.first == key; });
    if (at == pairs.end()) {
      if (value) pairs.emplace_back(key, value);
    } else if (value) {
      at->second = value;
    } else {
      pairs.erase(at);
    }
  }
  return Map(std::move(pairs));
}
inline Write ClearedMap(const Pairs& changes = {}) {
  Pairs all = {{"event_type", Text("cleared")},
               {"medium", nullptr},
               {"object_key", nullptr},
               {"seq_hashes", nullptr}};
  all.insert(all.end(), changes.begin(), changes.end());
  return StoredMap(all);
}

}  // namespace conductor::wire_test::store
