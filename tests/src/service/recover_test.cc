// The decision table of src/service/recover.h: every combination of what can be wrong with two
// snapshots and with the log's beginning, and what is made of it.
#include "src/service/recover.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/hex.h"
#include "src/memory_event_log.h"
#include "src/state/image_cut.h"
#include "tests/model/memory_snapshots.h"
#include "tests/src/service/service_fixture.h"

namespace conductor {
namespace {

constexpr Seq kOlder = 4, kNewer = 8, kLast = 12;

enum class Image { kNone, kGood, kDamaged, kSeenDamaged, kNewFormat, kUnreadable };
// Where the log begins: at 1, right after the older snapshot, after the newer one, or after a hole
// behind that.
enum class Begins { kAtOne, kAfterOlder, kAfterNewer, kAfterHole };

constexpr Image kImages[] = {Image::kNone,        Image::kGood,      Image::kDamaged,
                             Image::kSeenDamaged, Image::kNewFormat, Image::kUnreadable};
constexpr Begins kBegins[] = {Begins::kAtOne, Begins::kAfterOlder, Begins::kAfterNewer,
                              Begins::kAfterHole};

struct Row {
  Image older, newer;
  Begins begins;
};

std::string Text(const Row& row) {
  return "older " + std::to_string(static_cast<int>(row.older)) + " newer " +
         std::to_string(static_cast<int>(row.newer)) + " begins " +
         std::to_string(static_cast<int>(row.begins));
}

// A log of a registration and frames, and two snapshots of it.
class World {
 public:
  explicit World(const Row& row) {
    for (Seq seq = 1; seq <= kLast; ++seq) {
      const Record record = RecordOf(seq);
      EXPECT_TRUE(log.Append(std::span(&record, 1), Durability::kSynced));
      state_.Apply(record);
      digests.push_back(Hex128(state_.Digest()));
      if (seq == kOlder) Snapshot(seq, row.older);
      if (seq == kNewer) Snapshot(seq, row.newer);
    }
    const Seq first = row.begins == Begins::kAtOne        ? 1
                      : row.begins == Begins::kAfterOlder ? kOlder + 1
                      : row.begins == Begins::kAfterNewer ? kNewer + 1
                                                          : kNewer + 2;
    EXPECT_TRUE(log.DropBelow(first));
  }

  MemoryEventLog log;
  model::MemorySnapshots snapshots;
  std::vector<std::string> digests;  // after each record

 private:
  static Record RecordOf(Seq seq) {
    Record record;
    if (seq == 1) {
      record.facts.emplace_back(Registered{Static("a"), UnverifiedBlocks::kContent});
      return record;
    }
    Frame frame;
    frame.stream = 1;
    frame.number = seq;
    Stored stored;
    stored.block_length = kTestBlockSize;
    stored.blocks = {{Name(100 + seq), 7 * seq, HashCheck::kEqual}};
    frame.events.emplace_back(std::move(stored));
    record.facts.emplace_back(std::move(frame));
    return record;
  }

  void Snapshot(Seq seq, Image image) {
    if (image == Image::kNone) return;
    const auto encoder = snapshots.NewEncoder();
    ImageCut cut(state_, seq, *encoder);
    while (!cut.Step(1)) {
    }
    auto file = snapshots.CreateImage(seq);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->Append(encoder->Take()));
    ASSERT_TRUE((*file)->Finish());
    if (image == Image::kDamaged || image == Image::kSeenDamaged) {
      snapshots.Damage(seq, image == Image::kSeenDamaged);
    }
    if (image == Image::kNewFormat) snapshots.MakeNewer(seq);
    if (image == Image::kUnreadable) snapshots.MakeUnreadable(seq, true);
  }

  StateMachine state_;
};

// The table, as the header has it.
struct Expected {
  ErrorCode error = ErrorCode::kOk;
  Seq snapshot = 0;
  std::vector<Seq> damaged;
  std::size_t unreadable = 0;
};

Expected ExpectedOf(const Row& row) {
  Expected expected;
  const auto reaches = [&](Seq seq) {
    return row.begins == Begins::kAtOne || (row.begins == Begins::kAfterOlder && seq >= kOlder) ||
           (row.begins == Begins::kAfterNewer && seq >= kNewer);
  };
  for (const auto& [seq, image] : {std::pair(kNewer, row.newer), std::pair(kOlder, row.older)}) {
    if (image == Image::kSeenDamaged) expected.damaged.push_back(seq);
    if (image == Image::kNone || image == Image::kSeenDamaged || !reaches(seq)) continue;
    if (image == Image::kNewFormat) {
      expected.error = ErrorCode::kFailedPrecondition;
      return expected;
    }
    if (image == Image::kGood) {
      expected.snapshot = seq;
      return expected;
    }
    if (image == Image::kUnreadable) {
      ++expected.unreadable;
      continue;
    }
    expected.damaged.push_back(seq);
  }
  if (row.begins == Begins::kAtOne) return expected;
  expected.error = expected.unreadable > 0 ? ErrorCode::kUnavailable : ErrorCode::kDataLoss;
  return expected;
}

TEST(RecoverTest, EveryRowOfTheTable) {
  int rows = 0;
  for (const Image older : kImages) {
    for (const Image newer : kImages) {
      for (const Begins begins : kBegins) {
        const Row row{older, newer, begins};
        SCOPED_TRACE(Text(row));
        ++rows;
        const World world(row);
        const Expected expected = ExpectedOf(row);
        const auto recovered = RecoverState(world.log, world.snapshots, {});
        if (expected.error != ErrorCode::kOk) {
          ASSERT_FALSE(recovered);
          EXPECT_EQ(recovered.error().code, expected.error) << recovered.error().message;
          continue;
        }
        ASSERT_TRUE(recovered) << recovered.error().message;
        EXPECT_EQ(recovered->snapshot_seq, expected.snapshot);
        EXPECT_EQ(recovered->damaged, expected.damaged);
        EXPECT_EQ(recovered->warnings.size(), expected.damaged.size() + expected.unreadable);
        EXPECT_EQ(recovered->seq, kLast);
        EXPECT_EQ(Hex128(recovered->state->Digest()), world.digests.back());
      }
    }
  }
  EXPECT_EQ(rows, 144);
}

TEST(RecoverTest, TheErrorNamesTheHoleAndEveryDamagedSnapshot) {
  const World hole({Image::kGood, Image::kGood, Begins::kAfterHole});
  const auto missing = RecoverState(hole.log, hole.snapshots, {});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("records 9 to 9 are missing"), std::string::npos)
      << missing.error().message;

  const World damaged({Image::kDamaged, Image::kSeenDamaged, Begins::kAfterOlder});
  const auto lost = RecoverState(damaged.log, damaged.snapshots, {});
  ASSERT_FALSE(lost);
  for (const char* part : {"memory/4", "memory/8", "checksum 1, expected 2", "last frame"}) {
    EXPECT_NE(lost.error().message.find(part), std::string::npos) << lost.error().message;
  }
}

TEST(RecoverTest, UpToAnyPositionTheDigestIsTheOneOfThatMoment) {
  const World world({Image::kGood, Image::kGood, Begins::kAtOne});
  for (Seq until = 1; until <= kLast; ++until) {
    RecoverOptions options;
    options.until = until;
    const auto recovered = RecoverState(world.log, world.snapshots, options);
    ASSERT_TRUE(recovered) << recovered.error().message;
    EXPECT_EQ(Hex128(recovered->state->Digest()), world.digests[until - 1]) << until;
    EXPECT_EQ(recovered->snapshot_seq, until < kOlder ? 0 : until < kNewer ? kOlder : kNewer);
    EXPECT_TRUE(recovered->warnings.empty());
  }
  RecoverOptions beyond;
  beyond.until = kLast + 1;
  EXPECT_EQ(RecoverState(world.log, world.snapshots, beyond).error().code, ErrorCode::kOutOfRange);
}

// A snapshot counts only when the log is on disk up to it; a log that ends before one lost records.
TEST(RecoverTest, ASnapshotBeyondTheLogIsNotBelieved) {
  World world({Image::kGood, Image::kGood, Begins::kAtOne});
  MemoryEventLog shorter;
  EXPECT_TRUE(world.log.Read(1, 6, [&](Seq, const Record& record) -> Status {
    EXPECT_TRUE(shorter.Append(std::span(&record, 1), Durability::kSynced));
    return {};
  }));
  const auto recovered = RecoverState(shorter, world.snapshots, {});
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->snapshot_seq, kOlder);
  EXPECT_EQ(recovered->damaged, std::vector<Seq>{kNewer});
  EXPECT_EQ(Hex128(recovered->state->Digest()), world.digests[5]);
}

TEST(RecoverTest, WhoeverWatchesMayStopIt) {
  const World world({Image::kNone, Image::kNone, Begins::kAtOne});
  MemoryEventLog longer;
  EXPECT_TRUE(world.log.Read(1, kLast, [&](Seq, const Record& record) -> Status {
    EXPECT_TRUE(longer.Append(std::span(&record, 1), Durability::kSynced));
    return {};
  }));
  while (longer.LastSeq() < 200) {
    const Record empty;
    ASSERT_TRUE(longer.Append(std::span(&empty, 1), Durability::kSynced));
  }
  RecoverOptions options;
  Seq seen = 0;
  options.progress = [&](const RecoverProgress& progress) -> Status {
    seen = progress.seq;
    EXPECT_EQ(progress.last, 200u);
    return MakeError(ErrorCode::kAborted, "enough");
  };
  const auto recovered = RecoverState(longer, world.snapshots, options);
  ASSERT_FALSE(recovered);
  EXPECT_EQ(recovered.error().code, ErrorCode::kAborted);
  EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace conductor
