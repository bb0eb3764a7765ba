// Images that contradict themselves, under right checksums: each is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "src/limits.h"
#include "storage/snapshot_encoder.h"
#include "storage/snapshot_reader.h"
#include "tests/storage/memory_source.h"
#include "tests/storage/test_image.h"

namespace conductor::storage {
namespace {

using ::testing::HasSubstr;
constexpr Seq kSeq = 77;

struct Refusal {
  const char* name;
  std::function<void(TestImage&)> spoil;
  const char* words;
};

using I = TestImage;

std::vector<Refusal> TableRefusals() {
  return {
      {"ContextTwice", [](I& i) { i.contexts.push_back(i.contexts[0]); },
       "context: id 1, expected a new one"},
      {"ContextZero", [](I& i) { i.contexts[1].id = 0; }, "context: id 0, expected a new one"},
      {"ContextIdTooLarge", [](I& i) { i.contexts[1].id = kImageIdsMax; },
       "context: id 67108864, expected a new one"},
      {"BlockSizeTooLarge", [](I& i) { i.contexts[0].key.block_size = kBlockSizeMax + 1; },
       "context: block size 1048577, expected at most 1048576"},
      {"PoolTwice", [](I& i) { i.pools.push_back(i.pools[0]); }, "pool: id 1, expected a new one"},
      {"StreamBehindTheNext", [](I& i) { i.start.next_stream = 3; },
       "registration: stream 3, expected one from 1 to 2"},
      {"RegistrationTwice", [](I& i) { i.registrations.push_back(i.registrations[0]); },
       "registration: stream 1 a second time"},
      {"HolderTwice", [](I& i) { i.holders.push_back(i.holders[0]); },
       "holder: id 1, expected a new one"},
      {"HolderOfNoContext", [](I& i) { i.holders[0].key.context = 5; },
       "holder: context 5, expected one that came before"},
      {"HolderOfNoStream", [](I& i) { i.holders[0].key.stream = 9; },
       "holder: stream 9, expected one that is registered"},
      {"HolderOfNoPool", [](I& i) { i.holders[0].key.pool = 2; },
       "holder: pool 2, expected one that came before"},
      {"TierZero", [](I& i) { i.holders[0].key.tier = Tier{0}; }, "holder: tier 0"},
  };
}

std::vector<Refusal> BlockRefusals() {
  return {
      {"SetOfNobody", [](I& i) { i.sets[0].second.clear(); }, "set: 0 holders, expected 1 to"},
      {"SetOfAStranger", [](I& i) { i.sets[0].second = {7}; },
       "set: holder 7, expected one that came before"},
      {"SetNotAscending",
       [](I& i) {
         i.sets[1].second = {2, 1};
       },
       "set: holder 1 behind 2"},
      {"SetWithOneTwice",
       [](I& i) {
         i.sets[1].second = {1, 1};
       },
       "set: holder 1 behind 1"},
      {"SetOfTwoContexts", [](I& i) { i.holders[1].key.context = 2; },
       "set: holder 2 of context 2, expected one of 1"},
      {"SetTwice", [](I& i) { i.sets.push_back(i.sets[0]); }, "set: id 1, expected a new one"},
      {"RunOfNoContext", [](I& i) { i.runs[0].piece.context = 9; },
       "run: context 9, expected one that came before"},
      {"RunOfNoSet", [](I& i) { i.runs[0].sets[0] = 9; },
       "run: set 9, expected one that came before"},
      {"RunOfAnotherContextsSet", [](I& i) { i.runs[0].piece.context = 2; },
       "run: set 2 of context 1, expected one of 2"},
      {"RunEndsWithNobody", [](I& i) { i.runs[0].sets[3] = 0; }, "run: nobody at the end"},
      {"RunsDigestBehindItsEnd", [](I& i) { i.runs[0].piece.digest_slot = 4; },
       "run: digest of slot 4 of 4"},
      {"RunBelowAWrongRoot", [](I& i) { i.runs[0].parent.digest = std::string(9, 's'); },
       "run: name of 9 bytes, expected 0 or 16"},
      {"CheckZero", [](I& i) { i.runs[0].piece.check = HashCheck{0}; }, "run: check 0"},
      {"EntryOfNobody", [](I& i) { i.entries[0].piece.set = 0; },
       "entry: set 0, expected one that came before"},
      {"EntryIsARoot",
       [](I& i) {
         i.entries[0].name = {kRootScope, 1, ""};
       },
       "entry: a root's name, expected a block's"},
      {"EntryTooLong", [](I& i) { i.entries[0].piece.length = kBlockSizeMax + 1; },
       "entry: length 1048577, expected at most 1048576"},
  };
}

std::vector<Refusal> StreamRefusals() {
  return {
      {"OneCopy", [](I& i) { i.copies[0].copies = 1; }, "copies: 1 copies, expected 2 to 65535"},
      {"TooManyCopies", [](I& i) { i.copies[0].copies = kCopiesMax + 1; },
       "copies: 65536 copies, expected 2 to 65535"},
      {"CopiesOfAStranger", [](I& i) { i.copies[0].holder = 9; },
       "copies: holder 9, expected one that came before"},
      {"NoParts", [](I& i) { i.parts[0].parts.clear(); }, "parts: 0 parts, expected 1 to 8192"},
      {"PartsNotAscending",
       [](I& i) {
         i.parts[0].parts = {{1, 3}, {1, 2}};
       },
       "parts: parts are not ascending"},
      {"PartsOfAStranger", [](I& i) { i.parts[0].holder = 9; },
       "parts: holder 9, expected one that came before"},
      {"StreamNotRegistered", [](I& i) { i.streams[0].id = 9; },
       "stream_contexts: stream 9, expected one that is registered"},
      {"StreamTwice", [](I& i) { i.streams.push_back(i.streams[0]); },
       "stream_contexts: stream 1 a second time"},
      {"StreamMissing", [](I& i) { i.streams.pop_back(); },
       "2 streams, expected one for each of the 3 registrations"},
      {"StreamOfNoContext", [](I& i) { i.streams[0].contexts = {8}; },
       "stream_contexts: context 8, expected one that came before"},
      {"EpochZero", [](I& i) { i.streams[0].epoch = 0; }, "stream: epoch 0"},
      {"LostBackwards",
       [](I& i) {
         i.streams[0].lost = {{4, 3}};
       },
       "stream: lost range from 4 to 3"},
  };
}

std::vector<Refusal> Refusals() {
  std::vector<Refusal> all = TableRefusals();
  for (const auto& some : {BlockRefusals(), StreamRefusals()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

class SnapshotRefusalsTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(SnapshotRefusalsTest, IsRefusedByName) {
  TestImage image = SmallImage(kSeq);
  GetParam().spoil(image);
  NullVisitor checks;
  const Status read = ReadFromMemory(Encode(image), kSeq, checks);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kDataLoss) << read.error().message;
  EXPECT_THAT(read.error().message, HasSubstr("snapshot memory: offset "));
  EXPECT_THAT(read.error().message, HasSubstr(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(Images, SnapshotRefusalsTest, ::testing::ValuesIn(Refusals()),
                         [](const auto& info) { return std::string(info.param.name); });

// What the format cannot spell is refused before it is written.
TEST(SnapshotEncoderTest, WhatTheFormatCannotSpellIsRefused) {
  const std::vector<std::function<void(TestImage&)>> spoils = {
      [](TestImage& i) { i.contexts[0].key.tenant_id.assign(kNameBytesMax + 1, 't'); },
      [](TestImage& i) { i.pools[0].backend_id.assign(kNameBytesMax + 1, 'b'); },
      [](TestImage& i) { i.registrations[0].second.endpoint.assign(kEndpointBytesMax + 1, 'e'); },
      [](TestImage& i) { i.runs[0].names.pop_back(); },
      [](TestImage& i) { i.runs[0].sets.clear(); },
      [](TestImage& i) {
        for (auto* list : {&i.runs[0].names, &i.runs[0].fingerprints}) {
          list->resize(kRunSlotsMax + 1);
        }
        i.runs[0].sets.assign(kRunSlotsMax + 1, 1);
      },
      [](TestImage& i) { i.runs[0].parent.digest.assign(8, 'd'); },
      [](TestImage& i) { i.entries[0].name.digest.assign(65, 'd'); },
      [](TestImage& i) { i.copies[0].name.digest.assign(1, 'd'); },
      [](TestImage& i) { i.parts[0].parts.resize(kPartsPerBlockMax + 1); },
      [](TestImage& i) { i.streams[0].lost.resize(kLostRangesPerStreamMax + 1); },
      [](TestImage& i) { i.streams[0].recent.resize(kRecentFingerprintsPerStream + 1); },
  };
  for (std::size_t i = 0; i < spoils.size(); ++i) {
    TestImage image = SmallImage(kSeq);
    spoils[i](image);
    SnapshotEncoder encoder;
    const Status played = image.Play(encoder);
    ASSERT_FALSE(played) << i;
    EXPECT_EQ(played.error().code, ErrorCode::kInvalidArgument) << played.error().message;
  }
}

}  // namespace
}  // namespace conductor::storage
