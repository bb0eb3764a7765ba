// What a frame allocates does not grow with its blocks: from its payload to the index, and back
// from the log. Apply's tables may grow by chunks of many blocks.
#include <gtest/gtest.h>

#include <ostream>

#include "src/hash/chain.h"
#include "src/hash/profile.h"
#include "tests/ingest/frame_costs.h"
#include "tools/sglang_encoder.h"
#include "tools/vllm_encoder.h"

namespace conductor::ingest_test {
namespace {

using enginesim::BlockRemovedEvent;
using enginesim::BlockStoredEvent;
using enginesim::EventBatch;
using enginesim::WireHash;

constexpr std::uint32_t kBlockSize = 16;
constexpr char kAdapter[] = "an-adapter-whose-name-is-long";
constexpr char kSalt[] = "a-salt-that-is-longer-than-what-fits-in-a-string";

// One way in which engines publish.
struct Dialect {
  const char* name;
  PublisherType type;
  const char* strategy;
  const char* algorithm;
  const char* seed = "0";  // of the registration; the engine's is 0
  bool digests = false;    // names are whole digests
  const char* vllm_era = "c";
  bool bigram = false;
  bool keys = false;    // an adapter, images and a salt, whose texts are long
  bool salted = false;  // SGLang: each event says the salt of its prompt
  enginesim::SglangEra sglang_era = enginesim::SglangEra::kS4;
};
void PrintTo(const Dialect& dialect, std::ostream* out) {
  *out << dialect.name;
}

const Dialect kDialects[] = {
    {"Vllm", PublisherType::kVllm, "vllm_v1", "sha256_cbor"},
    {"VllmPickle", PublisherType::kVllm, "vllm_v1", "sha256"},
    {"VllmDigests", PublisherType::kVllm, "vllm_v1", "sha256_cbor", "0", true},
    {"VllmArrays", PublisherType::kVllm, "vllm_v1", "sha256_cbor", "0", false, "b"},
    {"VllmOldArrays", PublisherType::kVllm, "vllm_v1", "sha256_cbor", "0", false, "a"},
    {"VllmWrongSeed", PublisherType::kVllm, "vllm_v1", "sha256_cbor", "1"},
    {"VllmWrongSeedDigests", PublisherType::kVllm, "vllm_v1", "sha256_cbor", "1", true},
    {"VllmKeys", PublisherType::kVllm, "vllm_v1", "sha256_cbor", "0", false, "c", false, true},
    {"VllmKeysPickle", PublisherType::kVllm, "vllm_v1", "sha256", "0", false, "c", false, true},
    {"VllmKeysArrays", PublisherType::kVllm, "vllm_v1", "sha256_cbor", "0", true, "b", false, true},
    {"VllmKeysWrongSeed", PublisherType::kVllm, "vllm_v1", "sha256", "1", true, "c", false, true},
    {"Sglang", PublisherType::kSglang, "sglang", "sha256_raw"},
    {"SglangBigram", PublisherType::kSglang, "sglang_bigram", "sha256_raw", "0", false, "c", true},
    {.name = "SglangSalted",
     .type = PublisherType::kSglang,
     .strategy = "sglang",
     .algorithm = "sha256_raw",
     .salted = true},
    {.name = "SglangSaltedArrays",
     .type = PublisherType::kSglang,
     .strategy = "sglang",
     .algorithm = "sha256_raw",
     .salted = true,
     .sglang_era = enginesim::SglangEra::kS3},
    {.name = "SglangSaltedBigram",
     .type = PublisherType::kSglang,
     .strategy = "sglang_bigram",
     .algorithm = "sha256_raw",
     .bigram = true,
     .salted = true},
};

// A publisher of one long prompt.
class Engine {
 public:
  explicit Engine(const Dialect& dialect) : dialect_(dialect) {}

  Registration MakeRegistration() const {
    Registration registration;
    registration.instance_id = "i";
    registration.endpoint = "tcp://10.0.0.1:5557";
    registration.type = dialect_.type;
    registration.model_name = "m";
    registration.block_size = kBlockSize;
    registration.hash_profile = Profile(dialect_.seed);
    return registration;
  }

  // `events` events that store `blocks` blocks each, one after the other.
  std::string Store(std::size_t events, std::size_t blocks) {
    EventBatch batch{.ts = 1.0, .events = {}, .dp_rank = 0};
    for (std::size_t i = 0; i < events; ++i) batch.events.emplace_back(StoreEvent(blocks));
    return Encode(batch);
  }
  // Removes the last `blocks` that are stored.
  std::string Remove(std::size_t blocks) {
    BlockRemovedEvent event;
    for (; blocks > 0; --blocks) {
      event.block_hashes.push_back(names_.back());
      names_.pop_back();
    }
    digest_.reset();
    return Encode({.ts = 1.0, .events = {event}, .dp_rank = 0});
  }

 private:
  HashProfile Profile(const char* seed) const {
    return *MakeHashProfile(dialect_.strategy, dialect_.algorithm, seed,
                            dialect_.type == PublisherType::kVllm ? "low64_be" : "first64_be");
  }

  BlockStoredEvent StoreEvent(std::size_t blocks) {
    const BlockHasher hasher(Profile("0"));
    BlockStoredEvent event;
    event.block_size = kBlockSize;
    event.bigram = dialect_.bigram;
    if (!names_.empty()) event.parent_block_hash = names_.back();
    const std::size_t overlap = dialect_.bigram ? 1 : 0;
    for (std::size_t i = 0; i < blocks * kBlockSize + overlap; ++i) {
      event.token_ids.push_back(static_cast<std::int32_t>((token_ + i) * 7919 % 150'000));
    }
    token_ += blocks * kBlockSize;
    if (dialect_.type == PublisherType::kVllm) event.extra_keys.emplace(blocks);
    if (dialect_.keys) event.lora_name = kAdapter;
    if (dialect_.salted) {
      event.cache_salt = kSalt;
      if (names_.empty()) digest_ = hasher.SaltSeed(kSalt);
    }
    for (std::size_t i = 0; i < blocks; ++i) {
      const auto own = std::span(event.token_ids).subspan(i * kBlockSize, kBlockSize + overlap);
      const ExtraKeys keys = dialect_.keys ? KeysOfNextBlock() : ExtraKeys{};
      if (dialect_.keys) event.extra_keys->at(i) = keys;
      digest_ = *hasher.HashBlock(digest_ ? &*digest_ : nullptr, own, keys);
      names_.push_back(Spell(hasher));
      event.block_hashes.push_back(names_.back());
    }
    return event;
  }

  // As the engine lists them: adapter, images, the salt at the start, the digest of embeddings.
  ExtraKeys KeysOfNextBlock() const {
    const std::string image(64, static_cast<char>('a' + names_.size() % 26));
    ExtraKeys keys = {{ExtraKey::Kind::kText, kAdapter, 0}, {ExtraKey::Kind::kItem, image, -5}};
    if (names_.empty()) keys.push_back({ExtraKey::Kind::kText, std::string(40, 's'), 0});
    keys.push_back({ExtraKey::Kind::kBytes, std::string(32, '\xee'), 0});
    return keys;
  }

  WireHash Spell(const BlockHasher& hasher) const {
    if (dialect_.digests) return std::string(digest_->begin(), digest_->end());
    const std::uint64_t name = hasher.Project(*digest_);
    if (dialect_.type == PublisherType::kSglang) return static_cast<std::int64_t>(name);
    return name;
  }

  std::string Encode(const EventBatch& batch) const {
    if (dialect_.type == PublisherType::kSglang) {
      return enginesim::EncodeSglangBatch(dialect_.sglang_era, batch);
    }
    return enginesim::EncodeBatch(*enginesim::ParseEra(dialect_.vllm_era), batch);
  }

  const Dialect dialect_;
  std::size_t token_ = 0;
  std::optional<Digest> digest_;
  std::vector<WireHash> names_;
};

class AllocationsTest : public ::testing::TestWithParam<Dialect> {};

TEST_P(AllocationsTest, DoNotGrowWithTheBlocksOfAnEvent) {
  Engine engine(GetParam());
  IngestPath path(engine.MakeRegistration());
  const StepCounts small = Least(path, [&] { return engine.Store(1, 64); });
  const StepCounts large = Least(path, [&] { return engine.Store(1, 1'024); });
  EXPECT_EQ(path.stream().blocks_stored, kFrames * (64 + 1'024));
  ExpectAlike(small, large, 1'024);
  const StepCounts few = Least(path, [&] { return engine.Remove(64); });
  const StepCounts many = Least(path, [&] { return engine.Remove(1'024); });
  EXPECT_EQ(path.stream().blocks_removed, kFrames * (64 + 1'024));
  ExpectAlike(few, many, 1'024);
}

TEST_P(AllocationsTest, OfAnEventAreFew) {
  // The name of its adapter is kept by the event, and looked up by apply.
  const std::size_t adapter = GetParam().keys ? 1 : 0;
  // Its lists: names and tokens on the wire, and blocks, which is all that a record that is read has
  // of it. The log keeps the group itself.
  const std::size_t translated = 3 + adapter, recorded = 1 + adapter;
  Engine engine(GetParam());
  IngestPath path(engine.MakeRegistration());
  const StepCounts few = Least(path, [&] { return engine.Store(16, 1); });
  const StepCounts many = Least(path, [&] { return engine.Store(256, 1); });
  EXPECT_EQ(path.stream().blocks_stored, kFrames * (16 + 256));
  constexpr std::size_t kMoreEvents = 256 - 16;
  // Lists of lists that double, and chunks of many blocks.
  constexpr std::size_t kGrowth = kSlack + kMoreEvents / kBlocksPerChunk;
  EXPECT_LE(many.translate, few.translate + kGrowth + translated * kMoreEvents);
  EXPECT_LE(many.log, few.log + kGrowth);
  EXPECT_LE(many.read, few.read + kGrowth + recorded * kMoreEvents);
  EXPECT_LE(many.apply, few.apply + kGrowth + adapter * kMoreEvents);
}

INSTANTIATE_TEST_SUITE_P(Dialects, AllocationsTest, ::testing::ValuesIn(kDialects),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace conductor::ingest_test
