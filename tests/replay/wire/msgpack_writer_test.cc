// The writer against bytes that msgspec writes, and against the reader.
#include "replay/wire/msgpack_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "replay/wire/msgpack_reader.h"
#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using wire_test::ToHex;
using wire_test::Write;

std::string HexOf(const Write& write) {
  MsgpackWriter writer;
  write(writer);
  return ToHex(writer.text());
}

TEST(MsgpackWriterTest, UnsignedIntegersTakeTheirSmallestWidth) {
  EXPECT_EQ(HexOf(wire_test::Uint(0)), "00");
  EXPECT_EQ(HexOf(wire_test::Uint(127)), "7f");
  EXPECT_EQ(HexOf(wire_test::Uint(128)), "cc80");
  EXPECT_EQ(HexOf(wire_test::Uint(255)), "ccff");
  EXPECT_EQ(HexOf(wire_test::Uint(256)), "cd0100");
  EXPECT_EQ(HexOf(wire_test::Uint(65535)), "cdffff");
  EXPECT_EQ(HexOf(wire_test::Uint(65536)), "ce00010000");
  EXPECT_EQ(HexOf(wire_test::Uint(4294967295)), "ceffffffff");
  EXPECT_EQ(HexOf(wire_test::Uint(4294967296)), "cf0000000100000000");
  EXPECT_EQ(HexOf(wire_test::Uint(UINT64_MAX)), "cfffffffffffffffff");
}

TEST(MsgpackWriterTest, NegativeIntegersTakeTheirSmallestWidth) {
  EXPECT_EQ(HexOf(wire_test::Int(5)), "05");
  EXPECT_EQ(HexOf(wire_test::Int(-1)), "ff");
  EXPECT_EQ(HexOf(wire_test::Int(-32)), "e0");
  EXPECT_EQ(HexOf(wire_test::Int(-33)), "d0df");
  EXPECT_EQ(HexOf(wire_test::Int(-128)), "d080");
  EXPECT_EQ(HexOf(wire_test::Int(-129)), "d1ff7f");
  EXPECT_EQ(HexOf(wire_test::Int(-32768)), "d18000");
  EXPECT_EQ(HexOf(wire_test::Int(-32769)), "d2ffff7fff");
  EXPECT_EQ(HexOf(wire_test::Int(-2147483648)), "d280000000");
  EXPECT_EQ(HexOf(wire_test::Int(-2147483649)), "d3ffffffff7fffffff");
  EXPECT_EQ(HexOf(wire_test::Int(INT64_MIN)), "d38000000000000000");
}

TEST(MsgpackWriterTest, ScalarsAndFloats) {
  EXPECT_EQ(HexOf(wire_test::Nil()), "c0");
  EXPECT_EQ(HexOf([](MsgpackWriter& w) { w.WriteBool(false); }), "c2");
  EXPECT_EQ(HexOf([](MsgpackWriter& w) { w.WriteBool(true); }), "c3");
  EXPECT_EQ(HexOf(wire_test::Float(1747000000.25)), "cb41da0846b0100000");
}

TEST(MsgpackWriterTest, HeadersTakeTheirSmallestWidth) {
  const auto array = [](std::uint32_t count) {
    return HexOf([=](MsgpackWriter& w) { w.WriteArrayHeader(count); });
  };
  const auto map = [](std::uint32_t count) {
    return HexOf([=](MsgpackWriter& w) { w.WriteMapHeader(count); });
  };
  EXPECT_EQ(array(0), "90");
  EXPECT_EQ(array(15), "9f");
  EXPECT_EQ(array(16), "dc0010");
  EXPECT_EQ(array(65536), "dd00010000");
  EXPECT_EQ(map(15), "8f");
  EXPECT_EQ(map(16), "de0010");
  EXPECT_EQ(map(65536), "df00010000");
}

TEST(MsgpackWriterTest, TextsAndBytesTakeTheirSmallestWidth) {
  const auto text = [](std::size_t size) { return HexOf(wire_test::Text(std::string(size, 'x'))); };
  const auto bin = [](std::size_t size) { return HexOf(wire_test::Bin(std::string(size, 'x'))); };
  EXPECT_EQ(text(31).substr(0, 2), "bf");
  EXPECT_EQ(text(32).substr(0, 4), "d920");
  EXPECT_EQ(text(256).substr(0, 6), "da0100");
  EXPECT_EQ(text(65536).substr(0, 10), "db00010000");
  EXPECT_EQ(bin(0), "c400");
  EXPECT_EQ(bin(256).substr(0, 6), "c50100");
  EXPECT_EQ(bin(65536).substr(0, 10), "c600010000");
}

std::uint64_t Seed() {
  const char* given = std::getenv("CONDUCTOR_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20260101;
}

// Random values of every kind, written, skipped as a whole and read back.
TEST(MsgpackWriterTest, WhatIsWrittenIsRead) {
  const std::uint64_t seed = Seed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20000; ++round) {
    const auto bits = random() >> (random() % 64);
    const auto integer = static_cast<std::int64_t>(random()) >> (random() % 64);
    const double number = std::ldexp(static_cast<double>(bits), static_cast<int>(bits % 40));
    const std::string text(random() % 300, 'a');
    const bool flag = random() % 2 == 0;
    MsgpackWriter writer;
    writer.WriteArrayHeader(5);
    writer.WriteUint64(bits);
    writer.WriteInt64(integer);
    writer.WriteDouble(number);
    writer.WriteMapHeader(1);
    writer.WriteText(text);
    writer.WriteBytes(wire_test::AsBytes(text));
    writer.WriteBool(flag);

    MsgpackReader skipper(writer.bytes());
    ASSERT_TRUE(skipper.Skip());
    ASSERT_TRUE(skipper.AtEnd());
    MsgpackReader reader(writer.bytes());
    ASSERT_EQ(reader.ReadArrayHeader().value(), 5u);
    ASSERT_EQ(reader.ReadUint64().value(), bits);
    ASSERT_EQ(reader.ReadInt64().value(), integer);
    ASSERT_EQ(reader.ReadDouble().value(), number);
    ASSERT_EQ(reader.ReadMapHeader().value(), 1u);
    ASSERT_EQ(reader.ReadText().value(), text);
    ASSERT_EQ(reader.ReadBytes().value().size(), text.size());
    ASSERT_EQ(reader.ReadBool().value(), flag);
    ASSERT_TRUE(reader.ReadEnd());
  }
}

}  // namespace
}  // namespace conductor
