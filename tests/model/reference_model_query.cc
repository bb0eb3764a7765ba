// Queries, counts and the model's own invariants.
#include <algorithm>
#include <sstream>

#include "tests/model/reference_model.h"

namespace conductor::model {
namespace {

// What was matched at one position of a prompt.
struct Matched {
  std::uint64_t length = 0;
  std::set<EntryKey> entries;
  std::optional<std::uint64_t> exact_name;  // when the exact chain matched here
  std::set<std::pair<StreamId, Tier>> engines;
  std::set<Tier> pools;
};

// Whether the parent's name of an entry of `scope` names something matched (C15, C16).
bool NamesElement(const Matched& above, StreamId scope, const BlockName& parent) {
  if (above.exact_name == parent.projected) return true;
  return std::any_of(above.entries.begin(), above.entries.end(), [&](const EntryKey& key) {
    if (key.scope == 0) return key.name.projected == parent.projected;
    return key.scope == scope && SameName(key.name, parent);
  });
}

// Where a pool name is found: the shared block, else own content of that name, else by name alone.
enum class PoolPlace { kShared, kOwnContent, kNameOnly };
PoolPlace PlaceOf(const Context& context, std::uint64_t name) {
  if (context.entries.contains(SharedKey({name, ""}))) return PoolPlace::kShared;
  for (const auto& [key, entry] : context.entries) {
    if (key.scope != 0 && key.name.projected == name && IsContent(entry.block_class)) {
      return PoolPlace::kOwnContent;
    }
  }
  return PoolPlace::kNameOnly;
}

void AddPoolHolders(const Context& context, std::uint64_t name, Matched* matched) {
  auto pool = context.pool.find(name);
  if (pool == context.pool.end()) return;
  for (const auto& [holder, hold] : pool->second) {
    if (hold.Present()) matched->pools.insert(holder.tier);
  }
}

void AddEngines(const Context& context, Matched* matched) {
  for (const EntryKey& key : matched->entries) {
    for (const auto& [holder, copies] : context.entries.at(key).copies) {
      matched->engines.insert({holder.stream, holder.tier});
    }
  }
}

// Pools have it, no live shared block is called so.
bool IsPoolOnly(const Context& context, const std::pair<const std::uint64_t, PoolHolders>& item) {
  const bool present = std::any_of(item.second.begin(), item.second.end(),
                                   [](const auto& hold) { return hold.second.Present(); });
  return present && PlaceOf(context, item.first) != PoolPlace::kShared;
}

// Blocks known by name only, anybody's.
bool HasFragments(const Context& context) {
  return std::any_of(context.entries.begin(), context.entries.end(),
                     [](const auto& item) { return IsFragment(item.second.block_class); }) ||
         std::any_of(context.pool.begin(), context.pool.end(),
                     [&](const auto& item) { return IsPoolOnly(context, item); });
}

void AddByName(const Context& context, std::uint64_t exact_name, Matched* here) {
  for (const auto& [key, entry] : context.entries) {
    const bool addressed_by_name = key.scope == 0 || IsFragment(entry.block_class);
    if (!addressed_by_name || key.name.projected != exact_name) continue;
    here->entries.insert(key);
    here->exact_name = exact_name;
  }
  const auto pool = context.pool.find(exact_name);
  if (pool != context.pool.end() && IsPoolOnly(context, *pool) &&
      PlaceOf(context, exact_name) == PoolPlace::kNameOnly) {
    AddPoolHolders(context, exact_name, here);
    here->exact_name = exact_name;
  }
}

std::vector<Matched> MatchPrompt(const Context& context, const PromptSpec& prompt) {
  std::vector<Matched> result;
  enum class Chain { kNotStarted, kFollowing, kEnded };
  Chain chain = HasFragments(context) ? Chain::kNotStarted : Chain::kEnded;
  for (const PromptPosition& position : prompt.positions) {
    Matched here;
    here.length = position.length;
    for (const auto& [key, entry] : context.entries) {
      if (!IsContent(entry.block_class)) continue;
      const Link& link = *entry.link;
      if (link.fingerprint != position.fingerprint || link.length != position.length) continue;
      const bool reached =
          result.empty() ? !link.parent && link.salt == prompt.salt
                         : link.parent && NamesElement(result.back(), key.scope, *link.parent);
      if (reached) here.entries.insert(key);
    }
    const bool has_shared = std::any_of(here.entries.begin(), here.entries.end(),
                                        [](const EntryKey& key) { return key.scope == 0; });
    if (chain == Chain::kNotStarted && !has_shared) chain = Chain::kFollowing;
    if (chain == Chain::kFollowing) {
      AddByName(context, position.exact_name, &here);
      if (!here.exact_name) chain = Chain::kEnded;
    }
    for (const auto& [name, holders] : context.pool) {
      const PoolPlace place = PlaceOf(context, name);
      if (place == PoolPlace::kNameOnly) continue;
      for (const EntryKey& key : here.entries) {
        const bool resolved = place == PoolPlace::kShared
                                  ? key.scope == 0
                                  : IsContent(context.entries.at(key).block_class);
        if (resolved && key.name.projected == name) AddPoolHolders(context, name, &here);
      }
    }
    if (here.entries.empty() && here.pools.empty()) break;
    AddEngines(context, &here);
    result.push_back(here);
  }
  return result;
}

std::uint64_t LengthByName(const Context& context, const Matched& matched,
                           std::uint64_t block_size) {
  std::optional<std::uint64_t> length;
  for (const EntryKey& key : matched.entries) {  // the shared entry is the first, if there is one
    const Entry& entry = context.entries.at(key);
    if (!entry.link) continue;
    if (key.scope == 0) return entry.link->length;
    length = std::min<std::uint64_t>(length.value_or(entry.link->length), entry.link->length);
  }
  return length.value_or(block_size);
}

std::vector<Matched> MatchHashes(const Context& context, const HashSpec& query) {
  std::vector<Matched> result;
  for (std::uint64_t hash : query.hashes) {
    Matched here;
    for (const auto& [key, entry] : context.entries) {
      if (key.name.projected == hash) here.entries.insert(key);
    }
    AddPoolHolders(context, hash, &here);
    if (here.entries.empty() && here.pools.empty()) break;
    here.length = LengthByName(context, here, query.context.block_size);
    AddEngines(context, &here);
    result.push_back(here);
  }
  return result;
}

bool Present(const Matched& matched, StreamId stream, Tier tier) {
  if (tier == Tier::kCpuShare) {
    return matched.pools.contains(tier) ||
           std::any_of(matched.engines.begin(), matched.engines.end(),
                       [](const auto& engine) { return engine.second == Tier::kCpuShare; });
  }
  if (tier == Tier::kDisk && matched.pools.contains(tier)) return true;
  return matched.engines.contains({stream, tier});
}

TierCounts CountTokens(const std::vector<Matched>& matched, StreamId stream) {
  std::array<std::uint64_t, kTierCount> boundaries{};
  std::size_t position = 0;
  std::uint64_t tokens = 0;
  for (int i = 0; i < kTierCount; ++i) {
    const Tier tier = static_cast<Tier>(i + 1);
    while (position < matched.size() && Present(matched[position], stream, tier)) {
      tokens += matched[position++].length;
    }
    boundaries[static_cast<std::size_t>(i)] = tokens;
  }
  return {boundaries[0], boundaries[1], boundaries[2], boundaries[3]};
}

Hits CountRows(const std::map<StreamId, Stream>& streams, const ContextKey& key,
               const Context& context, const std::vector<Matched>& matched) {
  Hits hits;
  for (const auto& [id, stream] : streams) {
    const Registration& registration = stream.registration;
    if (registration.type == PublisherType::kMooncake) continue;
    if (registration.Context() != key && !context.stored_into.contains(id)) continue;
    hits[registration.instance_id][registration.dp_rank] = CountTokens(matched, id);
  }
  return hits;
}

std::uint64_t CountPoolOnly(const Context& context) {
  return static_cast<std::uint64_t>(
      std::count_if(context.pool.begin(), context.pool.end(),
                    [&](const auto& item) { return IsPoolOnly(context, item); }));
}

std::string Spell(const BlockName& name) {
  std::ostringstream out;
  out << name.projected;
  if (!name.digest.empty()) {
    out << "/" << std::hex;
    for (unsigned char byte : name.digest) out << static_cast<int>(byte) << '.';
  }
  return out.str();
}

std::string_view Spell(BlockClass block_class) {
  switch (block_class) {
    case BlockClass::kShared:
      return "shared";
    case BlockClass::kOwn:
      return "own";
    case BlockClass::kOwnUnproven:
      return "unproven";
    case BlockClass::kNameOnly:
      return "name_only";
    case BlockClass::kOrphan:
      return "orphan";
  }
  return "unknown";
}

std::string_view Spell(Tier tier) {
  constexpr std::string_view kNames[] = {"device", "cpu_local", "cpu_share", "disk"};
  return kNames[static_cast<int>(tier) - 1];
}

std::string CheckEntry(const Context& context, const EntryKey& key, const Entry& entry) {
  const std::string where = "entry " + std::to_string(key.scope) + ":" + Spell(key.name) + ": ";
  if (entry.copies.empty()) return where + "no holder";
  if ((key.scope == 0) != (entry.block_class == BlockClass::kShared)) {
    return where + "scope and class do not fit";
  }
  if (IsContent(entry.block_class) && !entry.link) return where + "content without a link";
  for (const auto& [holder, copies] : entry.copies) {
    if (copies == 0 || copies > kCopiesMax) return where + "copies out of range";
    if (key.scope != 0 && holder.stream != key.scope) return where + "held by another stream";
  }
  if (IsFragment(entry.block_class) && context.entries.contains(SharedKey(key.name))) {
    return where + "fragment of a live shared name";
  }
  if (entry.block_class == BlockClass::kOrphan) {
    if (!entry.link || !entry.link->parent) return where + "orphan without a parent's name";
    if (entry.link->check != HashCheck::kNotComputed) return where + "orphan with a known check";
  }
  std::vector<EntryKey> path;
  if (ClosesCycle(context, key, key.scope, &path)) return where + "on a cycle";
  return "";
}

}  // namespace

Hits ReferenceModel::Query(const PromptSpec& prompt) const {
  auto context = contexts_.find(prompt.context);
  if (context == contexts_.end()) return {};
  return CountRows(streams_, prompt.context, context->second, MatchPrompt(context->second, prompt));
}

Hits ReferenceModel::QueryByHash(const HashSpec& query) const {
  auto context = contexts_.find(query.context);
  if (context == contexts_.end()) return {};
  return CountRows(streams_, query.context, context->second, MatchHashes(context->second, query));
}

std::uint64_t ReferenceModel::PrefixCount(const ContextKey& key) const {
  auto context = contexts_.find(key);
  if (context == contexts_.end()) return 0;
  return context->second.entries.size() + CountPoolOnly(context->second);
}

std::uint64_t ReferenceModel::OrphanCount() const {
  std::uint64_t count = 0;
  for (const auto& [key, context] : contexts_) {
    for (const auto& [entry_key, entry] : context.entries) {
      if (entry.block_class == BlockClass::kOrphan) ++count;
    }
  }
  return count;
}

std::uint64_t ReferenceModel::FragmentCount() const {
  std::uint64_t count = 0;
  for (const auto& [key, context] : contexts_) count += FragmentCount(key);
  return count;
}

std::uint64_t ReferenceModel::FragmentCount(const ContextKey& key) const {
  const auto context = contexts_.find(key);
  if (context == contexts_.end()) return 0;
  const auto& entries = context->second.entries;
  return CountPoolOnly(context->second) + static_cast<std::uint64_t>(std::count_if(
                                              entries.begin(), entries.end(), [](const auto& item) {
                                                return IsFragment(item.second.block_class);
                                              }));
}

std::uint64_t ReferenceModel::PoolOnlyNameCount() const {
  std::uint64_t count = 0;
  for (const auto& [key, context] : contexts_) count += CountPoolOnly(context);
  return count;
}

std::array<std::uint64_t, kTierCount> ReferenceModel::BlocksByTier(StreamId stream) const {
  std::array<std::uint64_t, kTierCount> blocks{};
  for (const auto& [key, context] : contexts_) {
    for (int i = 0; i < kTierCount; ++i) {
      const Tier tier = static_cast<Tier>(i + 1);
      std::uint64_t& count = blocks[static_cast<std::size_t>(i)];
      for (const auto& [entry_key, entry] : context.entries) {
        if (entry.copies.contains({stream, tier, false}) ||
            entry.copies.contains({stream, tier, true})) {
          ++count;
        }
      }
      for (const auto& [name, holders] : context.pool) {
        count += static_cast<std::uint64_t>(
            std::count_if(holders.begin(), holders.end(), [&](const auto& item) {
              return item.first.stream == stream && item.first.tier == tier &&
                     item.second.Present();
            }));
      }
    }
  }
  return blocks;
}

std::string ReferenceModel::CheckInvariants() const {
  for (const auto& [key, context] : contexts_) {
    for (const auto& [entry_key, entry] : context.entries) {
      std::string broken = CheckEntry(context, entry_key, entry);
      if (!broken.empty()) return broken;
    }
    for (const auto& [name, holders] : context.pool) {
      if (holders.empty()) return "pool name " + std::to_string(name) + ": no holder";
      for (const auto& [holder, hold] : holders) {
        if (hold.parts.empty()) return "pool name " + std::to_string(name) + ": no part";
      }
    }
    for (StreamId id : context.stored_into) {
      if (!streams_.contains(id)) return "stored_into names an unknown stream";
    }
  }
  return "";
}

std::string ReferenceModel::Dump() const {
  std::ostringstream out;
  for (const auto& [id, stream] : streams_) {
    const Registration& registration = stream.registration;
    out << "stream " << id << " " << registration.instance_id << "/" << registration.dp_rank
        << " epoch " << stream.epoch << " cursor "
        << (stream.cursor ? std::to_string(*stream.cursor) : "none") << " lost "
        << stream.lost_ranges.size() << " verified " << stream.ever_verified << " unknown "
        << stream.counters.remove_unknown << " rejected " << stream.counters.rejected_blocks
        << " fragments_rejected " << stream.counters.fragments_rejected << "\n";
  }
  for (const auto& [key, context] : contexts_) {
    out << "context " << key.tenant_id << "|" << key.model_name << "|" << key.lora_name << "|"
        << key.block_size << "\n";
    for (const auto& [entry_key, entry] : context.entries) {
      out << "  " << entry_key.scope << ":" << Spell(entry_key.name) << " "
          << Spell(entry.block_class);
      if (entry.link) {
        out << " parent " << (entry.link->parent ? Spell(*entry.link->parent) : "root")
            << (entry.link->salt ? " salted" : "") << " fp " << entry.link->fingerprint << " len "
            << entry.link->length << " check " << static_cast<int>(entry.link->check) << " keys "
            << entry.link->extra_keys_on_wire;
      }
      for (const auto& [holder, copies] : entry.copies) {
        out << " [" << holder.stream << "." << Spell(holder.tier) << (holder.unproven ? "?" : "")
            << " x" << copies << "]";
      }
      out << "\n";
    }
    for (const auto& [name, holders] : context.pool) {
      out << "  pool " << name;
      for (const auto& [holder, hold] : holders) {
        out << " [" << holder.stream << "." << holder.backend_id << "." << Spell(holder.tier)
            << " x" << hold.parts.size() << "/" << hold.needed << "]";
      }
      out << "\n";
    }
  }
  return out.str();
}

}  // namespace conductor::model
