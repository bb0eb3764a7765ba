// The bytes of a snapshot: what goes in comes out, and nothing else is ever believed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "src/hash/xxh3.h"
#include "storage/snapshot_encoder.h"
#include "storage/snapshot_reader.h"
#include "tests/storage/image_text.h"
#include "tests/storage/memory_source.h"
#include "tests/storage/random_record.h"
#include "tests/storage/test_image.h"

namespace conductor::storage {
namespace {

using ::testing::HasSubstr;
constexpr Seq kSeq = 77;

// The image's lines, or "error CODE: MESSAGE".
std::vector<std::string> Read(const std::string& bytes) {
  ImageText text;
  const Status read = ReadFromMemory(bytes, kSeq, text);
  if (read) return text.lines();
  return {"error " + std::to_string(static_cast<int>(read.error().code)) + ": " +
          read.error().message};
}

Error ReadError(const std::string& bytes) {
  NullVisitor checks;
  const Status read = ReadFromMemory(bytes, kSeq, checks);
  EXPECT_FALSE(read);
  return read ? Error{} : read.error();
}

// Checksums made right again, so that only what lies behind them can refuse.
std::string Resealed(std::string bytes) {
  const auto put = [&bytes](std::size_t at, std::uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
  };
  const auto hash = [&bytes](std::size_t at, std::size_t size, std::uint64_t seed) {
    return Xxh3({reinterpret_cast<const std::uint8_t*>(bytes.data()) + at, size}, seed);
  };
  put(24, hash(0, 24, 0));
  for (std::size_t at = kSnapshotHeaderBytes; at + kFrameHeadBytes < bytes.size();) {
    std::uint32_t payload = 0;
    std::memcpy(&payload, &bytes[at + 4], sizeof payload);
    const std::size_t covered = kFrameHeadBytes + payload;
    if (at + covered + kFrameChecksumBytes > bytes.size()) break;
    put(at + covered, hash(at, covered, kSeq));
    at += covered + kFrameChecksumBytes;
  }
  return bytes;
}

TEST(SnapshotFormatTest, OneOfEverythingComesBack) {
  EXPECT_EQ(Read(Encode(SmallImage(kSeq))), TextsOf(SmallImage(kSeq)));
}

// The worked example of docs/snapshot_format.md.
TestImage ExampleV1() {
  TestImage image;
  image.start = {258, 2};
  image.contexts = {{1, {"default", "m", "", 16}, std::nullopt, false}};
  Registration registration;
  registration.instance_id = "i";
  registration.endpoint = "tcp://h:1";
  registration.model_name = "m";
  registration.block_size = 16;
  image.registrations = {{1, registration}};
  image.holders = {{1, {1, 1, Tier::kDevice, false, 0}, Sum128{2} << 64 | 1, 2}};
  image.sets = {{1, {1}}};
  TestRun run;
  run.piece.context = 1;
  run.parent = {kRootScope, 0, ""};
  run.fingerprints = {0x1122334455667788u, 0x99aabbccddeeff00u};
  run.names = {0x0123456789abcdefu, 0xfedcba9876543210u};
  run.sets = {1, 1};
  image.runs = {run};
  StreamFacts stream;
  stream.id = 1;
  stream.contexts = {1};
  stream.cursor = 7;
  stream.recent = {{7, 0x8877665544332211u}};
  stream.frames = 8;
  stream.blocks_stored = 2;
  image.streams = {stream};
  image.end = {Sum128{4} << 64 | 3, 2, 0};
  return image;
}

TEST(SnapshotFormatTest, GoldenFileOfVersion1IsWrittenAndReadForEver) {
  std::ifstream file(CONDUCTOR_SOURCE_DIR "/tests/golden/snapshot_v1/00000000000000000258.snapshot",
                     std::ios::binary);
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(golden.size(), 763u);
  EXPECT_EQ(Encode(ExampleV1()), golden);
  ImageText text;
  const Status read = ReadFromMemory(golden, 258, text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(text.lines(), TextsOf(ExampleV1()));
}

// The document's bytes in their order; ".." stands for bytes left out.
TEST(SnapshotFormatTest, DocumentShowsTheGoldenFile) {
  std::ifstream file(CONDUCTOR_SOURCE_DIR "/docs/snapshot_format.md");
  std::vector<std::string> stretches(1);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) inside = line == "## Worked example";
    const std::size_t bar = line.find('|');
    if (!inside || !line.starts_with("    ") || bar == std::string::npos) continue;
    std::istringstream words(line.substr(0, bar));
    for (std::string word; words >> word;) {
      if (word == "..") {
        stretches.emplace_back();
      } else {
        stretches.back().push_back(static_cast<char>(std::stoi(word, nullptr, 16)));
      }
    }
  }
  const std::string golden = Encode(ExampleV1());
  EXPECT_TRUE(golden.starts_with(stretches.front()));
  EXPECT_TRUE(golden.ends_with(stretches.back()));
  std::size_t at = 0, shown = 0;
  for (const std::string& stretch : stretches) {
    const std::size_t found = golden.find(stretch, at);
    ASSERT_NE(found, std::string::npos) << "behind offset " << at;
    at = found + stretch.size();
    shown += stretch.size();
  }
  EXPECT_GT(shown, 250u);
}

TEST(SnapshotFormatTest, RandomImagesComeBack) {
  std::uint64_t seed = TestSeed();
  for (int round = 0; round < 300; ++round, ++seed) {
    const TestImage image = RandomImage(kSeq, seed);
    ASSERT_EQ(Read(Encode(image)), TextsOf(image)) << "seed " << seed;
  }
}

TEST(SnapshotFormatTest, FramesStayBoundedWhateverTheImage) {
  const TestImage image = LongImage(kSeq, 1'000'000);
  SnapshotEncoder encoder;
  ASSERT_TRUE(image.Play(encoder));
  const std::string bytes = encoder.Take();
  std::size_t frames = 0;
  for (std::size_t at = kSnapshotHeaderBytes; at < bytes.size(); ++frames) {
    std::uint32_t payload = 0;
    std::memcpy(&payload, &bytes[at + 4], sizeof payload);
    ASSERT_LE(payload, kFrameTargetBytes + 8192);
    at += kFrameHeadBytes + payload + kFrameChecksumBytes;
  }
  EXPECT_GT(frames, 15u);
  EXPECT_EQ(Read(bytes), TextsOf(image));
}

TEST(SnapshotFormatTest, TakenInPiecesItIsTheSameFile) {
  const TestImage image = LongImage(kSeq, 300'000);
  class Taking final : public ImageVisitor {
   public:
    SnapshotEncoder encoder;
    std::string bytes;
    Status Next(Status status) {
      bytes += encoder.Take();
      return status;
    }
    Status OnStart(const ImageStart& piece) override { return Next(encoder.OnStart(piece)); }
    Status OnContext(const ImageContext& piece) override { return Next(encoder.OnContext(piece)); }
    Status OnPool(const ImagePool& piece) override { return Next(encoder.OnPool(piece)); }
    Status OnRegistration(const ImageRegistration& piece) override {
      return Next(encoder.OnRegistration(piece));
    }
    Status OnHolder(const ImageHolder& piece) override { return Next(encoder.OnHolder(piece)); }
    Status OnSet(const ImageSet& piece) override { return Next(encoder.OnSet(piece)); }
    Status OnRun(const ImageRun& piece) override { return Next(encoder.OnRun(piece)); }
    Status OnEntry(const ImageEntry& piece) override { return Next(encoder.OnEntry(piece)); }
    Status OnCopies(const ImageCopies& piece) override { return Next(encoder.OnCopies(piece)); }
    Status OnParts(const ImageParts& piece) override { return Next(encoder.OnParts(piece)); }
    Status OnStream(const StreamFacts& piece) override { return Next(encoder.OnStream(piece)); }
    Status OnEnd(const ImageEnd& piece) override { return Next(encoder.OnEnd(piece)); }
  } taking;
  ASSERT_TRUE(image.Play(taking));
  EXPECT_EQ(taking.encoder.size(), 0u);
  EXPECT_EQ(taking.bytes, Encode(image));
}

TEST(SnapshotFormatTest, ListsLongerThanAPieceGoOnInTheNext) {
  TestImage image = SmallImage(kSeq);
  const auto count = static_cast<std::uint32_t>(2 * kIdsPerPieceMax + 1);
  std::vector<HolderId> holders;
  for (std::uint32_t i = 0; i < count; ++i) {
    image.contexts.push_back({10 + i, {"t", "m", std::to_string(i), 16}, std::nullopt, false});
    image.streams[1].contexts.insert(10 + i);
    image.holders.push_back({10 + i, {1, 2, Tier::kDevice, false, 0}, i, i});
    holders.push_back(10 + i);
  }
  image.sets.emplace_back(9, holders);
  EXPECT_EQ(Read(Encode(image)), TextsOf(image));
}

TEST(SnapshotFormatTest, EveryFlippedBitIsRefused) {
  const std::string good = Encode(SmallImage(kSeq));
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const Error error = ReadError(bytes);
    ASSERT_EQ(error.code, ErrorCode::kDataLoss) << "bit " << bit << ": " << error.message;
    ASSERT_THAT(error.message, HasSubstr("snapshot memory: offset ")) << "bit " << bit;
  }
}

TEST(SnapshotFormatTest, EveryCutIsRefused) {
  const std::string good = Encode(SmallImage(kSeq));
  for (std::size_t size = 0; size < good.size(); ++size) {
    ASSERT_EQ(ReadError(good.substr(0, size)).code, ErrorCode::kDataLoss) << size;
  }
}

TEST(SnapshotFormatTest, BytesBehindTheEndAreRefused) {
  const Error error = ReadError(Encode(SmallImage(kSeq)) + "x");
  EXPECT_EQ(error.code, ErrorCode::kDataLoss);
  EXPECT_THAT(error.message, HasSubstr("bytes behind the last frame"));
}

TEST(SnapshotFormatTest, AnotherPositionsFramesAreRefused) {
  std::string bytes = Encode(SmallImage(kSeq));
  bytes.replace(kSnapshotHeaderBytes, std::string::npos,
                Encode(SmallImage(kSeq + 1)).substr(kSnapshotHeaderBytes));
  EXPECT_THAT(ReadError(bytes).message, HasSubstr("checksum "));
  EXPECT_THAT(ReadError(Encode(SmallImage(kSeq + 1))).message,
              HasSubstr("offset 16: position 78, expected 77"));
}

TEST(SnapshotFormatTest, MissingFrameIsRefused) {
  const std::string whole = Encode(LongImage(kSeq, 200'000));
  std::uint32_t payload = 0;
  std::memcpy(&payload, &whole[kSnapshotHeaderBytes + 4], sizeof payload);
  const std::size_t frame = kFrameHeadBytes + payload + kFrameChecksumBytes;
  std::string bytes = whole;
  EXPECT_THAT(ReadError(bytes.erase(kSnapshotHeaderBytes, frame)).message,
              HasSubstr("offset 32: frame 2, expected 1"));
  bytes = whole;
  bytes.insert(kSnapshotHeaderBytes, whole.substr(kSnapshotHeaderBytes, frame));
  EXPECT_THAT(ReadError(bytes).message, HasSubstr(": frame 1, expected 2"));
}

TEST(SnapshotFormatTest, NewerVersionIsRefusedAsNewer) {
  std::string bytes = Encode(SmallImage(kSeq));
  bytes[8] = 2;
  const Error error = ReadError(Resealed(bytes));
  EXPECT_EQ(error.code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(error.message, HasSubstr("snapshot memory: format version 2, this build reads 1"));
}

TEST(SnapshotFormatTest, UnknownKindOfPieceIsRefusedAsNewer) {
  std::string bytes = Encode(SmallImage(kSeq));
  bytes[kSnapshotHeaderBytes + kFrameHeadBytes + 9] = 99;
  const Error error = ReadError(Resealed(bytes));
  EXPECT_EQ(error.code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(error.message, HasSubstr("kind 99 is not known to this build"));
}

TEST(SnapshotFormatTest, EveryChangedByteUnderARightChecksumIsRefusedOrHarmless) {
  const std::string good = Encode(SmallImage(kSeq));
  for (std::size_t at = kSnapshotHeaderBytes; at < good.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      NullVisitor checks;
      const Status read = ReadFromMemory(Resealed(bytes), kSeq, checks);
      if (read) continue;  // a number became another number
      ASSERT_TRUE(read.error().code == ErrorCode::kDataLoss ||
                  read.error().code == ErrorCode::kFailedPrecondition)
          << read.error().message;
    }
  }
}

TEST(SnapshotFormatTest, WhatTheVisitorRefusesIsReturnedAsItIs) {
  class Refusing final : public ImageVisitor {
   public:
    Status No() { return MakeError(ErrorCode::kAborted, "enough"); }
    Status OnStart(const ImageStart&) override { return {}; }
    Status OnContext(const ImageContext&) override { return {}; }
    Status OnPool(const ImagePool&) override { return {}; }
    Status OnRegistration(const ImageRegistration&) override { return {}; }
    Status OnHolder(const ImageHolder&) override { return {}; }
    Status OnSet(const ImageSet&) override { return {}; }
    Status OnRun(const ImageRun&) override { return No(); }
    Status OnEntry(const ImageEntry&) override { return {}; }
    Status OnCopies(const ImageCopies&) override { return {}; }
    Status OnParts(const ImageParts&) override { return {}; }
    Status OnStream(const StreamFacts&) override { return {}; }
    Status OnEnd(const ImageEnd&) override { return {}; }
  } refusing;
  const Status read = ReadFromMemory(Encode(SmallImage(kSeq)), kSeq, refusing);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "enough");
}

}  // namespace
}  // namespace conductor::storage
