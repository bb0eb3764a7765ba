// The decision table of src/service/recover.h: every combination of what can be wrong with two
// snapshots and with the log's beginning, and what is made of it.
#include "src/service/recover.h"

#include <gtest/gtest.h>

#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "src/hex.h"
#include "src/memory_event_log.h"
#include "src/state/image_cut.h"
#include "tests/model/memory_snapshots.h"
#include "tests/src/service/service_fixture.h"

namespace conductor {
namespace {

constexpr Seq kOlder = 4, kBetween = 6, kNewer = 8, kLast = 12;

enum class Image { kNone, kGood, kDamaged, kSeenDamaged, kNewFormat, kUnreadable };
// Where the log begins: at 1, right after the older snapshot, after the newer one, or after a hole
// behind that.
enum class Begins { kAtOne, kAfterOlder, kAfterNewer, kAfterHole };
// Where it ends: behind both snapshots, or between them, because it lost records.
enum class Ends { kBehindBoth, kBetween };

constexpr Image kImages[] = {Image::kNone,        Image::kGood,      Image::kDamaged,
                             Image::kSeenDamaged, Image::kNewFormat, Image::kUnreadable};

// Where a log begins and ends.
struct Log {
  Begins begins = Begins::kAtOne;
  Ends ends = Ends::kBehindBoth;
};
// All that are possible: one that ends between the snapshots begins before the newer one.
constexpr Log kLogs[] = {
    {Begins::kAtOne, Ends::kBehindBoth},      {Begins::kAfterOlder, Ends::kBehindBoth},
    {Begins::kAfterNewer, Ends::kBehindBoth}, {Begins::kAfterHole, Ends::kBehindBoth},
    {Begins::kAtOne, Ends::kBetween},         {Begins::kAfterOlder, Ends::kBetween}};

struct Case {
  Image older, newer;
  Log log;
};

std::string Text(const Case& found) {
  return "older " + std::to_string(static_cast<int>(found.older)) + " newer " +
         std::to_string(static_cast<int>(found.newer)) + " begins " +
         std::to_string(static_cast<int>(found.log.begins)) + " ends " +
         std::to_string(static_cast<int>(found.log.ends));
}

Seq FirstOf(Begins begins) {
  switch (begins) {
    case Begins::kAtOne:
      return 1;
    case Begins::kAfterOlder:
      return kOlder + 1;
    case Begins::kAfterNewer:
      return kNewer + 1;
    case Begins::kAfterHole:
      break;
  }
  return kNewer + 2;
}

Seq LastOf(Ends ends) {
  return ends == Ends::kBetween ? kBetween : kLast;
}

// A log of a registration and frames, and two snapshots of it.
class World {
 public:
  explicit World(const Case& found) {
    for (Seq seq = 1; seq <= kLast; ++seq) {
      const Record record = RecordOf(seq);
      if (seq <= LastOf(found.log.ends)) {
        EXPECT_TRUE(log.Append(std::span(&record, 1), Durability::kSynced));
      }
      state_.Apply(record);
      digests.push_back(Hex128(state_.Digest()));
      if (seq == kOlder) Snapshot(seq, found.older);
      if (seq == kNewer) Snapshot(seq, found.newer);
    }
    EXPECT_TRUE(log.DropBelow(FirstOf(found.log.begins)));
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

// What is asked about one snapshot, or (last) about what they have left to be said.
struct Look {
  Seq seq = 0;  // 0: there is no further snapshot
  Image image = Image::kNone;
  Seq first = 1, last = 0;  // of the log
  bool unreadable = false;  // one that was looked at before

  bool Beyond() const { return seq > last; }
  bool Reaches() const { return seq + 1 >= first; }
};

enum class Outcome { kDamaged, kHole, kUnreadable, kRefused, kTaken, kLogAlone, kReason, kLoss };

// The table of the header, row by row and in its order.
struct TableRow {
  const char* name;
  bool (*matches)(const Look& look);
  Outcome outcome;
};

bool IsSnapshot(const Look& look) {
  return look.seq != 0 && look.image != Image::kNone;
}
bool MayBeUsed(const Look& look) {
  return IsSnapshot(look) && !look.Beyond() && look.Reaches() && look.image != Image::kSeenDamaged;
}
bool IsEnd(const Look& look) {
  return look.seq == 0;
}

constexpr TableRow kTable[] = {
    {"beyond the log", [](const Look& look) { return IsSnapshot(look) && look.Beyond(); },
     Outcome::kDamaged},
    {"damaged, as its ends show",
     [](const Look& look) {
       return IsSnapshot(look) && !look.Beyond() && look.image == Image::kSeenDamaged;
     },
     Outcome::kDamaged},
    {"ends before the log begins",
     [](const Look& look) {
       return IsSnapshot(look) && !look.Beyond() && look.image != Image::kSeenDamaged &&
              !look.Reaches();
     },
     Outcome::kHole},
    {"newer format",
     [](const Look& look) { return MayBeUsed(look) && look.image == Image::kNewFormat; },
     Outcome::kRefused},
    {"unreadable now",
     [](const Look& look) { return MayBeUsed(look) && look.image == Image::kUnreadable; },
     Outcome::kUnreadable},
    {"damaged, as reading shows",
     [](const Look& look) { return MayBeUsed(look) && look.image == Image::kDamaged; },
     Outcome::kDamaged},
    {"good", [](const Look& look) { return MayBeUsed(look) && look.image == Image::kGood; },
     Outcome::kTaken},
    {"none left, log from 1", [](const Look& look) { return IsEnd(look) && look.first == 1; },
     Outcome::kLogAlone},
    {"none left, one was unreadable",
     [](const Look& look) { return IsEnd(look) && look.first > 1 && look.unreadable; },
     Outcome::kReason},
    {"none left",
     [](const Look& look) { return IsEnd(look) && look.first > 1 && !look.unreadable; },
     Outcome::kLoss},
};
constexpr std::size_t kTableRows = std::size(kTable);

struct Expected {
  ErrorCode error = ErrorCode::kOk;
  Seq snapshot = 0;
  std::vector<Seq> damaged;
  std::size_t unreadable = 0;
};

// The row that matches; there is exactly one.
const TableRow* RowOf(const Look& look, std::array<int, kTableRows>& used) {
  const TableRow* found = nullptr;
  for (std::size_t row = 0; row < kTableRows; ++row) {
    if (!kTable[row].matches(look)) continue;
    EXPECT_EQ(found, nullptr) << kTable[row].name << " and " << found->name;
    found = &kTable[row];
    ++used[row];
  }
  EXPECT_NE(found, nullptr);
  return found;
}

// What the table says: the snapshots from the newest on, until one row decides.
Expected ExpectedOf(const Case& found, std::array<int, kTableRows>& used) {
  Expected expected;
  Look look;
  look.first = FirstOf(found.log.begins);
  look.last = LastOf(found.log.ends);
  const std::pair<Seq, Image> looks[] = {
      {kNewer, found.newer}, {kOlder, found.older}, {0, Image::kNone}};
  for (const auto& [seq, image] : looks) {
    if (seq != 0 && image == Image::kNone) continue;
    look.seq = seq;
    look.image = image;
    look.unreadable = expected.unreadable > 0;
    const TableRow* row = RowOf(look, used);
    if (row == nullptr) return expected;
    switch (row->outcome) {
      case Outcome::kDamaged:
        expected.damaged.push_back(seq);
        break;
      case Outcome::kUnreadable:
        ++expected.unreadable;
        break;
      case Outcome::kHole:
      case Outcome::kLogAlone:
        break;
      case Outcome::kTaken:
        expected.snapshot = seq;
        return expected;
      case Outcome::kRefused:
        expected.error = ErrorCode::kFailedPrecondition;
        return expected;
      case Outcome::kReason:
        expected.error = ErrorCode::kUnavailable;
        break;
      case Outcome::kLoss:
        expected.error = ErrorCode::kDataLoss;
        break;
    }
  }
  return expected;
}

void ExpectOutcome(const Case& found, const Expected& expected) {
  const World world(found);
  const auto recovered = RecoverState(world.log, world.snapshots, {});
  if (expected.error != ErrorCode::kOk) {
    ASSERT_FALSE(recovered);
    EXPECT_EQ(recovered.error().code, expected.error) << recovered.error().message;
    return;
  }
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->snapshot_seq, expected.snapshot);
  EXPECT_EQ(recovered->damaged, expected.damaged);
  EXPECT_EQ(recovered->warnings.size(), expected.damaged.size() + expected.unreadable);
  EXPECT_EQ(recovered->seq, LastOf(found.log.ends));
  EXPECT_EQ(Hex128(recovered->state->Digest()), world.digests[recovered->seq - 1]);
}

// Every combination meets exactly one row at each look, every row is met, and what comes out is
// what the rows say.
TEST(RecoverTest, EveryRowOfTheTable) {
  int cases = 0;
  std::array<int, kTableRows> used{};
  for (const Image older : kImages) {
    for (const Image newer : kImages) {
      for (const Log& log : kLogs) {
        const Case found{older, newer, log};
        SCOPED_TRACE(Text(found));
        ++cases;
        ExpectOutcome(found, ExpectedOf(found, used));
      }
    }
  }
  EXPECT_EQ(cases, 216);
  for (std::size_t row = 0; row < kTableRows; ++row) EXPECT_GT(used[row], 0) << kTable[row].name;
}

TEST(RecoverTest, TheErrorNamesTheHoleAndEveryDamagedSnapshot) {
  const World hole({Image::kGood, Image::kGood, {Begins::kAfterHole}});
  const auto missing = RecoverState(hole.log, hole.snapshots, {});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("records 9 to 9 are missing"), std::string::npos)
      << missing.error().message;

  const World damaged({Image::kDamaged, Image::kSeenDamaged, {Begins::kAfterOlder}});
  const auto lost = RecoverState(damaged.log, damaged.snapshots, {});
  ASSERT_FALSE(lost);
  for (const char* part : {"memory/4", "memory/8", "checksum 1, expected 2", "last frame"}) {
    EXPECT_NE(lost.error().message.find(part), std::string::npos) << lost.error().message;
  }
}

TEST(RecoverTest, UpToAnyPositionTheDigestIsTheOneOfThatMoment) {
  const World world({Image::kGood, Image::kGood, {}});
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
  World world({Image::kGood, Image::kGood, {}});
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
  const World world({Image::kNone, Image::kNone, {}});
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
