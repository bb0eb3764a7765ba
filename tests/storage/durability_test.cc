// Power cuts and failing disks: what was acknowledged as synced is there, once and in order; the
// rest is a prefix, never a gap.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "storage/rocksdb_event_log.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/random_record.h"
#include "tests/storage/record_text.h"
#include "tests/storage/temp_dir.h"

namespace conductor::storage {
namespace {

using ::testing::HasSubstr;

class DurabilityTest : public ::testing::Test {
 protected:
  void Open() {
    auto log = RocksDbEventLog::Open({.data_dir = dir_.data_dir(), .env = env_.get()});
    ASSERT_TRUE(log) << log.error().message;
    log_ = std::move(*log);
  }
  // `appended_` is what Append took; the log is a prefix of it that reaches `synced_`.
  void ExpectAcknowledged() {
    ASSERT_GE(log_->LastSeq(), synced_);
    ASSERT_LE(log_->LastSeq(), appended_.size());
    appended_.resize(log_->LastSeq());
    ASSERT_EQ(LogTexts(*log_), RecordTexts(appended_));
    synced_ = log_->LastSeq();
  }
  bool Append(std::vector<Record> records, Durability durability) {
    const auto last = log_->Append(records, durability);
    appended_.insert(appended_.end(), records.begin(), records.end());
    if (!last) return false;
    EXPECT_EQ(*last, appended_.size());
    if (durability == Durability::kSynced) synced_ = *last;
    return true;
  }
  std::vector<Record> RandomGroup(RandomRecords& random) {
    std::vector<Record> records(1 + random.Below(5));
    for (Record& record : records) record = random.NextRecord();
    return records;
  }

  TempDir dir_;
  const std::shared_ptr<FaultFs> fs_ = std::make_shared<FaultFs>();
  const std::unique_ptr<rocksdb::Env> env_ = MakeFaultEnv(fs_);
  std::unique_ptr<RocksDbEventLog> log_;
  std::vector<Record> appended_;
  Seq synced_ = 0;
};

TEST_F(DurabilityTest, RandomPowerCutsLoseOnlyTheUnsyncedEnd) {
  RandomRecords random(TestSeed());
  Open();
  for (int round = 0; round < 40; ++round) {
    for (std::uint64_t steps = random.Below(12); steps > 0; --steps) {
      switch (random.Below(4)) {
        case 0:
          ASSERT_TRUE(Append(RandomGroup(random), Durability::kSynced));
          break;
        case 1:
          ASSERT_TRUE(log_->Sync());
          synced_ = log_->LastSeq();
          break;
        default:
          ASSERT_TRUE(Append(RandomGroup(random), Durability::kBuffered));
      }
    }
    if (random.Below(8) == 0) {
      const auto checkpoint = log_->CreateCheckpoint();
      ASSERT_TRUE(checkpoint) << "round " << round << ": " << checkpoint.error().message;
    }
    fs_->CutPower();
    log_.reset();
    if (round % 2 == 0) {
      fs_->RestorePower();
    } else {
      fs_->RestorePowerTorn(random.Below(~std::uint64_t{0}));
    }
    ASSERT_NO_FATAL_FAILURE(Open()) << "round " << round;
    ASSERT_NO_FATAL_FAILURE(ExpectAcknowledged()) << "round " << round;
  }
}

TEST_F(DurabilityTest, PowerCutDuringCreationLeavesNothingOrALog) {
  Open();
  fs_->CutPower();
  log_.reset();
  fs_->RestorePower();
  Open();
  EXPECT_EQ(log_->LastSeq(), 0u);
}

TEST_F(DurabilityTest, CreationInterruptedAnywhereIsFinishedByTheNextStart) {
  for (int writes = 0; writes < 40; ++writes) {
    const TempDir dir;
    fs_->FailWrites("", rocksdb::IOStatus::IOError("injected"), writes);
    auto broken = RocksDbEventLog::Open({.data_dir = dir.data_dir(), .env = env_.get()});
    fs_->CutPower();
    const bool finished = broken.has_value();
    if (finished) broken->reset();
    fs_->RestorePower();
    fs_->Heal();
    const auto log = RocksDbEventLog::Open({.data_dir = dir.data_dir(), .env = env_.get()});
    ASSERT_TRUE(log) << "after " << writes << " writes: " << log.error().message;
    EXPECT_EQ((*log)->LastSeq(), 0u);
    if (finished) return;
  }
  FAIL() << "the creation never finished";
}

TEST_F(DurabilityTest, FullDiskIsNamedAndTheLogGoesOnWhenThereIsSpace) {
  RandomRecords random(TestSeed());
  Open();
  ASSERT_TRUE(Append(RandomGroup(random), Durability::kSynced));
  fs_->FailWrites(".log", rocksdb::IOStatus::NoSpace("injected"));
  const auto failed = log_->Append(RandomGroup(random), Durability::kBuffered);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kResourceExhausted) << failed.error().message;
  const auto early = log_->Reopen();
  fs_->Heal();
  const auto last = log_->Reopen();
  ASSERT_TRUE(last) << last.error().message;
  ASSERT_NO_FATAL_FAILURE(ExpectAcknowledged());
  ASSERT_TRUE(Append(RandomGroup(random), Durability::kSynced));
  ASSERT_NO_FATAL_FAILURE(ExpectAcknowledged());
}

TEST_F(DurabilityTest, FailedReopenEndsTheHandleUntilOneSucceeds) {
  RandomRecords random(TestSeed());
  Open();
  ASSERT_TRUE(Append(RandomGroup(random), Durability::kSynced));
  fs_->FailWrites("", rocksdb::IOStatus::IOError("injected"));
  ASSERT_FALSE(log_->Append(RandomGroup(random), Durability::kBuffered));
  ASSERT_FALSE(log_->Reopen());
  ASSERT_FALSE(log_->Append(RandomGroup(random), Durability::kBuffered));
  ASSERT_FALSE(log_->Sync());
  const Status read = log_->Read(1, 1, [](Seq, const Record&) -> Status { return {}; });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnavailable);
  fs_->Heal();
  const auto last = log_->Reopen();
  ASSERT_TRUE(last) << last.error().message;
  ASSERT_NO_FATAL_FAILURE(ExpectAcknowledged());
}

// However long the disk takes, and whatever becomes of the append.
TEST_F(DurabilityTest, AppendsDoNotWaitForASyncThatRuns) {
  const Record record{{Lost{1, 1, 1}}};
  const auto append = [&] { return log_->Append({&record, 1}, Durability::kBuffered); };
  Open();
  for (const bool fails : {false, true}) {
    ASSERT_TRUE(append());
    fs_->HoldSyncs(".log");
    Status synced = MakeError(ErrorCode::kInternal, "did not run");
    std::thread syncer([&] { synced = log_->Sync(); });
    fs_->WaitForHeldSync();
    if (fails) fs_->FailWrites(".log", rocksdb::IOStatus::NoSpace("injected"));
    EXPECT_EQ(append().has_value(), !fails);
    fs_->ReleaseSyncs();
    syncer.join();
    EXPECT_TRUE(synced) << synced.error().message;  // what was there when it began
    EXPECT_EQ(log_->Sync().has_value(), !fails);
  }
  fs_->Heal();
  const auto last = log_->Reopen();
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(*last, 3u);
}

// To the one RocksDB says what the disk said, to the other only that something failed before.
TEST_F(DurabilityTest, AppendBesideAFailingSyncNamesTheSameCause) {
  const Record record{{Lost{1, 1, 1}}};
  const auto append = [&] { return log_->Append({&record, 1}, Durability::kBuffered); };
  Open();
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(append());
    ASSERT_TRUE(log_->Sync());  // the first of a file keeps appends out, later ones do not
    fs_->FailSyncs(".log", rocksdb::IOStatus::NoSpace("injected"));
    Status synced;
    std::thread syncer([&] {
      while (synced) synced = log_->Sync();
    });
    Result<Seq> appended = append();
    while (appended) appended = append();
    syncer.join();
    for (const Error& error : {appended.error(), synced.error(), append().error()}) {
      ASSERT_THAT(error.message, HasSubstr("injected")) << "round " << round;
    }
    fs_->Heal();
    ASSERT_TRUE(log_->Reopen());
  }
}

TEST_F(DurabilityTest, RandomFaultsLoseNothingThatWasAcknowledged) {
  RandomRecords random(TestSeed());
  Open();
  for (int round = 0; round < 60; ++round) {
    const int skip = static_cast<int>(random.Below(4));
    const std::string suffix = random.Below(2) == 0 ? ".log" : "";
    if (random.Below(2) == 0) {
      fs_->FailWrites(suffix, rocksdb::IOStatus::NoSpace("injected"), skip);
    } else {
      fs_->FailSyncs(suffix, rocksdb::IOStatus::IOError("injected"), skip);
    }
    for (int step = 0; step < 8; ++step) {
      const bool sync = random.Below(2) == 0;
      if (!Append(RandomGroup(random), sync ? Durability::kSynced : Durability::kBuffered)) break;
    }
    fs_->Heal();
    const auto last = log_->Reopen();
    ASSERT_TRUE(last) << "round " << round << ": " << last.error().message;
    ASSERT_NO_FATAL_FAILURE(ExpectAcknowledged()) << "round " << round;
  }
}

}  // namespace
}  // namespace conductor::storage
