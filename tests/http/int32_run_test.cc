// Runs of integers against the reader that takes one value at a time.
#include "http/int32_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

#include "replay/wire/msgpack_reader.h"
#include "replay/wire/msgpack_writer.h"

namespace conductor::http {
namespace {

using Bytes = std::vector<std::uint8_t>;

// In memory of exactly its size, so that the sanitizer sees a read beyond the end. The portable
// reader alone and the one for this processor take the same.
Int32Run Decode(const Bytes& bytes, std::size_t length, std::span<std::int32_t> out) {
  const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[length]);
  std::copy_n(bytes.begin(), length, exact.get());
  std::vector<std::int32_t> portable(out.size());
  const Int32Run expected = DecodeInt32sPortable({exact.get(), length}, portable);
  const Int32Run run = DecodeMsgpackInt32s({exact.get(), length}, out);
  // They may stop one value apart: the portable one takes pairs. Near the end of the bytes it stops
  // first: it looks further ahead than a value is long.
  constexpr std::size_t kLooksAhead = 13;
  EXPECT_TRUE(run.count <= expected.count + 1 || length - expected.bytes < kLooksAhead);
  EXPECT_LE(expected.count, run.count + 1);
  const std::size_t common = std::min(run.count, expected.count);
  EXPECT_TRUE(std::equal(portable.begin(), portable.begin() + common, out.begin()));
  return run;
}

// What the run says must be what the values are, one by one.
void ExpectTrue(const Bytes& bytes, std::size_t length, const Int32Run& run,
                std::span<const std::int32_t> out) {
  MsgpackReader reader({bytes.data(), length});
  for (std::size_t i = 0; i < run.count; ++i) {
    const auto value = reader.ReadInt64();
    ASSERT_TRUE(value) << value.error().message;
    ASSERT_EQ(*value, out[i]);
  }
  EXPECT_EQ(reader.Offset(), run.bytes);
}

void Put(Bytes& bytes, std::initializer_list<int> more) {
  for (const int byte : more) bytes.push_back(static_cast<std::uint8_t>(byte));
}

Bytes Packed(const std::vector<std::int64_t>& numbers) {
  MsgpackWriter writer;
  for (const std::int64_t number : numbers) writer.WriteInt64(number);
  return {writer.bytes().begin(), writer.bytes().end()};
}

TEST(Int32RunTest, EveryWidthAndSignIsTaken) {
  const std::vector<std::int64_t> numbers = {0,         1,  127, 128, 255,  256,  65'535,  65'536,
                                             INT32_MAX, -1, -32, -33, -128, -129, -32'768, -32'769,
                                             INT32_MIN, 5,  6,   7,   8,    9,    10,      11,
                                             12,        13, 14,  15,  16,   17,   18,      19};
  const Bytes bytes = Packed(numbers);
  std::vector<std::int32_t> out(numbers.size());
  const Int32Run run = Decode(bytes, bytes.size(), out);
  EXPECT_GE(run.count, 17u);
  ExpectTrue(bytes, bytes.size(), run, out);
}

TEST(Int32RunTest, WidthsThatAreNotMinimalAreTaken) {
  Bytes bytes;
  Put(bytes, {0xcc, 1, 0xcd, 0, 2, 0xce, 0, 0, 0, 3, 0xd0, 4, 0xd1, 0, 5, 0xd2, 0, 0, 0, 6});
  bytes.resize(bytes.size() + 16);
  std::vector<std::int32_t> out(6);
  ASSERT_EQ(Decode(bytes, bytes.size(), out).count, 6u);
  EXPECT_EQ(out, (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Int32RunTest, StopsBeforeWhatIsNoSuchInteger) {
  const std::vector<Bytes> others = {
      {0xce, 0x80, 0, 0, 0},              // 2^31
      {0xce, 0xff, 0xff, 0xff, 0xff},     // 2^32 - 1
      {0xcf, 0, 0, 0, 0, 0, 0, 0, 1},     // 64 bits wide
      {0xd3, 0xff, 0, 0, 0, 0, 0, 0, 1},  // 64 bits wide, negative
      {0xca, 0, 0, 0, 0},                 // float
      {0xcb, 0, 0, 0, 0, 0, 0, 0, 0},     // double
      {0xc0},
      {0xc1},
      {0xc2},
      {0xc3},  // nil, reserved, bool
      {0xa1, 'x'},
      {0xd9, 1, 'x'},  // text
      {0xc4, 1, 'x'},
      {0xd4, 1, 2},  // bytes, ext
      {0x90},
      {0x91, 1},
      {0x80},
      {0xdc, 0, 0},
      {0xdd, 0xff, 0xff, 0xff, 0xff},
  };
  for (const Bytes& other : others) {
    for (std::size_t before = 0; before < 6; ++before) {
      Bytes bytes = Packed(std::vector<std::int64_t>(before, 70'000));
      const std::size_t at = bytes.size();
      bytes.insert(bytes.end(), other.begin(), other.end());
      bytes.resize(bytes.size() + 32, 1);
      std::vector<std::int32_t> out(64);
      const Int32Run run = Decode(bytes, bytes.size(), out);
      EXPECT_LE(run.bytes, at) << std::hex << int{other[0]};
      EXPECT_LE(run.count, before);
      EXPECT_GE(run.count + 1, before);
      ExpectTrue(bytes, bytes.size(), run, out);
    }
  }
}

TEST(Int32RunTest, CutAnywhereItReadsNothingBeyondTheEnd) {
  const Bytes bytes = Packed({1, 200, 70'000, -5, 300, -70'000, 2, 131'071, 65'536, 9});
  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    std::vector<std::int32_t> out(16);
    const Int32Run run = Decode(bytes, length, out);
    EXPECT_LE(run.bytes, length);
    ExpectTrue(bytes, length, run, out);
  }
}

TEST(Int32RunTest, LongRunsOfEveryMixtureOfWidthsAreWhole) {
  for (const std::int64_t small : {5, 200, 3'000, 100'000}) {
    for (const std::int64_t large : {5, 200, 3'000, 100'000, 2'000'000'000}) {
      for (const std::size_t every : {1, 2, 3, 5, 12, 13}) {
        std::vector<std::int64_t> numbers;
        for (std::size_t i = 0; i < 1'000; ++i) {
          numbers.push_back((i % every == 0 ? large : small) + static_cast<std::int64_t>(i % 7));
        }
        const Bytes bytes = Packed(numbers);
        std::vector<std::int32_t> out(numbers.size());
        const Int32Run run = Decode(bytes, bytes.size(), out);
        EXPECT_GE(run.count, numbers.size() - 14);
        ExpectTrue(bytes, bytes.size(), run, out);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Int32RunTest, FillsNoMoreThanItsRoom) {
  for (const std::int64_t number : {3, 200, 3'000, 100'000}) {
    const Bytes bytes = Packed(std::vector<std::int64_t>(200, number));
    for (std::size_t room = 0; room < 150; ++room) {
      const std::unique_ptr<std::int32_t[]> exact(new std::int32_t[room]);
      const Int32Run run = Decode(bytes, bytes.size(), {exact.get(), room});
      EXPECT_LE(run.count, room);
      EXPECT_GE(run.count + 1, room);  // pairs
    }
  }
}

TEST(Int32RunTest, OneOddValueAnywhereInALongRunIsWhereItStops) {
  const std::vector<Bytes> others = {{0xce, 0x80, 0, 0, 0},
                                     {0xc0},
                                     {0xcf, 1, 1, 1, 1, 1, 1, 1, 1},
                                     {0x80},
                                     {0xcb},
                                     {0xdf},
                                     {0xcf}};
  for (const std::int64_t number : {3, 200, 3'000, 100'000}) {
    for (const Bytes& other : others) {
      for (std::size_t before = 0; before < 140; ++before) {
        Bytes bytes = Packed(std::vector<std::int64_t>(before, number));
        const std::size_t at = bytes.size();
        bytes.insert(bytes.end(), other.begin(), other.end());
        const Bytes after = Packed(std::vector<std::int64_t>(140, number));
        bytes.insert(bytes.end(), after.begin(), after.end());
        std::vector<std::int32_t> out(400);
        const Int32Run run = Decode(bytes, bytes.size(), out);
        EXPECT_LE(run.bytes, at);
        EXPECT_GE(run.count + 1, before);
        ExpectTrue(bytes, bytes.size(), run, out);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Int32RunTest, NegativeNumbersInALongRunAreTaken) {
  for (const std::int64_t negative : {-1, -32, -33, -129, -70'000}) {
    for (std::size_t at = 0; at < 150; ++at) {
      std::vector<std::int64_t> numbers(160, 50'000);
      numbers[at] = negative;
      const Bytes bytes = Packed(numbers);
      std::vector<std::int32_t> out(numbers.size());
      const Int32Run run = Decode(bytes, bytes.size(), out);
      EXPECT_GE(run.count + 6, numbers.size());
      ExpectTrue(bytes, bytes.size(), run, out);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Int32RunTest, AgreesWithTheReaderOnRandomBytes) {
  const char* given = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20261130;
  std::cout << "CONDUCTOR_SEED=" << seed << '\n';
  std::mt19937_64 random(seed);
  for (int round = 0; round < 6'000; ++round) {
    std::vector<std::int64_t> numbers;
    const auto bits_max = 1 + random() % 34;
    const auto negative_one_in = round % 3 == 0 ? 4 : 1'000;
    for (int i = 0; i < 90; ++i) {
      const auto bits = static_cast<int>(random() % bits_max);
      const auto number = static_cast<std::int64_t>(random() & ((std::uint64_t{1} << bits) - 1));
      numbers.push_back(random() % negative_one_in == 0 ? -number : number);
    }
    Bytes bytes = Packed(numbers);
    if (round % 2 == 1) bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    std::vector<std::int32_t> out(100);
    const Int32Run run = Decode(bytes, bytes.size(), out);
    ExpectTrue(bytes, bytes.size(), run, out);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace conductor::http
