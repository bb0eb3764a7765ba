#include "replay/wire/msgpack_reader.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using wire_test::Bytes;
using wire_test::FromHex;
using wire_test::ReasonOf;

// Owns its bytes, so that a test can say `Hex("90").reader`.
struct Hex {
  explicit Hex(std::string_view hex) : bytes(FromHex(hex)), reader(bytes) {}
  Bytes bytes;
  MsgpackReader reader;
};

TEST(MsgpackReaderTest, PeekNamesEveryFirstByte) {
  const std::vector<std::pair<std::string, MsgpackType>> cases = {
      {"00", MsgpackType::kInteger},  {"7f", MsgpackType::kInteger}, {"80", MsgpackType::kMap},
      {"8f", MsgpackType::kMap},      {"90", MsgpackType::kArray},   {"9f", MsgpackType::kArray},
      {"a0", MsgpackType::kText},     {"bf", MsgpackType::kText},    {"c0", MsgpackType::kNil},
      {"c1", MsgpackType::kReserved}, {"c2", MsgpackType::kBool},    {"c3", MsgpackType::kBool},
      {"c4", MsgpackType::kBytes},    {"c6", MsgpackType::kBytes},   {"c7", MsgpackType::kExt},
      {"c9", MsgpackType::kExt},      {"ca", MsgpackType::kFloat},   {"cb", MsgpackType::kFloat},
      {"cc", MsgpackType::kInteger},  {"d3", MsgpackType::kInteger}, {"d4", MsgpackType::kExt},
      {"d8", MsgpackType::kExt},      {"d9", MsgpackType::kText},    {"db", MsgpackType::kText},
      {"dc", MsgpackType::kArray},    {"dd", MsgpackType::kArray},   {"de", MsgpackType::kMap},
      {"df", MsgpackType::kMap},      {"e0", MsgpackType::kInteger}, {"ff", MsgpackType::kInteger},
      {"", MsgpackType::kEnd}};
  for (const auto& [hex, type] : cases) EXPECT_EQ(Hex(hex).reader.PeekType(), type) << hex;
}

TEST(MsgpackReaderTest, IntegersOfEveryWidth) {
  EXPECT_EQ(Hex("ff").reader.ReadInt64().value(), -1);
  EXPECT_EQ(Hex("e0").reader.ReadInt64().value(), -32);
  EXPECT_EQ(Hex("d080").reader.ReadInt64().value(), -128);
  EXPECT_EQ(Hex("d18000").reader.ReadInt64().value(), -32768);
  EXPECT_EQ(Hex("d280000000").reader.ReadInt64().value(), INT32_MIN);
  EXPECT_EQ(Hex("d38000000000000000").reader.ReadInt64().value(), INT64_MIN);
  EXPECT_EQ(Hex("cc80").reader.ReadUint64().value(), 128u);
  EXPECT_EQ(Hex("cdffff").reader.ReadUint64().value(), 65535u);
  EXPECT_EQ(Hex("ceffffffff").reader.ReadUint64().value(), UINT32_MAX);
  EXPECT_EQ(Hex("cfffffffffffffffff").reader.ReadUint64().value(), UINT64_MAX);
}

TEST(MsgpackReaderTest, WidthsNeedNotBeMinimal) {
  EXPECT_EQ(Hex("cf0000000000000001").reader.ReadInt64().value(), 1);
  EXPECT_EQ(Hex("d300000000000000ff").reader.ReadUint64().value(), 255u);
  EXPECT_EQ(Hex("dd0000000100").reader.ReadArrayHeader().value(), 1u);
}

TEST(MsgpackReaderTest, IntegersOutsideTheAskedRangeAreRefused) {
  EXPECT_EQ(ReasonOf(Hex("ff").reader.ReadUint64()), "msgpack_range");
  EXPECT_EQ(ReasonOf(Hex("cf8000000000000000").reader.ReadInt64()), "msgpack_range");
}

TEST(MsgpackReaderTest, FloatsAndIntegersAreNumbers) {
  EXPECT_EQ(Hex("ca3fc00000").reader.ReadDouble().value(), 1.5);
  EXPECT_EQ(Hex("cb3ff8000000000000").reader.ReadDouble().value(), 1.5);
  EXPECT_EQ(Hex("ff").reader.ReadDouble().value(), -1.0);
  EXPECT_EQ(Hex("cfffffffffffffffff").reader.ReadDouble().value(), 18446744073709551616.0);
  EXPECT_TRUE(std::isnan(Hex("cb7ff8000000000000").reader.ReadDouble().value()));
}

TEST(MsgpackReaderTest, TextBytesExtAndScalars) {
  EXPECT_EQ(Hex("a3616263").reader.ReadText().value(), "abc");
  EXPECT_EQ(Hex("d903616263").reader.ReadText().value(), "abc");
  EXPECT_EQ(Hex("da0003616263").reader.ReadText().value(), "abc");
  EXPECT_EQ(Hex("db00000003616263").reader.ReadText().value(), "abc");
  EXPECT_EQ(Hex("a0").reader.ReadText().value(), "");
  EXPECT_EQ(Hex("c403010203").reader.ReadBytes().value().size(), 3u);
  EXPECT_EQ(Hex("c50001ff").reader.ReadBytes().value()[0], 0xff);
  Hex fixed("d6ff68211ac0");
  const auto timestamp = fixed.reader.ReadExt();
  ASSERT_TRUE(timestamp);
  EXPECT_EQ(timestamp->type, -1);
  EXPECT_EQ(timestamp->data.size(), 4u);
  EXPECT_TRUE(fixed.reader.AtEnd());
  Hex counted("c7000500");
  ASSERT_TRUE(counted.reader.ReadExt());
  EXPECT_EQ(counted.reader.Remaining(), 1u);
  EXPECT_TRUE(Hex("c0").reader.ReadNil());
  EXPECT_TRUE(Hex("c3").reader.ReadBool().value());
  EXPECT_FALSE(Hex("c2").reader.ReadBool().value());
}

TEST(MsgpackReaderTest, TextThatIsNotUtf8IsRefused) {
  EXPECT_EQ(Hex("a2c3a9").reader.ReadText().value(), "\xc3\xa9");
  for (const char* bad : {"a1ff", "a2c080", "a3eda080", "a4f4908080", "a1c3"}) {
    EXPECT_EQ(ReasonOf(Hex(bad).reader.ReadText()), "invalid_utf8") << bad;
  }
}

TEST(MsgpackReaderTest, HeadersAreCheckedAgainstTheBytesLeft) {
  EXPECT_EQ(Hex("93010203").reader.ReadArrayHeader().value(), 3u);
  EXPECT_EQ(ReasonOf(Hex("930102").reader.ReadArrayHeader()), "msgpack_truncated");
  EXPECT_EQ(Hex("82a101a102").reader.ReadMapHeader().value(), 2u);
  EXPECT_EQ(ReasonOf(Hex("82a101a1").reader.ReadMapHeader()), "msgpack_truncated");
  EXPECT_EQ(ReasonOf(Hex("ddffffffff00").reader.ReadArrayHeader()), "msgpack_truncated");
  EXPECT_EQ(ReasonOf(Hex("dfffffffff0000").reader.ReadMapHeader()), "msgpack_truncated");
}

TEST(MsgpackReaderTest, EveryHeadNeedsItsBytes) {
  for (const char* cut : {"",
                          "cc",
                          "cd00",
                          "ce000000",
                          "cf00000000000000",
                          "ca000000",
                          "cb00000000000000",
                          "a3616",
                          "c4",
                          "c40201",
                          "c6ffffffff00",
                          "d9",
                          "db7fffffff78",
                          "dc00",
                          "dd000000",
                          "de00",
                          "d4",
                          "d401",
                          "c70105",
                          "d8050101"}) {
    const std::string hex = std::string_view(cut).size() % 2 == 0 ? cut : std::string(cut) + "1";
    EXPECT_EQ(ReasonOf(Hex(hex).reader.Skip()), "msgpack_truncated") << hex;
  }
}

TEST(MsgpackReaderTest, ReservedByteIsRefusedEverywhere) {
  EXPECT_EQ(ReasonOf(Hex("c1").reader.Skip()), "msgpack_invalid");
  EXPECT_EQ(ReasonOf(Hex("9201c1").reader.Skip()), "msgpack_invalid");
  EXPECT_EQ(ReasonOf(Hex("c1").reader.ReadNil()), "msgpack_invalid");
  EXPECT_EQ(ReasonOf(Hex("c1").reader.ReadInt64()), "msgpack_invalid");
  EXPECT_EQ(ReasonOf(Hex("c1").reader.ReadText()), "msgpack_invalid");
}

TEST(MsgpackReaderTest, OtherTypesAreRefusedByName) {
  EXPECT_EQ(ReasonOf(Hex("00").reader.ReadNil()), "msgpack_type");
  EXPECT_EQ(ReasonOf(Hex("00").reader.ReadBool()), "msgpack_type");
  EXPECT_EQ(ReasonOf(Hex("c0").reader.ReadUint64()), "msgpack_type");
  EXPECT_EQ(ReasonOf(Hex("cb3ff8000000000000").reader.ReadInt64()), "msgpack_type");
  EXPECT_EQ(ReasonOf(Hex("a0").reader.ReadDouble()), "msgpack_type");
  EXPECT_EQ(ReasonOf(Hex("c400").reader.ReadText()), "msgpack_type");
  EXPECT_EQ(ReasonOf(Hex("a0").reader.ReadBytes()), "msgpack_type");
  EXPECT_EQ(ReasonOf(Hex("80").reader.ReadArrayHeader()), "msgpack_type");
  EXPECT_EQ(ReasonOf(Hex("90").reader.ReadMapHeader()), "msgpack_type");
  EXPECT_EQ(ReasonOf(Hex("90").reader.ReadExt()), "msgpack_type");
}

TEST(MsgpackReaderTest, AFailedReadMovesNothingAndSaysWhere) {
  Hex input("9201a161");
  ASSERT_TRUE(input.reader.ReadArrayHeader());
  ASSERT_TRUE(input.reader.ReadInt64());
  const auto wrong = input.reader.ReadUint64();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(wrong.error().message,
            "msgpack at byte 2: expected an unsigned 64-bit integer, got text");
  EXPECT_EQ(input.reader.Offset(), 2u);
  EXPECT_EQ(input.reader.ReadText().value(), "a");
  EXPECT_TRUE(input.reader.AtEnd());
}

TEST(MsgpackReaderTest, SkipPassesOneWholeValue) {
  Hex input("9381a1619201c0c403010203d6ff0000000005");
  ASSERT_TRUE(input.reader.Skip());
  EXPECT_EQ(input.reader.Remaining(), 1u);
  EXPECT_EQ(input.reader.BytesSince(0).size(), input.bytes.size() - 1);
  EXPECT_EQ(input.reader.ReadInt64().value(), 5);
  EXPECT_TRUE(input.reader.ReadEnd());
}

TEST(MsgpackReaderTest, BytesBehindTheValueAreTrailing) {
  Hex input("c000");
  ASSERT_TRUE(input.reader.ReadNil());
  EXPECT_EQ(ReasonOf(input.reader.ReadEnd()), "msgpack_trailing");
}

TEST(MsgpackReaderTest, DepthHasALimit) {
  std::string nested;
  for (std::size_t i = 0; i < kMsgpackDepthMax; ++i) nested += "91";
  EXPECT_EQ(ReasonOf(Hex(nested + "c0").reader.Skip()), "accepted");
  EXPECT_EQ(ReasonOf(Hex("91" + nested + "c0").reader.Skip()), "depth_limit");
  EXPECT_EQ(ReasonOf(Hex(nested + "90").reader.Skip()), "depth_limit");
  std::string maps;
  for (std::size_t i = 0; i < kMsgpackDepthMax + 1; ++i) maps += "81c0";
  EXPECT_EQ(ReasonOf(Hex(maps + "c0").reader.Skip()), "depth_limit");
}

TEST(MsgpackReaderTest, ClosedContainersGiveTheirDepthBack) {
  std::string siblings = "dc0400";
  for (int i = 0; i < 1024; ++i) siblings += "9190";
  EXPECT_EQ(ReasonOf(Hex(siblings).reader.Skip()), "accepted");
}

}  // namespace
}  // namespace conductor
