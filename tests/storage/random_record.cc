#include "tests/storage/random_record.h"

#include <cstdio>
#include <cstdlib>

#include "src/limits.h"
#include "storage/log_format.h"
#include "storage/record_check.h"

namespace conductor::storage {

std::uint64_t TestSeed() {
  const char* given = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("CONDUCTOR_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// Small and huge numbers are equally likely, so that every length of a varint occurs.
std::uint64_t RandomRecords::Number() {
  return random_() >> Below(64);
}

std::string RandomRecords::Text() {
  std::string text(Below(12), '\0');
  for (char& byte : text) byte = static_cast<char>(Below(256));
  return text;
}

BlockName RandomRecords::Name() {
  BlockName name{random_(), ""};
  if (Below(4) != 0) return name;
  std::string digest(kBlockDigestBytesMin + Below(kBlockDigestBytesMax - kBlockDigestBytesMin + 1),
                     '\0');
  for (char& byte : digest) byte = static_cast<char>(Below(256));
  name.digest = digest;
  return name;
}

std::vector<BlockName> RandomRecords::Names() {
  std::vector<BlockName> names(Below(9));
  for (BlockName& name : names) name = Name();
  return names;
}

template <typename Array>
Array RandomRecords::Bytes() {
  Array array;
  for (auto& byte : array) byte = static_cast<std::uint8_t>(Below(256));
  return array;
}

template <typename Enum>
Enum RandomRecords::Value() {
  return static_cast<Enum>(1 + Below(static_cast<std::uint64_t>(kLastValue<Enum>)));
}

template <typename PoolEvent>
PoolEvent RandomRecords::Pool(std::vector<PoolOrigin>& origins) {
  PoolEvent event;
  event.tier = Value<Tier>();
  const PoolOrigin origin{Text(), Text(), Text(), Text(), static_cast<std::uint32_t>(Below(4096))};
  event.origin = OriginNumber(
      {origin.backend_id, origin.tenant_id, origin.model_name, origin.lora_name, origin.block_size},
      origins);
  event.name = Name();
  event.part = Text();
  return event;
}

Registration RandomRecords::NextRegistration() {
  Registration registration;
  registration.instance_id = Text();
  registration.endpoint = Text();
  registration.replay_endpoint = Text();
  registration.snapshot_endpoint = Text();
  registration.has_topic = Coin();
  if (registration.has_topic) registration.topic = Text();
  registration.type = Value<PublisherType>();
  registration.model_name = Text();
  registration.lora_name = Text();
  registration.tenant_id = Text();
  registration.block_size = static_cast<std::uint32_t>(Below(4096));
  registration.dp_rank = static_cast<std::uint32_t>(Below(65'536));
  registration.has_cache_group = Coin();
  registration.hash_profile = {Value<HashStrategy>(), Value<HashAlgorithm>(), Text(),
                               Bytes<Digest>()};
  for (std::uint64_t i = Below(4); i > 0; --i) {
    registration.pool_parts[Text()] = static_cast<std::uint32_t>(Number());
  }
  registration.origin = Value<RegistrationOrigin>();
  registration.static_name = Text();
  return registration;
}

Stored RandomRecords::NextStored() {
  Stored stored;
  stored.tier = Value<Tier>();
  if (Coin()) stored.lora_name = Text();
  stored.has_tokens = Below(4) != 0;
  stored.extra_keys_on_wire = Coin();
  stored.block_length = static_cast<std::uint32_t>(Below(4096));
  if (Coin()) {
    stored.parent = Name();
  } else if (Coin()) {
    stored.salt = Bytes<SaltDigest>();
  }
  const bool same_check = Coin();
  const auto check = Value<HashCheck>();
  for (const BlockName& name : Names()) {
    stored.blocks.push_back(
        {name, stored.has_tokens ? random_() : 0, same_check ? check : Value<HashCheck>()});
  }
  if (Coin()) stored.last_digest = Bytes<Digest>();
  return stored;
}

Event RandomRecords::NextEvent(std::size_t kind, std::vector<PoolOrigin>& origins) {
  switch (kind) {
    case 0:
      return NextStored();
    case 1:
      return Removed{Value<Tier>(), Names()};
    case 2:
      return Cleared{Coin()};
    case 3:
      return Pool<PoolStored>(origins);
    case 4:
      return Pool<PoolRemoved>(origins);
    default:
      return PoolCleared{Text(), Text()};
  }
}

Fact RandomRecords::NextFact(std::size_t kind) {
  const StreamId stream = 1 + Below(1000);
  switch (kind) {
    case 0:
      return Registered{NextRegistration(), Value<UnverifiedBlocks>()};
    case 1:
      return Unregistered{{Text(), Text(), static_cast<std::uint32_t>(Below(65'536))}};
    case 2: {
      Frame frame{stream, Number(), static_cast<std::int64_t>(Number()), random_(), {}, {}};
      if (Coin()) frame.publisher_time_us = -frame.publisher_time_us;
      for (std::uint64_t i = Below(6); i > 0; --i) {
        frame.events.push_back(NextEvent(Below(std::variant_size_v<Event>), frame.origins));
      }
      for (std::uint64_t i = Below(4); i > 0; --i) {
        frame.ignored[Value<IgnoreReason>()] = Number();
      }
      return frame;
    }
    case 3:
      return NewEpoch{stream, Value<UnverifiedBlocks>()};
    case 4:
      return CountingGroup{stream, static_cast<std::int64_t>(Number()) - 5};
    case 5:
      return HistoryStart{stream, Number()};
    case 6: {
      const std::uint64_t from = Number() / 2;
      return Lost{stream, from, from + Number() / 2};
    }
    case 7:
      return Dropped{stream, Value<DropReason>()};
    case 8:
      return Evicted{stream,
                     Value<Tier>(),
                     Text(),
                     Name(),
                     Text(),
                     Text(),
                     static_cast<std::uint32_t>(Below(kBlockSizeMax + 1))};
    default: {
      PublisherSnapshot snapshot{stream, Number(), Text(), {}};
      for (const BlockName& name : Names()) {
        snapshot.links.emplace_back(Coin() ? std::optional<BlockName>(Name()) : std::nullopt, name);
      }
      return snapshot;
    }
  }
}

Record RandomRecords::NextRecord(std::size_t facts_max) {
  Record record;
  for (std::uint64_t i = Below(facts_max + 1); i > 0; --i) {
    record.facts.push_back(NextFact(Below(std::variant_size_v<Fact>)));
  }
  return record;
}

}  // namespace conductor::storage
