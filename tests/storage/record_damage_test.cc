// Decoding bytes that are not what we wrote: a named error, never a crash, never another record.
#include <gtest/gtest.h>
#include <xxhash.h>

#include <functional>
#include <string>

#include "storage/log_format.h"
#include "storage/record.pb.h"
#include "storage/record_codec.h"
#include "tests/storage/golden_records.h"
#include "tests/storage/random_record.h"
#include "tests/storage/record_text.h"

namespace conductor::storage {
namespace {

// A body under a header that is right, so that only the body is judged.
std::string Wrap(const std::string& body) {
  std::string value = {static_cast<char>(kRecordMagic), static_cast<char>(kRecordFormatVersion),
                       static_cast<char>(kRecordHeaderBytes), 0};
  const auto checksum = static_cast<std::uint32_t>(XXH3_64bits(body.data(), body.size()));
  for (int i = 0; i < 4; ++i) value += static_cast<char>(checksum >> (8 * i));
  return value + body;
}

void ExpectError(const std::string& value, ErrorCode code, const std::string& message) {
  const auto record = DecodeRecord(value);
  ASSERT_FALSE(record) << RecordText(*record);
  EXPECT_EQ(record.error().code, code) << record.error().message;
  EXPECT_EQ(record.error().message, message);
}

// The worked example, changed by `change` and wrapped again.
void ExpectChangedError(const std::function<void(v1::Frame*)>& change, ErrorCode code,
                        const std::string& message) {
  v1::Record record;
  ASSERT_TRUE(record.ParseFromString(EncodeRecord(WorkedExample())->substr(kRecordHeaderBytes)));
  change(record.mutable_facts(0)->mutable_frame());
  ExpectError(Wrap(record.SerializeAsString()), code, message);
}

// Protobuf allows any order of fields; what the writer does is not the only way to say it.
TEST(RecordDamageTest, FieldsInAnotherOrderAreNoDamage) {
  v1::Frame number, stream;
  number.set_number(7);
  stream.set_stream(1);
  const std::string frame = number.SerializeAsString() + stream.SerializeAsString();
  const auto field = [](char tag, const std::string& bytes) {
    return std::string{tag, static_cast<char>(bytes.size())} + bytes;
  };
  const auto record = DecodeRecord(Wrap(field('\x0a', field('\x1a', frame))));
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(RecordText(*record), RecordText({{Frame{1, 7, 0, 0, {}, {}}}}));
}

TEST(RecordDamageTest, EveryFlippedBitIsAnError) {
  RandomRecords random(TestSeed());
  std::vector<Record> records = GoldenRecordsV1();
  for (int i = 0; i < 20; ++i) records.push_back(random.NextRecord());
  for (const Record& record : records) {
    const std::string value = *EncodeRecord(record);
    for (std::size_t bit = 0; bit < value.size() * 8; ++bit) {
      std::string damaged = value;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      ASSERT_FALSE(DecodeRecord(damaged)) << "bit " << bit << " of " << RecordText(record);
    }
  }
}

TEST(RecordDamageTest, EveryCutIsAnError) {
  for (const Record& record : GoldenRecordsV1()) {
    const std::string value = *EncodeRecord(record);
    for (std::size_t size = 0; size < value.size(); ++size) {
      ASSERT_FALSE(DecodeRecord(value.substr(0, size))) << size << " of " << RecordText(record);
    }
  }
}

TEST(RecordDamageTest, ChangedBodyUnderARightChecksumNeverCrashes) {
  RandomRecords random(TestSeed());
  for (int i = 0; i < 30'000; ++i) {
    std::string body = EncodeRecord(random.NextRecord(3))->substr(kRecordHeaderBytes);
    if (body.empty()) continue;
    for (std::uint64_t changes = 1 + random.Below(4); changes > 0; --changes) {
      body[random.Below(body.size())] = static_cast<char>(random.Below(256));
    }
    const auto record = DecodeRecord(Wrap(body));
    // What is accepted is a record in good order: it can be written again.
    if (record) {
      ASSERT_TRUE(EncodeRecord(*record)) << RecordText(*record);
    }
  }
}

TEST(RecordDamageTest, NamesAnUnknownVersion) {
  std::string value = *EncodeRecord(WorkedExample());
  value[1] = 3;
  ExpectError(value, ErrorCode::kFailedPrecondition, "format version 3, this build reads 1");
}

TEST(RecordDamageTest, NamesAnUnknownFlag) {
  std::string value = *EncodeRecord(WorkedExample());
  value[3] = 4;
  ExpectError(value, ErrorCode::kFailedPrecondition, "flags 4, this build knows none");
}

TEST(RecordDamageTest, NamesAWrongFirstByte) {
  std::string value = *EncodeRecord(WorkedExample());
  value[0] = 'x';
  ExpectError(value, ErrorCode::kDataLoss, "first byte 120, expected 196");
}

TEST(RecordDamageTest, NamesAWrongHeaderLength) {
  std::string value = *EncodeRecord(WorkedExample());
  value[2] = 9;
  ExpectError(value, ErrorCode::kDataLoss, "header length 9, expected 8");
}

TEST(RecordDamageTest, NamesAValueThatIsTooShort) {
  ExpectError("", ErrorCode::kDataLoss, "value of 0 bytes, expected at least 8");
}

TEST(RecordDamageTest, NamesTheChecksums) {
  std::string value = Wrap("");
  value[4] = static_cast<char>(value[4] ^ 1);
  ExpectError(value, ErrorCode::kDataLoss, "body checksum 38d394c2, expected 38d394c3");
}

TEST(RecordDamageTest, NamesABodyThatIsNoMessage) {
  ExpectError(Wrap("\x0a\xff"), ErrorCode::kDataLoss, "body of 2 bytes is no record message");
}

TEST(RecordDamageTest, NamesAnUnknownKindOfFact) {
  // Field 11 of Fact, which the next release might use.
  ExpectError(Wrap(std::string("\x0a\x02\x5a\x00", 4)), ErrorCode::kFailedPrecondition,
              "fact 0: kind of fact: field 11 is not known to this build");
}

TEST(RecordDamageTest, NamesAFactWithoutAKind) {
  ExpectError(Wrap(std::string("\x0a\x00", 2)), ErrorCode::kDataLoss,
              "fact 0: kind of fact: missing");
}

TEST(RecordDamageTest, NamesAnUnknownField) {
  ExpectChangedError(
      [](v1::Frame* frame) {
        frame->GetReflection()->MutableUnknownFields(frame)->AddVarint(99, 1);
      },
      ErrorCode::kFailedPrecondition, "fact 0: frame: field 99 is not known to this build");
}

TEST(RecordDamageTest, NamesAnUnknownTier) {
  ExpectChangedError(
      [](v1::Frame* frame) {
        frame->mutable_events(0)->mutable_stored()->set_tier(static_cast<v1::Tier>(5));
      },
      ErrorCode::kFailedPrecondition, "fact 0: event 0: tier 5 is not known to this build");
}

TEST(RecordDamageTest, NamesAMissingTier) {
  ExpectChangedError(
      [](v1::Frame* frame) { frame->mutable_events(1)->mutable_removed()->clear_tier(); },
      ErrorCode::kDataLoss, "fact 0: event 1: tier: missing");
}

TEST(RecordDamageTest, NamesAnUnknownReasonToIgnore) {
  ExpectChangedError(
      [](v1::Frame* frame) {
        frame->add_ignored_reasons(static_cast<v1::IgnoreReason>(14));
        frame->add_ignored_counts(1);
      },
      ErrorCode::kFailedPrecondition, "fact 0: ignored 14 is not known to this build");
}

TEST(RecordDamageTest, NamesReasonsOutOfOrder) {
  ExpectChangedError(
      [](v1::Frame* frame) {
        for (int i = 0; i < 2; ++i) {
          frame->add_ignored_reasons(v1::IGNORE_REASON_REMOTE);
          frame->add_ignored_counts(1);
        }
      },
      ErrorCode::kDataLoss, "fact 0: ignored_reasons: not ascending");
}

TEST(RecordDamageTest, NamesParallelArraysOfDifferentLength) {
  ExpectChangedError(
      [](v1::Frame* frame) { frame->mutable_events(0)->mutable_stored()->add_fingerprints(1); },
      ErrorCode::kDataLoss, "fact 0: event 0: fingerprints: 2 entries, expected 1");
  ExpectChangedError(
      [](v1::Frame* frame) { frame->mutable_events(0)->mutable_stored()->set_checks("\1\1"); },
      ErrorCode::kDataLoss, "fact 0: event 0: checks: 2 entries, expected 1");
  ExpectChangedError(
      [](v1::Frame* frame) {
        frame->mutable_events(1)->mutable_removed()->add_digests(std::string(32, 'd'));
        frame->mutable_events(1)->mutable_removed()->add_digests("");
      },
      ErrorCode::kDataLoss, "fact 0: event 1: digests: 2 entries, expected 1");
  ExpectChangedError([](v1::Frame* frame) { frame->add_ignored_counts(1); }, ErrorCode::kDataLoss,
                     "fact 0: ignored_counts: 1 entries, expected 0");
}

TEST(RecordDamageTest, NamesADigestOfTheWrongSize) {
  ExpectChangedError(
      [](v1::Frame* frame) {
        frame->mutable_events(0)->mutable_stored()->set_last_digest(std::string(31, 'd'));
      },
      ErrorCode::kDataLoss, "fact 0: event 0: last_digest: 31 bytes, expected 32");
  ExpectChangedError(
      [](v1::Frame* frame) {
        frame->mutable_events(0)->mutable_stored()->set_salt_digest(std::string(17, 'd'));
      },
      ErrorCode::kDataLoss, "fact 0: event 0: salt_digest: 17 bytes, expected 16");
}

TEST(RecordDamageTest, AppliesTheLimitsOfWritingWhenReading) {
  ExpectChangedError([](v1::Frame* frame) { frame->clear_stream(); }, ErrorCode::kDataLoss,
                     "fact 0 (frame): stream: 0, expected 1 or more");
}

}  // namespace
}  // namespace conductor::storage
