#include "tests/storage/test_image.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/limits.h"
#include "storage/snapshot_encoder.h"
#include "tests/storage/image_text.h"
#include "tests/storage/random_record.h"

namespace conductor::storage {
namespace {

Status PlayBlocks(const TestImage& image, ImageVisitor& visitor) {
  for (const auto& [id, holders] : image.sets) {
    CONDUCTOR_RETURN_IF_ERROR(visitor.OnSet({id, holders}));
  }
  for (const TestRun& run : image.runs) {
    ImageRun piece = run.piece;
    piece.parent = run.parent.View();
    piece.fingerprints = run.fingerprints;
    piece.names = run.names;
    piece.sets = run.sets;
    piece.digest = run.digest ? &*run.digest : nullptr;
    CONDUCTOR_RETURN_IF_ERROR(visitor.OnRun(piece));
  }
  for (const TestEntry& entry : image.entries) {
    ImageEntry piece = entry.piece;
    piece.name = entry.name.View();
    if (entry.parent) piece.parent = entry.parent->View();
    piece.digest = entry.digest ? &*entry.digest : nullptr;
    CONDUCTOR_RETURN_IF_ERROR(visitor.OnEntry(piece));
  }
  for (const TestImage::Copies& copies : image.copies) {
    CONDUCTOR_RETURN_IF_ERROR(visitor.OnCopies({copies.holder, copies.name.View(), copies.copies}));
  }
  for (const TestImage::Parts& parts : image.parts) {
    CONDUCTOR_RETURN_IF_ERROR(visitor.OnParts({parts.holder, parts.name, parts.parts}));
  }
  return {};
}

}  // namespace

Status TestImage::Play(ImageVisitor& visitor) const {
  CONDUCTOR_RETURN_IF_ERROR(visitor.OnStart(start));
  for (const ImageContext& piece : contexts) {
    CONDUCTOR_RETURN_IF_ERROR(visitor.OnContext(piece));
  }
  for (const ImagePool& piece : pools) CONDUCTOR_RETURN_IF_ERROR(visitor.OnPool(piece));
  for (const auto& [stream, registration] : registrations) {
    CONDUCTOR_RETURN_IF_ERROR(visitor.OnRegistration({stream, &registration}));
  }
  for (const ImageHolder& piece : holders) CONDUCTOR_RETURN_IF_ERROR(visitor.OnHolder(piece));
  CONDUCTOR_RETURN_IF_ERROR(PlayBlocks(*this, visitor));
  for (const StreamFacts& piece : streams) CONDUCTOR_RETURN_IF_ERROR(visitor.OnStream(piece));
  return visitor.OnEnd(end);
}

TestImage SmallImage(Seq seq) {
  TestImage image;
  image.start = {seq, 4};
  HashProfile profile;
  profile.root_digest[0] = 7;
  image.contexts = {{1, {"default", "m", "", 16}, profile, true},
                    {2, {"default", "m", "adapter", 16}, std::nullopt, false}};
  image.pools = {{1, "backend", "default"}};
  for (StreamId stream = 1; stream <= 3; ++stream) {
    Registration registration;
    registration.instance_id = "instance-" + std::to_string(stream);
    registration.endpoint = "tcp://h:1";
    registration.type = stream == 3 ? PublisherType::kMooncake : PublisherType::kVllm;
    image.registrations.emplace_back(stream, registration);
    StreamFacts facts;
    facts.id = stream;
    facts.contexts = {1};
    facts.cursor = 40 + stream;
    facts.recent = {{41, 5}, {42, 6}};
    facts.lost = {{3, 4}};
    facts.frames = 9;
    image.streams.push_back(facts);
  }
  image.holders = {{1, {1, 1, Tier::kDevice, false, 0}, 11, 3},
                   {2, {2, 1, Tier::kCpuLocal, false, 0}, 12, 4},
                   {3, {3, 1, Tier::kCpuShare, false, 1}, 13, 1}};
  image.sets = {{1, {1}}, {2, {1, 2}}, {3, {3}}};
  TestRun run;
  run.piece.context = 1;
  run.parent = {kRootScope, 0, ""};
  run.fingerprints = {101, 102, 103, 104};
  run.names = {201, 202, 203, 204};
  run.sets = {2, 2, 0, 1};
  run.piece.digest_slot = 1;
  run.digest = Digest{9};
  image.runs.push_back(run);
  TestEntry entry;
  entry.piece.context = 1;
  entry.piece.fingerprint = 105;
  entry.piece.length = 7;
  entry.piece.check = HashCheck::kDiffers;
  entry.piece.block_class = BlockClass::kOwnContent;
  entry.piece.set = 1;
  entry.name = {1, 301, std::string(32, 'd')};
  entry.parent = TestName{kSharedScope, 204, ""};
  image.entries.push_back(entry);
  image.copies = {{1, {kSharedScope, 201, ""}, 3}};
  image.parts = {{3, 201, {{1, 2}, {1, 3}}}};
  image.end = {Sum128{5} << 64 | 6, 5, 0};
  return image;
}

namespace {

// Draws the values of one image.
class Random {
 public:
  explicit Random(std::uint64_t seed) : random_(seed), records_(seed) {}

  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }
  bool Coin() { return Below(2) == 0; }
  std::uint64_t Any() { return random_() >> Below(64); }
  std::string Text() { return std::string(Below(9), static_cast<char>('a' + Below(26))); }
  template <typename Enum>
  Enum Value(Enum last) {
    return static_cast<Enum>(1 + Below(static_cast<std::uint64_t>(last)));
  }
  Digest RandomDigest() {
    Digest digest;
    for (auto& byte : digest) byte = static_cast<std::uint8_t>(Below(256));
    return digest;
  }
  std::optional<Digest> MaybeDigest() {
    return Coin() ? std::optional(RandomDigest()) : std::nullopt;
  }
  TestName Name(bool may_be_root) {
    if (may_be_root && Below(4) == 0) {
      return {kRootScope, Any(), std::string(Coin() ? 16 : 0, 's')};
    }
    return {static_cast<Scope>(Below(5)), random_(), Coin() ? "" : std::string(9 + Below(56), 'n')};
  }
  Registration NextRegistration() {
    return std::get<Registered>(records_.NextFact(0)).registration;
  }

 private:
  std::mt19937_64 random_;
  RandomRecords records_;
};

StreamFacts RandomStream(Random& random, StreamId id, std::size_t contexts) {
  StreamFacts facts;
  facts.id = id;
  facts.unverified_blocks = random.Value(UnverifiedBlocks::kNameOnly);
  facts.epoch = 1 + random.Any() / 2;
  if (random.Coin()) facts.cursor = random.Any();
  if (random.Coin()) facts.history_from = random.Any();
  if (random.Coin()) facts.counting_group = static_cast<std::int64_t>(random.Any()) - 7;
  facts.verified_ever = random.Coin();
  facts.differs_ever = random.Coin();
  facts.seen_full_size_block = random.Coin();
  for (std::uint64_t i = random.Below(kLostRangesPerStreamMax + 1); i > 0; --i) {
    const std::uint64_t from = random.Any() / 2;
    facts.lost.emplace_back(from, from + random.Any() / 2);
  }
  facts.publisher_epoch = random.Text();
  for (std::uint64_t i = random.Below(20); i > 0; --i) {
    facts.recent.emplace_back(random.Any(), random.Any());
  }
  for (std::uint64_t i = random.Below(contexts + 1); i > 0; --i) {
    facts.contexts.insert(static_cast<ContextId>(1 + random.Below(contexts)));
  }
  facts.last_publisher_time_us = -static_cast<std::int64_t>(random.Any() / 2);
  for (std::uint64_t* counter :
       {&facts.frames, &facts.blocks_stored, &facts.blocks_removed, &facts.remove_unknown,
        &facts.blocks_rejected, &facts.fragments_rejected, &facts.clears, &facts.epoch_changes,
        &facts.numbers_lost, &facts.drops, &facts.evictions, &facts.snapshots}) {
    *counter = random.Any();
  }
  for (int i = 1; i <= kIgnoreReasonCount; ++i) facts.ignored[i] = random.Any();
  return facts;
}

void AddHoldersAndSets(Random& random, TestImage* image) {
  const std::size_t contexts = image->contexts.size();
  for (HolderId id = 1; id <= 3 * contexts; ++id) {
    const auto context = static_cast<ContextId>(1 + (id - 1) % contexts);
    const auto pool = static_cast<PoolId>(random.Below(image->pools.size() + 1));
    const StreamId stream = image->registrations[random.Below(image->registrations.size())].first;
    image->holders.push_back({id * 3,
                              {stream, context, random.Value(Tier::kDisk), random.Coin(), pool},
                              Sum128{random.Any()} << 64 | random.Any(),
                              random.Any()});
  }
  for (std::size_t i = 0; i < 4 * contexts; ++i) {
    std::vector<HolderId> holders;
    for (const ImageHolder& holder : image->holders) {
      if (holder.key.context == 1 + i % contexts && random.Coin()) holders.push_back(holder.id);
    }
    if (holders.empty()) holders.push_back(image->holders[i % contexts].id);
    image->sets.emplace_back(static_cast<StateId>(1 + i * 1000), holders);
  }
}

StateId SetOf(Random& random, const TestImage& image, ContextId context) {
  const std::size_t contexts = image.contexts.size();
  return image.sets[random.Below(4) * contexts + context - 1].first;
}

TestRun RandomRun(Random& random, const TestImage& image) {
  TestRun run;
  run.piece.context = static_cast<ContextId>(1 + random.Below(image.contexts.size()));
  run.piece.check = random.Value(HashCheck::kNotComputed);
  run.piece.extra_keys_on_wire = random.Coin();
  run.parent = random.Name(true);
  const std::size_t size = 1 + random.Below(kRunSlotsMax);
  for (std::size_t i = 0; i < size; ++i) {
    run.fingerprints.push_back(random.Any());
    run.names.push_back(random.Any());
    const bool as_before = i > 0 && random.Below(8) != 0;
    run.sets.push_back(as_before              ? run.sets.back()
                       : random.Below(4) == 0 ? 0
                                              : SetOf(random, image, run.piece.context));
  }
  run.sets.back() = SetOf(random, image, run.piece.context);
  run.digest = random.MaybeDigest();
  if (run.digest) run.piece.digest_slot = static_cast<std::uint32_t>(random.Below(size));
  return run;
}

TestEntry RandomEntry(Random& random, const TestImage& image) {
  TestEntry entry;
  entry.piece.context = static_cast<ContextId>(1 + random.Below(image.contexts.size()));
  entry.piece.fingerprint = random.Any();
  entry.piece.length = static_cast<std::uint32_t>(random.Below(kBlockSizeMax + 1));
  entry.piece.check = random.Value(HashCheck::kNotComputed);
  entry.piece.extra_keys_on_wire = random.Coin();
  entry.piece.block_class = static_cast<BlockClass>(random.Below(6));
  entry.piece.set = SetOf(random, image, entry.piece.context);
  entry.name = random.Name(false);
  if (random.Coin()) entry.parent = random.Name(true);
  entry.digest = random.MaybeDigest();
  return entry;
}

}  // namespace

TestImage RandomImage(Seq seq, std::uint64_t seed) {
  Random random(seed);
  TestImage image;
  const std::size_t contexts = 1 + random.Below(4);
  const StreamId streams = 1 + random.Below(5);
  image.start = {seq, streams * 2 + 1};
  for (ContextId id = 1; id <= contexts; ++id) {
    ImageContext context{
        id,
        {random.Text(), random.Text(), random.Text(), static_cast<std::uint32_t>(random.Below(99))},
        std::nullopt,
        random.Coin()};
    if (random.Coin()) {
      context.profile = HashProfile{random.Value(HashStrategy::kSglangBigram),
                                    random.Value(HashAlgorithm::kSha256Raw), random.Text(),
                                    random.RandomDigest()};
    }
    image.contexts.push_back(context);
  }
  for (PoolId id = 1; id <= random.Below(3); ++id) {
    image.pools.push_back({id, random.Text(), random.Text()});
  }
  for (StreamId stream = 2; stream <= 2 * streams; stream += 2) {
    image.registrations.emplace_back(stream, random.NextRegistration());
    image.streams.push_back(RandomStream(random, stream, contexts));
  }
  AddHoldersAndSets(random, &image);
  for (std::uint64_t i = random.Below(40); i > 0; --i) {
    image.runs.push_back(RandomRun(random, image));
  }
  for (std::uint64_t i = random.Below(40); i > 0; --i) {
    image.entries.push_back(RandomEntry(random, image));
  }
  for (std::uint64_t i = random.Below(9); i > 0; --i) {
    image.copies.push_back({image.holders[random.Below(image.holders.size())].id, random.Name(true),
                            static_cast<std::uint32_t>(2 + random.Below(kCopiesMax - 1))});
    TestImage::Parts parts{image.holders[0].id, random.Any(), {}};
    for (std::uint64_t part = 0; part <= random.Below(5); ++part) {
      parts.parts.push_back({part / 2, part});
    }
    image.parts.push_back(parts);
  }
  image.end = {Sum128{random.Any()} << 64 | random.Any(), random.Any(), random.Any()};
  return image;
}

TestImage LongImage(Seq seq, std::uint64_t blocks) {
  TestImage image = SmallImage(seq);
  image.runs.resize(1);
  image.runs[0].sets = {2, 2, 2, 2};
  for (std::uint64_t block = 0; block < blocks;) {
    TestRun run = image.runs[0];
    run.parent = {kSharedScope, block, ""};
    const std::uint64_t size = std::min<std::uint64_t>(kRunSlotsMax, blocks - block);
    run.sets.assign(size, 2);
    run.fingerprints.clear();
    run.names.clear();
    for (const std::uint64_t end = block + size; block < end; ++block) {
      run.fingerprints.push_back(block * 0x9e3779b97f4a7c15u);
      run.names.push_back(block * 0xd1b54a32d192ed03u);
    }
    image.runs.push_back(std::move(run));
  }
  return image;
}

std::string Encode(const TestImage& image) {
  SnapshotEncoder encoder;
  const Status played = image.Play(encoder);
  EXPECT_TRUE(played) << played.error().message;
  return encoder.Take();
}

std::vector<std::string> TextsOf(const TestImage& image) {
  ImageText text;
  EXPECT_TRUE(image.Play(text));
  return text.lines();
}

}  // namespace conductor::storage
