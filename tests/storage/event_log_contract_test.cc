// What every EventLog must do (src/ports.h). Runs the real log and the honest fake.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/ports.h"
#include "tests/storage/log_under_test.h"
#include "tests/storage/record_text.h"

namespace conductor::storage {
namespace {

// A record that says which one it is.
Record Numbered(std::uint64_t number) {
  return {{Lost{1, number, number}}};
}

std::vector<Record> Range(std::uint64_t from, std::uint64_t to) {
  std::vector<Record> records;
  for (std::uint64_t number = from; number <= to; ++number) records.push_back(Numbered(number));
  return records;
}

struct Kind {
  const char* name;
  std::unique_ptr<LogUnderTest> (*make)();
};

class EventLogContractTest : public ::testing::TestWithParam<Kind> {
 protected:
  EventLog& log() { return under_test_->log(); }
  void Append(std::uint64_t from, std::uint64_t to, Durability durability) {
    const auto last = log().Append(Range(from, to), durability);
    ASSERT_TRUE(last) << last.error().message;
    EXPECT_EQ(*last, to);
  }
  void ExpectRecords(std::uint64_t last) {
    EXPECT_EQ(log().LastSeq(), last);
    EXPECT_EQ(LogTexts(log()), RecordTexts(Range(1, last)));
  }

  const std::unique_ptr<LogUnderTest> under_test_ = GetParam().make();
};

TEST_P(EventLogContractTest, NewLogIsEmpty) {
  EXPECT_EQ(log().FirstSeq(), 1u);
  EXPECT_EQ(log().LastSeq(), 0u);
  EXPECT_TRUE(LogTexts(log()).empty());
}

TEST_P(EventLogContractTest, PositionsBeginAtOneAndHaveNoHoles) {
  Append(1, 1, Durability::kBuffered);
  Append(2, 5, Durability::kBuffered);
  Append(6, 6, Durability::kSynced);
  EXPECT_EQ(log().FirstSeq(), 1u);
  ExpectRecords(6);
}

TEST_P(EventLogContractTest, AppendOfNothingChangesNothing) {
  Append(1, 3, Durability::kBuffered);
  const auto last = log().Append({}, Durability::kSynced);
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(*last, 3u);
  ExpectRecords(3);
}

TEST_P(EventLogContractTest, ReadVisitsTheRangeInOrder) {
  Append(1, 9, Durability::kBuffered);
  std::vector<Seq> visited;
  ASSERT_TRUE(log().Read(3, 6, [&](Seq seq, const Record& record) -> Status {
    EXPECT_EQ(RecordText(record), RecordText(Numbered(seq)));
    visited.push_back(seq);
    return {};
  }));
  EXPECT_EQ(visited, (std::vector<Seq>{3, 4, 5, 6}));
}

TEST_P(EventLogContractTest, ReadEndsAtTheEndOfTheLog) {
  Append(1, 3, Durability::kBuffered);
  std::vector<Seq> visited;
  ASSERT_TRUE(log().Read(3, ~Seq{0}, [&](Seq seq, const Record&) -> Status {
    visited.push_back(seq);
    return {};
  }));
  EXPECT_EQ(visited, std::vector<Seq>{3});
}

TEST_P(EventLogContractTest, ReadBelowTheBeginningIsAnError) {
  Append(1, 3, Durability::kBuffered);
  const Status read = log().Read(0, 3, [](Seq, const Record&) -> Status { return {}; });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kOutOfRange);
}

TEST_P(EventLogContractTest, VisitorErrorEndsTheReadAndIsReturned) {
  Append(1, 5, Durability::kBuffered);
  int visits = 0;
  const Status read = log().Read(1, 5, [&](Seq seq, const Record&) -> Status {
    ++visits;
    if (seq == 2) return MakeError(ErrorCode::kAborted, "enough");
    return {};
  });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kAborted);
  EXPECT_EQ(read.error().message, "enough");
  EXPECT_EQ(visits, 2);
}

TEST_P(EventLogContractTest, BufferedRecordsSurviveAKill) {
  Append(1, 7, Durability::kBuffered);
  under_test_->KillAndRestart();
  ExpectRecords(7);
}

TEST_P(EventLogContractTest, SyncedRecordsSurviveAPowerCut) {
  Append(1, 3, Durability::kBuffered);
  Append(4, 5, Durability::kSynced);
  under_test_->CutPowerAndRestart();
  ExpectRecords(5);
}

TEST_P(EventLogContractTest, SyncCoversWhatWasAppendedBefore) {
  Append(1, 6, Durability::kBuffered);
  ASSERT_TRUE(log().Sync());
  Append(7, 9, Durability::kBuffered);
  under_test_->CutPowerAndRestart();
  ExpectRecords(6);
}

TEST_P(EventLogContractTest, AppendAfterAPowerCutGoesOnAtTheEnd) {
  Append(1, 2, Durability::kSynced);
  Append(3, 9, Durability::kBuffered);
  under_test_->CutPowerAndRestart();
  Append(3, 4, Durability::kSynced);
  under_test_->CutPowerAndRestart();
  ExpectRecords(4);
}

TEST_P(EventLogContractTest, FailedAppendEndsTheHandle) {
  Append(1, 3, Durability::kSynced);
  under_test_->FailNextAppend();
  ASSERT_FALSE(log().Append(Range(4, 5), Durability::kBuffered));
  under_test_->Heal();
  const auto append = log().Append(Range(4, 5), Durability::kBuffered);
  ASSERT_FALSE(append);
  EXPECT_EQ(append.error().code, ErrorCode::kUnavailable);
  const Status sync = log().Sync();
  ASSERT_FALSE(sync);
  EXPECT_EQ(sync.error().code, ErrorCode::kUnavailable);
  ExpectRecords(3);
}

TEST_P(EventLogContractTest, ReopenAfterAFailedAppendGoesOn) {
  Append(1, 3, Durability::kSynced);
  under_test_->FailNextAppend();
  ASSERT_FALSE(log().Append(Range(4, 5), Durability::kBuffered));
  under_test_->Heal();
  const auto last = log().Reopen();
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(*last, 3u);
  Append(4, 8, Durability::kSynced);
  ExpectRecords(8);
}

TEST_P(EventLogContractTest, FailedSyncEndsTheHandleAndReopenGoesOn) {
  Append(1, 3, Durability::kBuffered);
  under_test_->FailNextSync();
  ASSERT_FALSE(log().Sync());
  under_test_->Heal();
  ASSERT_FALSE(log().Append(Range(4, 4), Durability::kBuffered));
  const auto last = log().Reopen();
  ASSERT_TRUE(last) << last.error().message;
  ASSERT_LE(*last, 3u);
  Append(*last + 1, 6, Durability::kSynced);
  ExpectRecords(6);
}

TEST_P(EventLogContractTest, FailedSyncedAppendIsThereWholeOrNotAtAll) {
  Append(1, 2, Durability::kSynced);
  under_test_->FailNextSync();
  ASSERT_FALSE(log().Append(Range(3, 9), Durability::kSynced));
  under_test_->Heal();
  const auto last = log().Reopen();
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_TRUE(*last == 2 || *last == 9) << *last;
  ExpectRecords(*last);
}

TEST_P(EventLogContractTest, ReopenWithoutAnErrorKeepsEverything) {
  Append(1, 4, Durability::kBuffered);
  const auto last = log().Reopen();
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(*last, 4u);
  ExpectRecords(4);
}

// Whoever starts from it need not sync it first.
TEST_P(EventLogContractTest, WhatAReopenedLogHoldsIsOnDisk) {
  Append(1, 4, Durability::kBuffered);
  const auto last = log().Reopen();
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(*last, 4u);
  const Status dropped = log().DropBelow(5);
  EXPECT_TRUE(dropped) << dropped.error().message;
}

TEST_P(EventLogContractTest, SyncAndReadRunWhileAnotherThreadAppends) {
  constexpr std::uint64_t kRecords = 400;
  std::atomic<bool> done{false};
  std::atomic<int> failures{0};
  std::thread syncer([&] {
    while (!done.load()) {
      if (!log().Sync()) ++failures;
    }
  });
  std::thread reader([&] {
    while (!done.load()) {
      Seq expected = 1;
      const Seq last = log().LastSeq();
      const Status read = log().Read(1, last, [&](Seq seq, const Record&) -> Status {
        if (seq != expected++) ++failures;
        return {};
      });
      if (!read || expected != last + 1) ++failures;
    }
  });
  for (std::uint64_t number = 1; number <= kRecords; ++number) {
    const Record record = Numbered(number);
    if (!log().Append({&record, 1}, Durability::kBuffered)) ++failures;
  }
  done.store(true);
  syncer.join();
  reader.join();
  EXPECT_EQ(failures.load(), 0);
  ExpectRecords(kRecords);
}

TEST_P(EventLogContractTest, DroppedRecordsAreForgotten) {
  Append(1, 9, Durability::kSynced);
  ASSERT_TRUE(log().DropBelow(4));
  EXPECT_EQ(log().FirstSeq(), 4u);
  EXPECT_EQ(LogTexts(log()), RecordTexts(Range(4, 9)));
  const Status read = log().Read(3, 9, [](Seq, const Record&) -> Status { return {}; });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kOutOfRange);
  Append(10, 12, Durability::kSynced);
  under_test_->KillAndRestart();
  EXPECT_EQ(log().FirstSeq(), 4u);
  EXPECT_EQ(LogTexts(log()), RecordTexts(Range(4, 12)));
}

TEST_P(EventLogContractTest, DropIsDurableAtOnce) {
  Append(1, 9, Durability::kSynced);
  ASSERT_TRUE(log().DropBelow(10));
  under_test_->CutPowerAndRestart();
  EXPECT_EQ(log().FirstSeq(), 10u);
  EXPECT_EQ(log().LastSeq(), 9u);
  Append(10, 11, Durability::kSynced);
  under_test_->CutPowerAndRestart();
  EXPECT_EQ(LogTexts(log()), RecordTexts(Range(10, 11)));
}

TEST_P(EventLogContractTest, WhatMayBeLostIsNotDropped) {
  Append(1, 5, Durability::kSynced);
  Append(6, 9, Durability::kBuffered);
  const Status early = log().DropBelow(8);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(log().FirstSeq(), 1u);
  ASSERT_TRUE(log().DropBelow(6));
  EXPECT_EQ(LogTexts(log()), RecordTexts(Range(6, 9)));
}

INSTANTIATE_TEST_SUITE_P(Logs, EventLogContractTest,
                         ::testing::Values(Kind{"Memory", MakeMemoryLogUnderTest},
                                           Kind{"RocksDb", MakeRocksDbLogUnderTest}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace conductor::storage
