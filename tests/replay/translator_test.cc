#include "replay/translator.h"

#include <gtest/gtest.h>

#include "src/hash/fingerprint.h"
#include "src/hash/profile.h"
#include "tests/replay/payloads.h"

namespace conductor {
namespace {

using namespace replay_test;  // NOLINT: short spellings of events
using Ignored = std::map<IgnoreReason, std::uint64_t>;

// The state's part of the digests.
struct FakeDigests : DigestSource {
  std::map<std::pair<std::string, std::uint64_t>, Digest> known;
  std::optional<Digest> FindDigest(StreamId, const std::string& lora_name,
                                   const BlockName& name) const override {
    const auto found = known.find({lora_name, name.projected});
    if (found == known.end()) return std::nullopt;
    return found->second;
  }
};

class TranslatorTest : public ::testing::Test {
 protected:
  TranslatorTest() {
    seed_.stream = 3;
    seed_.registration.type = PublisherType::kVllm;
    seed_.registration.block_size = 4;
    seed_.registration.model_name = "m";
    seed_.registration.hash_profile = *MakeHashProfile("vllm_v1", "sha256_cbor", "0", "low64_be");
  }
  Translator& translator() {
    if (!translator_) translator_.emplace(seed_, options_, digests_, cache_);
    return *translator_;
  }
  // Translates one payload; its facts.
  std::vector<Fact> Run(const std::string& payload) {
    std::vector<Fact> facts;
    translator().Translate({number_, 77, payload}, facts);
    ++number_;
    return facts;
  }
  Frame RunFrame(const std::vector<EventSpec>& events, std::optional<int> rank = 0) {
    return std::get<Frame>(Run(Payload(events, rank)).back());
  }
  Stored RunStored(const EventSpec& event) {
    const Frame frame = RunFrame({event});
    EXPECT_EQ(frame.events.size(), 1u) << translator().last_error();
    return frame.events.empty() ? Stored{} : std::get<Stored>(frame.events[0]);
  }
  BlockHasher hasher() const { return BlockHasher(seed_.registration.hash_profile); }
  // The engine's own names of a prompt.
  std::vector<Digest> Digests(const Tokens& tokens, std::string_view lora = "",
                              std::string_view salt = "") const {
    return *hasher().HashPrompt(tokens, 4, lora, salt);
  }
  std::uint64_t U64(const Digest& digest) const { return hasher().Project(digest); }
  static std::string Raw(const Digest& digest) { return {digest.begin(), digest.end()}; }

  StreamSeed seed_;
  TranslatorOptions options_;
  FakeDigests digests_;
  DigestCache cache_{64};
  std::optional<Translator> translator_;
  std::uint64_t number_ = 5;
};

TEST_F(TranslatorTest, FrameCarriesNumberFingerprintAndTime) {
  const Frame frame = RunFrame({});
  EXPECT_EQ(frame.stream, 3u);
  EXPECT_EQ(frame.number, 5u);
  EXPECT_EQ(frame.fingerprint, 77u);
  EXPECT_EQ(frame.publisher_time_us, 1'000'000);
  EXPECT_TRUE(frame.events.empty());
  EXPECT_TRUE(frame.ignored.empty());
}

TEST_F(TranslatorTest, UndecodablePayloadIsAFrameThatMovesTheCursor) {
  const auto facts = Run("\xff\xff\xff");
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(std::get<Frame>(facts[0]).ignored, (Ignored{{IgnoreReason::kUndecodableFrame, 1}}));
  EXPECT_NE(translator().last_error().find("frame 5"), std::string_view::npos);
}

TEST_F(TranslatorTest, BadEventLosesItselfOnly) {
  // FX8 of the field cases: good, bad, good.
  EventSpec bad = S({1u}, {}, A());
  bad.block_size = 0;
  const Frame frame = RunFrame({S({11u}, {}, A()), bad, S({12u}, Name{11u}, B())});
  EXPECT_EQ(frame.events.size(), 2u);
  EXPECT_EQ(frame.ignored, (Ignored{{IgnoreReason::kUndecodableEvent, 1}}));
}

TEST_F(TranslatorTest, ContradictingRankIgnoresTheWholeFrame) {
  const Frame frame = RunFrame({S({11u}, {}, A())}, 5);
  EXPECT_TRUE(frame.events.empty());
  EXPECT_EQ(frame.ignored, (Ignored{{IgnoreReason::kRankMismatch, 1}}));
  EXPECT_EQ(translator().last_error(), "frame 5: rank: expected 0 (registered), got 5");
}

TEST_F(TranslatorTest, AbsentRankIsAccepted) {
  seed_.registration.dp_rank = 2;
  EXPECT_EQ(RunFrame({S({11u}, {}, A())}, std::nullopt).events.size(), 1u);
  EXPECT_EQ(RunFrame({S({12u}, {}, A())}, 2).events.size(), 1u);
}

TEST_F(TranslatorTest, MediaBecomeTiers) {
  const std::vector<std::pair<const char*, Tier>> media = {
      {"GPU", Tier::kDevice},          {"NPU", Tier::kDevice}, {"CPU", Tier::kCpuLocal},
      {"CPU_PINNED", Tier::kCpuLocal}, {"DISK", Tier::kDisk},  {"STORAGE", Tier::kDisk},
      {"EXTERNAL", Tier::kCpuShare}};
  for (const auto& [medium, tier] : media) {
    EventSpec stored = S({11u}, {}, A());
    stored.medium = medium;
    EXPECT_EQ(RunStored(stored).tier, tier) << medium;
    EventSpec removed = R({11u});
    removed.medium = medium;
    EXPECT_EQ(std::get<Removed>(RunFrame({removed}).events.at(0)).tier, tier) << medium;
  }
  EXPECT_EQ(RunStored(S({11u}, {}, A())).tier, Tier::kDevice);
}

TEST_F(TranslatorTest, UnknownMediumIsCountedAndIgnored) {
  EventSpec event = S({11u}, {}, A());
  event.medium = "OBJ";
  EXPECT_EQ(RunFrame({event}).ignored, (Ignored{{IgnoreReason::kUnknownMedium, 1}}));
}

TEST_F(TranslatorTest, RemoteBlocksAreCountedApart) {
  EventSpec event = S({11u}, {}, A());
  event.locality = "REMOTE";
  EXPECT_EQ(RunFrame({event}).ignored, (Ignored{{IgnoreReason::kRemote, 1}}));
  event.locality = "LOCAL";
  EXPECT_EQ(RunFrame({event}).events.size(), 1u);
}

TEST_F(TranslatorTest, HybridGroupsCountTheFullAttentionOneOnly) {
  EventSpec mamba = S({44u}, {}, BlockTokens(0, 4));
  mamba.group = 0;
  mamba.spec_kind = "mamba";
  EventSpec attention = S({41u, 42u, 43u, 44u}, {}, BlockTokens(0, 4));
  attention.group = 3;
  attention.spec_kind = "full_attention";
  const auto facts = Run(Payload({mamba, attention}));
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(std::get<CountingGroup>(facts[0]).group, 3);
  const Frame& frame = std::get<Frame>(facts[1]);
  ASSERT_EQ(frame.events.size(), 1u);
  EXPECT_EQ(std::get<Stored>(frame.events[0]).blocks.size(), 4u);
  EXPECT_EQ(frame.ignored, (Ignored{{IgnoreReason::kOtherGroup, 1}}));

  EventSpec removed = R({44u});
  removed.group = 0;
  EXPECT_EQ(RunFrame({removed}).ignored, (Ignored{{IgnoreReason::kOtherGroup, 1}}));
  removed.group = 3;
  EXPECT_EQ(RunFrame({removed}).events.size(), 1u);
}

TEST_F(TranslatorTest, LowestFullAttentionGroupOfTheFrameIsFixedForTheLife) {
  EventSpec second = S({41u}, {}, A()), first = S({42u}, {}, A());
  second.group = 2;
  second.spec_kind = "mla_attention";
  first.group = 1;
  first.spec_kind = "sink_full_attention";
  EXPECT_EQ(std::get<CountingGroup>(Run(Payload({second, first}))[0]).group, 1);
  first.group = 0;
  EXPECT_EQ(Run(Payload({first})).size(), 1u);  // Too late.
  translator().OnNewLife();
  EXPECT_EQ(std::get<CountingGroup>(Run(Payload({first}))[0]).group, 0);
}

TEST_F(TranslatorTest, OnlyAMambaGroupMakesNoHits) {
  EventSpec mamba = S({44u}, {}, BlockTokens(0, 4));
  mamba.group = 0;
  mamba.spec_kind = "mamba";
  EXPECT_TRUE(RunFrame({mamba}).events.empty());
}

TEST_F(TranslatorTest, WithoutAnyKindGroupZeroCounts) {
  EventSpec event = S({11u}, {}, A());
  event.group = 0;
  EXPECT_EQ(RunFrame({event}).events.size(), 1u);
  event.group = 1;
  EXPECT_EQ(RunFrame({event}).ignored, (Ignored{{IgnoreReason::kOtherGroup, 1}}));
}

TEST_F(TranslatorTest, CountingGroupComesFromTheSeed) {
  seed_.counting_group = 3;
  EventSpec event = S({11u}, {}, A());
  event.group = 3;
  EXPECT_EQ(Run(Payload({event})).size(), 1u);
  EXPECT_EQ(RunFrame({event}).events.size(), 1u);
}

TEST_F(TranslatorTest, ContradictingBlockSizeIsRejected) {
  seed_.registration.block_size = 64;
  EventSpec event = S({1u, 2u, 3u, 4u}, {}, BlockTokens(0, 16));
  event.block_size = 16;
  EXPECT_EQ(RunFrame({event}).ignored, (Ignored{{IgnoreReason::kBlockSizeMismatch, 1}}));
  EXPECT_EQ(translator().last_error(), "frame 5: block size: expected 64 (registered), got 16");
}

TEST_F(TranslatorTest, PartialEntriesAreCountedApartAfterAFullSizeBlock) {
  EventSpec part = S({13u}, Name{11u}, {5, 6});
  part.block_size = 2;
  EXPECT_EQ(RunFrame({part}).ignored, (Ignored{{IgnoreReason::kBlockSizeMismatch, 1}}));
  RunStored(S({11u}, {}, A()));
  EXPECT_EQ(RunFrame({part}).ignored, (Ignored{{IgnoreReason::kPartialEntry, 1}}));
  part.tokens = {5, 6, 7};
  EXPECT_EQ(RunFrame({part}).ignored, (Ignored{{IgnoreReason::kBlockSizeMismatch, 1}}));
}

TEST_F(TranslatorTest, AmbiguousLengthIsRejectedNotGuessed) {
  EXPECT_EQ(RunFrame({S({1u, 2u, 3u}, {}, BlockTokens(0, 4))}).ignored,
            (Ignored{{IgnoreReason::kAmbiguousLength, 1}}));
  EXPECT_EQ(RunFrame({S({1u, 2u}, {}, A())}).ignored,
            (Ignored{{IgnoreReason::kAmbiguousLength, 1}}));
}

TEST_F(TranslatorTest, TokenlessEventsNameBlocksOnly) {
  EventSpec event = S({1u, 2u, 3u}, {}, {});
  event.medium = "CPU";
  const Stored stored = RunStored(event);
  EXPECT_FALSE(stored.has_tokens);
  EXPECT_EQ(stored.tier, Tier::kCpuLocal);
  EXPECT_FALSE(stored.parent);
  EXPECT_FALSE(stored.last_digest);
  ASSERT_EQ(stored.blocks.size(), 3u);
  EXPECT_EQ(stored.blocks[1].check, HashCheck::kNotComputed);
  EXPECT_EQ(stored.blocks[1].name.projected, 2u);
}

TEST_F(TranslatorTest, NamesAreComparedWithTheRecomputedHashes) {
  const auto digests = Digests(BlockTokens(0, 3));
  const Stored stored =
      RunStored(S({U64(digests[0]), 99u, U64(digests[2])}, {}, BlockTokens(0, 3)));
  ASSERT_EQ(stored.blocks.size(), 3u);
  EXPECT_EQ(stored.blocks[0].check, HashCheck::kEqual);
  EXPECT_EQ(stored.blocks[1].check, HashCheck::kDiffers);
  EXPECT_EQ(stored.blocks[2].check, HashCheck::kEqual);
  EXPECT_EQ(stored.last_digest, digests[2]);
  EXPECT_EQ(stored.blocks[0].fingerprint, FingerprintV1(A(), {}));
  EXPECT_EQ(stored.block_length, 4u);
  EXPECT_TRUE(stored.extra_keys_on_wire);
}

TEST_F(TranslatorTest, WholeDigestsAreComparedWhole) {
  const auto digests = Digests(BlockTokens(0, 2));
  std::string other = Raw(digests[1]);
  other[0] = static_cast<char>(other[0] ^ 1);  // Same projection.
  const Stored stored = RunStored(S({Raw(digests[0]), other}, {}, BlockTokens(0, 2)));
  EXPECT_EQ(stored.blocks[0].check, HashCheck::kEqual);
  EXPECT_EQ(stored.blocks[1].check, HashCheck::kDiffers);
}

TEST_F(TranslatorTest, ChildrenGoOnFromEveryBlockOfEarlierEvents) {
  const auto digests = Digests(BlockTokens(0, 3));
  RunStored(S({U64(digests[0]), U64(digests[1])}, {}, BlockTokens(0, 2)));
  EXPECT_EQ(RunStored(S({U64(digests[1])}, U64(digests[0]), B())).blocks[0].check,
            HashCheck::kEqual);
  EXPECT_EQ(RunStored(S({U64(digests[2])}, U64(digests[1]), C())).blocks[0].check,
            HashCheck::kEqual);
}

TEST_F(TranslatorTest, ChildrenOfForeignNamesGoOnFromOurOwnDigest) {
  const auto digests = Digests(BlockTokens(0, 2));
  RunStored(S({11u}, {}, A()));
  const Stored stored = RunStored(S({12u}, Name{11u}, B()));
  EXPECT_EQ(stored.blocks[0].check, HashCheck::kDiffers);
  EXPECT_EQ(stored.last_digest, digests[1]);
}

TEST_F(TranslatorTest, UnknownParentIsAskedOfTheStateAndMayMiss) {
  const auto digests = Digests(BlockTokens(0, 2));
  const EventSpec child = S({U64(digests[1])}, U64(digests[0]), B());
  const Stored missed = RunStored(child);
  EXPECT_EQ(missed.blocks[0].check, HashCheck::kNotComputed);
  EXPECT_FALSE(missed.last_digest);
  digests_.known[{"", U64(digests[0])}] = digests[0];
  EXPECT_EQ(RunStored(child).blocks[0].check, HashCheck::kEqual);
}

TEST_F(TranslatorTest, NewLifeForgetsNamesOfTheOldOne) {
  RunStored(S({11u}, {}, A()));
  digests_.known[{"", 11u}] = Digests(A())[0];  // The state has not applied the new life yet.
  translator().OnNewLife();
  EXPECT_EQ(RunStored(S({12u}, Name{11u}, B())).blocks[0].check, HashCheck::kNotComputed);
}

TEST_F(TranslatorTest, NewLifeStillTakesDigestsThatProveThemselves) {
  const auto digests = Digests(BlockTokens(0, 2));
  digests_.known[{"", U64(digests[0])}] = digests[0];
  translator().OnNewLife();
  EXPECT_EQ(RunStored(S({U64(digests[1])}, U64(digests[0]), B())).blocks[0].check,
            HashCheck::kEqual);
}

TEST_F(TranslatorTest, SaltIsTakenOutAndOnlyItsDigestStays) {
  const auto digests = Digests(BlockTokens(0, 2), "", "salt-T1");
  EventSpec event = S({U64(digests[0]), U64(digests[1])}, {}, BlockTokens(0, 2));
  event.extra_keys = {Keys{"salt-T1"}, Keys{}};
  const Stored stored = RunStored(event);
  EXPECT_EQ(stored.salt, DigestSalt("salt-T1"));
  EXPECT_EQ(stored.blocks[0].check, HashCheck::kEqual);
  EXPECT_EQ(stored.blocks[1].check, HashCheck::kEqual);
  EXPECT_EQ(stored.blocks[0].fingerprint, FingerprintV1(A(), {}));
}

TEST_F(TranslatorTest, SaltIsLookedForOnlyInTheBlockAtTokenZero) {
  RunStored(S({11u}, {}, A()));
  EventSpec event = S({12u}, Name{11u}, B());
  event.extra_keys = {Keys{"image"}};
  const Stored stored = RunStored(event);
  EXPECT_FALSE(stored.salt);
  EXPECT_EQ(stored.blocks[0].fingerprint,
            FingerprintV1(B(), ExtraKeys{{ExtraKey::Kind::kText, "image", 0}}));
}

TEST_F(TranslatorTest, HiddenSaltDiffers) {
  const auto digests = Digests(A(), "", "salt-T1");
  EventSpec event = S({U64(digests[0])}, {}, A());
  event.slots = 7;  // Before extra_keys.
  const Stored stored = RunStored(event);
  EXPECT_FALSE(stored.extra_keys_on_wire);
  EXPECT_EQ(stored.blocks[0].check, HashCheck::kDiffers);
  EXPECT_FALSE(stored.salt);
}

TEST_F(TranslatorTest, AdapterNameDecidesTheContext) {
  const auto digests = Digests(BlockTokens(0, 2), "ad-116");
  EventSpec event = S({U64(digests[0]), U64(digests[1])}, {}, BlockTokens(0, 2));
  event.lora_id = 117;
  event.lora_name = "ad-116";
  event.extra_keys = {Keys{"ad-116"}, Keys{"ad-116"}};
  const Stored stored = RunStored(event);
  EXPECT_EQ(stored.lora_name, "ad-116");
  EXPECT_FALSE(stored.salt);
  EXPECT_EQ(stored.blocks[1].check, HashCheck::kEqual);
  EXPECT_EQ(stored.blocks[0].fingerprint, FingerprintV1(A(), {}));
}

TEST_F(TranslatorTest, AdapterAndSaltTogether) {
  const auto digests = Digests(A(), "ad-1", "tenant");
  EventSpec event = S({U64(digests[0])}, {}, A());
  event.lora_name = "ad-1";
  event.extra_keys = {Keys{"ad-1", "tenant"}};
  const Stored stored = RunStored(event);
  EXPECT_EQ(stored.salt, DigestSalt("tenant"));
  EXPECT_EQ(stored.blocks[0].check, HashCheck::kEqual);
}

TEST_F(TranslatorTest, AdapterKnownByNumberOnlyIsNamedAfterIt) {
  EventSpec event = S({11u}, {}, A());
  event.lora_id = 3;
  event.slots = 5;  // Before lora_name.
  EXPECT_EQ(RunStored(event).lora_name, "lora_id:3");
}

TEST_F(TranslatorTest, AdapterWithoutExtraKeysOnTheWireIsHashedByWhatTheEventSays) {
  EventSpec named = S({U64(Digests(A(), "ad-1")[0])}, {}, A());
  named.lora_name = "ad-1";
  named.slots = 7;
  EXPECT_EQ(RunStored(named).blocks[0].check, HashCheck::kEqual);
  EventSpec numbered = S({U64(Digests(A(), "lora_id:3")[0])}, {}, A());
  numbered.lora_id = 3;
  numbered.slots = 5;
  EXPECT_EQ(RunStored(numbered).blocks[0].check, HashCheck::kEqual);
}

TEST_F(TranslatorTest, RegistrationNamesTheAdapterOfANumber) {
  seed_.registration.lora_name = "ad-9";
  EventSpec event = S({11u}, {}, A());
  event.lora_id = 3;
  EXPECT_EQ(RunStored(event).lora_name, std::nullopt);
  EXPECT_EQ(RunStored(S({12u}, {}, A())).lora_name, std::nullopt);
  event.lora_name = "ad-9";
  EXPECT_EQ(RunStored(event).lora_name, std::nullopt);
  event.lora_name = "other";
  EXPECT_EQ(RunStored(event).lora_name, "other");
}

TEST_F(TranslatorTest, AdaptersDoNotShareRememberedNames) {
  EventSpec event = S({11u}, {}, A());
  event.lora_name = "ad-1";
  RunStored(event);
  EXPECT_EQ(RunStored(S({12u}, Name{11u}, B())).blocks[0].check, HashCheck::kNotComputed);
}

TEST_F(TranslatorTest, ClearOfVllmIsOfTheDeviceOnly) {
  const Frame frame = RunFrame({S({11u}, {}, A()), Clear()});
  EXPECT_FALSE(std::get<Cleared>(frame.events.at(1)).all_tiers);
}

TEST_F(TranslatorTest, EventsKeepTheirOrder) {
  const Frame frame = RunFrame({S({11u}, {}, A()), R({11u}), Clear(), S({11u}, {}, A())});
  ASSERT_EQ(frame.events.size(), 4u);
  EXPECT_TRUE(std::holds_alternative<Removed>(frame.events[1]));
  EXPECT_TRUE(std::holds_alternative<Cleared>(frame.events[2]));
  EXPECT_TRUE(std::holds_alternative<Stored>(frame.events[3]));
}

TEST_F(TranslatorTest, SglangPages) {
  seed_.registration.type = PublisherType::kSglang;
  seed_.registration.hash_profile = *MakeHashProfile("sglang", "sha256_raw", "0", "first64_be");
  const auto digests = Digests({1, 2, 3, 4, 5, 6});
  EventSpec event = S({Name{std::uint64_t{0}}}, {}, A());
  event.slots = 6;
  // SGLang spells the 64 bits as a signed integer; a positive one keeps the test simple.
  const Stored stored = RunStored(event);
  EXPECT_EQ(stored.blocks[0].check, HashCheck::kDiffers);
  EXPECT_EQ(stored.last_digest, digests[0]);
  EventSpec tail = S({Name{std::uint64_t{1}}}, Name{std::uint64_t{0}}, {5, 6});
  tail.block_size = 2;
  tail.slots = 6;
  const Stored last = RunStored(tail);
  EXPECT_EQ(last.block_length, 2u);
  EXPECT_EQ(last.last_digest, digests[1]);
  EXPECT_TRUE(std::get<Cleared>(RunFrame({Clear()}).events.at(0)).all_tiers);
}

TEST(DigestCacheTest, OldestOfASetGoesAndTheRestStays) {
  DigestCache cache(4);
  const auto scope = cache.NewScope();
  for (std::uint64_t name = 1; name <= 5; ++name) {
    cache.Put(scope, {name, ""}, Digest{static_cast<std::uint8_t>(name)});
  }
  EXPECT_FALSE(cache.Find(scope, {1, ""}));
  for (std::uint64_t name = 2; name <= 5; ++name) {
    ASSERT_TRUE(cache.Find(scope, {name, ""}));
    EXPECT_EQ((*cache.Find(scope, {name, ""}))[0], name);
  }
  EXPECT_FALSE(cache.Find(cache.NewScope(), {2, ""}));
}

TEST(DigestCacheTest, WholeDigestsWithOneProjectionAreTwoNames) {
  DigestCache cache(64);
  const auto scope = cache.NewScope();
  cache.Put(scope, {7, std::string(32, 'a')}, Digest{1});
  cache.Put(scope, {7, std::string(32, 'b')}, Digest{2});
  EXPECT_EQ((*cache.Find(scope, {7, std::string(32, 'a')}))[0], 1);
  EXPECT_EQ((*cache.Find(scope, {7, std::string(32, 'b')}))[0], 2);
  EXPECT_FALSE(cache.Find(scope, {7, ""}));
}

}  // namespace
}  // namespace conductor
