// The record codec: what goes in comes out, and what the format cannot hold is refused.
#include "storage/record_codec.h"

#include <gtest/gtest.h>

#include <string>

#include "src/limits.h"
#include "storage/frame_decoder.h"
#include "storage/log_format.h"
#include "storage/record.pb.h"
#include "storage/record_check.h"
#include "tests/storage/golden_records.h"
#include "tests/storage/random_record.h"
#include "tests/storage/record_text.h"

namespace conductor::storage {
namespace {

void ExpectRoundTrip(const Record& record) {
  const auto value = EncodeRecord(record);
  ASSERT_TRUE(value) << value.error().message << "\n" << RecordText(record);
  const auto decoded = DecodeRecord(*value);
  ASSERT_TRUE(decoded) << decoded.error().message << "\n" << RecordText(record);
  ASSERT_EQ(RecordText(*decoded), RecordText(record));
  const auto again = EncodeRecord(*decoded);
  ASSERT_TRUE(again);
  ASSERT_EQ(*again, *value) << "the same facts as other bytes";
  // Protobuf would have written the same, and no record of ours needs it to be read.
  v1::Record message;
  const std::string body = value->substr(kRecordHeaderBytes);
  ASSERT_TRUE(message.ParseFromString(body));
  ASSERT_EQ(message.SerializeAsString(), body) << RecordText(record);
  const auto canonical = ReadCanonicalRecord(body);
  ASSERT_TRUE(canonical) << RecordText(record);
  ASSERT_EQ(RecordText(*canonical), RecordText(record));
}

class FactKindTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(FactKindTest, RoundTrips) {
  RandomRecords random(TestSeed());
  for (int i = 0; i < 300; ++i) ExpectRoundTrip({{random.NextFact(GetParam())}});
}

INSTANTIATE_TEST_SUITE_P(Kinds, FactKindTest,
                         ::testing::Range(std::size_t{0}, std::variant_size_v<Fact>),
                         [](const auto& info) {
                           return std::string(KindName(RandomRecords(1).NextFact(info.param)));
                         });

class EventKindTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(EventKindTest, RoundTrips) {
  RandomRecords random(TestSeed());
  for (int i = 0; i < 300; ++i) {
    Frame frame{1, 2, 3, 4, {}, {}};
    frame.events.push_back(random.NextEvent(GetParam(), frame.origins));
    ExpectRoundTrip({{frame}});
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EventKindTest,
                         ::testing::Range(std::size_t{0}, std::variant_size_v<Event>),
                         [](const auto& info) {
                           std::vector<PoolOrigin> origins;
                           return std::string(
                               KindName(RandomRecords(1).NextEvent(info.param, origins)));
                         });

TEST(RecordCodecTest, GroupsOfFactsRoundTrip) {
  RandomRecords random(TestSeed());
  for (int i = 0; i < 300; ++i) ExpectRoundTrip(random.NextRecord(20));
}

TEST(RecordCodecTest, EmptyRecordRoundTrips) {
  ExpectRoundTrip({});
  EXPECT_EQ(EncodeRecord({})->size(), kRecordHeaderBytes);
}

TEST(RecordCodecTest, GoldenRecordsRoundTrip) {
  for (const Record& record : GoldenRecordsV1()) ExpectRoundTrip(record);
}

// The size of the decoder's arena follows the body's. A size that is no multiple of 8 made protobuf
// put its own nodes at odd addresses, which an undefined-behaviour sanitizer sees.
TEST(RecordCodecTest, BodiesOfEveryLengthDecode) {
  for (std::size_t length = 500; length < 560; ++length) {
    Registered registered;
    registered.registration.instance_id.assign(length, 'x');
    ExpectRoundTrip({{registered}});
  }
}

TEST(RecordCodecTest, BlockOfTheCommonKindTakesSixteenBytes) {
  Stored stored;
  stored.block_length = 16;
  const auto size = [&] { return EncodeRecord({{Frame{1, 2, 3, 4, {stored}, {}}}})->size(); };
  stored.blocks.assign(1'000, {{7, ""}, 8, HashCheck::kEqual});
  const std::size_t thousand = size();
  stored.blocks.assign(2'000, {{7, ""}, 8, HashCheck::kEqual});
  EXPECT_LE(size() - thousand, 16'000u + 16u);
}

void ExpectRefused(const Record& record, const std::string& message) {
  const auto value = EncodeRecord(record);
  ASSERT_FALSE(value) << RecordText(record);
  EXPECT_EQ(value.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(value.error().message, message);
}

TEST(RecordCodecTest, RefusesATextThatIsTooLong) {
  Registered registered;
  registered.registration.instance_id.assign(kNameBytesMax + 1, 'x');
  ExpectRefused({{registered}},
                "fact 0 (registered): instance_id: 1025 bytes, expected at most 1024");
}

TEST(RecordCodecTest, RefusesADigestThatIsAnInteger) {
  const Removed removed{Tier::kDevice, {{1, std::string(8, 'x')}}};
  ExpectRefused({{Lost{1, 1, 1}, Frame{1, 2, 3, 4, {Cleared{}, removed}, {}}}},
                "fact 1 (frame): event 1 (removed): name: a digest of 8 bytes, expected none or 9 "
                "to 64");
}

TEST(RecordCodecTest, RefusesASaltBelowTheRoot) {
  Stored stored;
  stored.parent = BlockName{1, ""};
  stored.salt = SaltDigest{};
  ExpectRefused({{Frame{1, 2, 3, 4, {stored}, {}}}},
                "fact 0 (frame): event 0 (stored): salt: given beside a parent, expected only at "
                "the root");
}

TEST(RecordCodecTest, RefusesARangeThatRunsBackwards) {
  ExpectRefused({{Lost{1, 5, 4}}}, "fact 0 (lost): range: from 5 to 4, expected from <= to");
}

TEST(RecordCodecTest, RefusesTheStreamZero) {
  ExpectRefused({{Dropped{0, DropReason::kOperator}}},
                "fact 0 (dropped): stream: 0, expected 1 or more");
}

TEST(RecordCodecTest, RefusesAnEnumWithoutAValue) {
  ExpectRefused({{Dropped{1, static_cast<DropReason>(9)}}},
                "fact 0 (dropped): reason: 9 is no value of it");
}

TEST(RecordCodecTest, RefusesAnObjectOfNoOrigin) {
  const PoolStored object{{Tier::kDisk, 1, {7, ""}, "tp=0|"}};
  ExpectRefused({{Frame{1, 2, 3, 4, {object}, {}, {{"b", "t", "m", "", 16}}}}},
                "fact 0 (frame): event 0 (pool_stored): origin: 1, expected less than 1");
}

TEST(RecordCodecTest, RefusesAnOriginThatIsTooLong) {
  const std::string name(1'025, 'b');
  ExpectRefused({{Frame{1, 2, 3, 4, {}, {}, {{}, {name, "t", "m", "", 16}}}}},
                "fact 0 (frame): origin 1: backend_id: 1025 bytes, expected at most 1024");
}

// Each object is written with all its words, and objects that say the same are read as of one
// origin.
TEST(RecordCodecTest, OriginsAreGatheredAgain) {
  Frame frame{1, 2, 3, 4, {}, {}, {{"b", "t", "", "", 0}, {"c", "t", "m", "l", 16}}};
  for (const std::uint32_t origin : {0u, 1u, 0u, 1u, 1u}) {
    frame.events.push_back(PoolRemoved{{Tier::kDisk, origin, {7, ""}, std::string(200, 'p')}});
  }
  frame.origins.push_back({"nobody's", "", "", "", 0});
  const auto record = DecodeRecord(*EncodeRecord({{frame}}));
  ASSERT_TRUE(record);
  const auto& read = std::get<Frame>(record->facts[0]);
  frame.origins.pop_back();
  EXPECT_EQ(read.origins, frame.origins);
  for (std::size_t i = 0; i < frame.events.size(); ++i) {
    EXPECT_EQ(std::get<PoolRemoved>(read.events[i]).origin,
              std::get<PoolRemoved>(frame.events[i]).origin);
  }
}

TEST(RecordCodecTest, RefusesABlockSizeBeyondTheLimit) {
  Stored stored;
  stored.block_length = kBlockSizeMax + 1;
  ExpectRefused({{Frame{1, 2, 3, 4, {stored}, {}}}},
                "fact 0 (frame): event 0 (stored): block_length: 1048577, expected at most "
                "1048576");
}

}  // namespace
}  // namespace conductor::storage
