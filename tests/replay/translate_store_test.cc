// What a store's events become: whose pool, which context, which part, and what is not used.
#include <gtest/gtest.h>

#include "replay/translator.h"
#include "src/hash/profile.h"
#include "tests/model/store_object.h"
#include "tests/replay/wire/store_messages.h"

namespace conductor {
namespace {

using namespace wire_test::store;  // NOLINT: short spellings of messages
using wire_test::Int;
using wire_test::Nil;
using wire_test::Text;
using Ignored = std::map<IgnoreReason, std::uint64_t>;

struct NoDigests : DigestSource {
  std::optional<Digest> FindDigest(StreamId, const std::string&, const BlockName&) const override {
    return std::nullopt;
  }
};

class TranslateStoreTest : public ::testing::Test {
 protected:
  TranslateStoreTest() {
    seed_.stream = 3;
    seed_.registration.type = PublisherType::kMooncake;
    seed_.registration.instance_id = "pool";
    seed_.registration.block_size = 16;
    seed_.registration.model_name = "m";
    seed_.registration.dp_rank = 5;
    seed_.registration.hash_profile = *MakeHashProfile("vllm_v1", "sha256_cbor", "0", "low64_be");
  }
  Frame Run(const std::string& payload) {
    if (!translator_) translator_.emplace(seed_, TranslatorOptions{}, digests_, cache_);
    std::vector<Fact> facts;
    translator_->Translate({number_++, 77, payload}, facts);
    EXPECT_EQ(facts.size(), 1u);
    return std::get<Frame>(facts.back());
  }
  StoreObject RunStored(const Pairs& changes = {}) {
    const Frame frame = Run(Batch({StoredMap(changes)}));
    EXPECT_EQ(frame.events.size(), 1u) << translator_->last_error();
    return frame.events.empty() ? StoreObject{} : ObjectOf(frame, 0);
  }
  // With the words of its origin.
  static StoreObject ObjectOf(const Frame& frame, std::size_t i) {
    const auto* stored = std::get_if<PoolStored>(&frame.events.at(i));
    const PoolObject& object =
        stored != nullptr
            ? *stored
            : static_cast<const PoolObject&>(std::get<PoolRemoved>(frame.events.at(i)));
    const PoolOrigin& origin = frame.origins.at(object.origin);
    return {object.tier,      origin.backend_id, origin.tenant_id, origin.model_name,
            origin.lora_name, origin.block_size, object.name,      std::string(object.part)};
  }

  StreamSeed seed_;
  NoDigests digests_;
  DigestCache cache_{64};
  std::optional<Translator> translator_;
  std::uint64_t number_ = 1;
};

TEST_F(TranslateStoreTest, AnObjectIsAPartOfABlock) {
  const StoreObject stored = RunStored();
  EXPECT_EQ(stored.tier, Tier::kCpuShare);
  EXPECT_EQ(stored.backend_id, "pool");
  EXPECT_EQ(stored.tenant_id, "default");
  EXPECT_EQ(stored.name.projected, kName);
  EXPECT_EQ(stored.part, "tp=0@pp=0@pcp=0@dcp=0|");
  EXPECT_EQ(stored.model_name, "") << "the registration's";
  EXPECT_EQ(stored.block_size, 0u) << "the registration's";
}

TEST_F(TranslateStoreTest, TheRankOfABatchSaysNothing) {
  EXPECT_TRUE(Run(Batch({StoredMap()})).ignored.empty()) << "the registration has rank 5";
}

TEST_F(TranslateStoreTest, TheEventsOwnWordsDecideTheContext) {
  const StoreObject stored = RunStored({{"model_name", Text("other")},
                                        {"block_size", Int(32)},
                                        {"lora_name", Text("ad")},
                                        {"tenant_id", Text("t2")}});
  EXPECT_EQ(stored.model_name, "other");
  EXPECT_EQ(stored.block_size, 32u);
  EXPECT_EQ(stored.lora_name, "ad");
  EXPECT_EQ(stored.tenant_id, "t2");
  const StoreObject same = RunStored({{"model_name", Text("m")}, {"block_size", Int(16)}});
  EXPECT_EQ(same.model_name, "");
  EXPECT_EQ(same.block_size, 0u);
}

TEST_F(TranslateStoreTest, AnotherBlockSizeThanAnyIsRefused) {
  const Frame frame = Run(Batch({StoredMap({{"block_size", Int(std::int64_t{1} << 40)}})}));
  EXPECT_TRUE(frame.events.empty());
  EXPECT_EQ(frame.ignored, (Ignored{{IgnoreReason::kBlockSizeMismatch, 1}}));
}

TEST_F(TranslateStoreTest, MediaAreTiersOfThePool) {
  EXPECT_EQ(RunStored({{"medium", Text("disk")}}).tier, Tier::kDisk);
  const Frame frame = Run(Batch({StoredMap({{"medium", Text("tape")}}), StoredMap()}));
  EXPECT_EQ(frame.events.size(), 1u);
  EXPECT_EQ(frame.ignored, (Ignored{{IgnoreReason::kUnknownMedium, 1}}));
}

TEST_F(TranslateStoreTest, ARemovalNamesTheSamePart) {
  const Frame frame = Run(Batch({StoredMap({{"event_type", Text("removed")},
                                            {"medium", Text("disk")},
                                            {"model_name", Text("other")}})}));
  ASSERT_EQ(frame.events.size(), 1u);
  ASSERT_TRUE(std::holds_alternative<PoolRemoved>(frame.events[0]));
  const StoreObject removed = ObjectOf(frame, 0);
  EXPECT_EQ(removed.tier, Tier::kDisk);
  EXPECT_EQ(removed.name.projected, kName);
  EXPECT_EQ(removed.part, "tp=0@pp=0@pcp=0@dcp=0|");
  EXPECT_EQ(removed.model_name, "other");
  EXPECT_EQ(removed.backend_id, "pool");
}

TEST_F(TranslateStoreTest, AKeyThatNamesNoBlockIsCounted) {
  const std::string tail = "m@pcp0@dcp0@head_or_tp_rank:0@req1_lastblock@3";
  const Frame frame = Run(Batch({StoredMap({{"object_key", Text(tail)}}), StoredMap()}));
  EXPECT_EQ(frame.events.size(), 1u);
  EXPECT_EQ(frame.ignored, (Ignored{{IgnoreReason::kUnparsableKey, 1}}));
}

TEST_F(TranslateStoreTest, OnlyTheFirstGroupCounts) {
  const auto key = [](int group) {
    return Text("m@tp_rank:0@pcp0@dcp0@pp_rank:0@fedcba9876543210@grp:" + std::to_string(group));
  };
  const Frame frame =
      Run(Batch({StoredMap({{"object_key", key(0)}}), StoredMap({{"object_key", key(1)}})}));
  ASSERT_EQ(frame.events.size(), 1u);
  EXPECT_EQ(std::get<PoolStored>(frame.events[0]).part, "tp=0@pp=0@pcp=0@dcp=0|group=0");
  EXPECT_EQ(frame.ignored, (Ignored{{IgnoreReason::kOtherGroup, 1}}));
}

TEST_F(TranslateStoreTest, ObjectsThatAreSaidAlikeShareTheirOrigin) {
  const auto of = [](const char* backend) { return StoredMap({{"backend_id", Text(backend)}}); };
  const Frame frame = Run(Batch({of("b1"), of("b2"), of("b1"), of("b2"), of("b1")}));
  ASSERT_EQ(frame.events.size(), 5u);
  EXPECT_EQ(frame.origins.size(), 2u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(ObjectOf(frame, i).backend_id, i % 2 == 0 ? "b1" : "b2");
  }
}

TEST_F(TranslateStoreTest, OriginsThatTakeTurnsKeepTheirOwnWords) {
  std::vector<wire_test::Write> maps;
  const auto backend = [](std::size_t i) { return "b" + std::to_string(i % 20); };
  for (std::size_t i = 0; i < 60; ++i)
    maps.push_back(StoredMap({{"backend_id", Text(backend(i))}}));
  const Frame frame = Run(Batch(maps));
  ASSERT_EQ(frame.events.size(), 60u);
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(ObjectOf(frame, i).backend_id, backend(i));
}

TEST_F(TranslateStoreTest, AClearConcernsItsBackendAndTenant) {
  Run(Batch({StoredMap(), StoredMap({{"backend_id", Text("b2")}})}));
  const Frame frame = Run(Batch({ClearedMap({{"backend_id", Text("b2")}})}));
  ASSERT_EQ(frame.events.size(), 1u);
  EXPECT_EQ(std::get<PoolCleared>(frame.events[0]).backend_id, "b2");
  EXPECT_EQ(std::get<PoolCleared>(frame.events[0]).tenant_id, "default");
}

TEST_F(TranslateStoreTest, SglangKeysAreProjectedAsSglangsNames) {
  seed_.registration.hash_profile = *MakeHashProfile("sglang", "sha256_raw", "0", "first64_be");
  const std::string hash = "0123456789abcdef" + std::string(32, '5') + "fedcba9876543210";
  const StoreObject stored = RunStored({{"object_key", Text(hash + "_0_k")}});
  EXPECT_EQ(stored.name.projected, 0x0123456789abcdefu);
  EXPECT_EQ(stored.part, "tp=0@kv=k|");
}

TEST_F(TranslateStoreTest, AWrongEventLosesOnlyItself) {
  const Frame frame = Run(Batch({StoredMap({{"timestamp", Nil()}}), StoredMap()}));
  EXPECT_EQ(frame.events.size(), 1u);
  EXPECT_EQ(frame.ignored, (Ignored{{IgnoreReason::kUndecodableEvent, 1}}));
  const Frame broken = Run("\xc1");
  EXPECT_TRUE(broken.events.empty());
  EXPECT_EQ(broken.ignored, (Ignored{{IgnoreReason::kUndecodableFrame, 1}}));
}

}  // namespace
}  // namespace conductor
