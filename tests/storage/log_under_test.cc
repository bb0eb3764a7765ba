#include "tests/storage/log_under_test.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include "src/memory_event_log.h"
#include "storage/rocksdb_event_log.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/temp_dir.h"

namespace conductor::storage {
namespace {

Error Injected() {
  return {ErrorCode::kUnavailable, "injected", "", "", -1};
}

class MemoryLogUnderTest : public LogUnderTest {
 public:
  EventLog& log() override { return log_; }
  void KillAndRestart() override { Crash(false); }
  void CutPowerAndRestart() override { Crash(true); }
  void FailNextAppend() override { log_.FailNextAppendForTest(Injected(), false); }
  void FailNextSync() override { log_.FailNextSyncForTest(Injected()); }
  void Heal() override {}

 private:
  void Crash(bool lose_unsynced) {
    log_.CrashForTest(lose_unsynced);
    EXPECT_TRUE(log_.Reopen());
  }
  MemoryEventLog log_;
};

class RocksDbLogUnderTest : public LogUnderTest {
 public:
  RocksDbLogUnderTest() { Open(); }
  EventLog& log() override { return *log_; }
  void KillAndRestart() override {
    Close();
    fs_->RestoreAfterKill();
    Open();
  }
  void CutPowerAndRestart() override {
    Close();
    fs_->RestorePower();
    Open();
  }
  void FailNextAppend() override {
    fs_->FailWrites(".log", rocksdb::IOStatus::NoSpace("injected"));
  }
  void FailNextSync() override { fs_->FailSyncs(".log", rocksdb::IOStatus::IOError("injected")); }
  void Heal() override { fs_->Heal(); }

 private:
  void Close() {
    fs_->CutPower();
    log_.reset();
  }
  void Open() {
    auto log = RocksDbEventLog::Open({.data_dir = dir_.data_dir(), .env = env_.get()});
    ASSERT_TRUE(log) << log.error().message;
    log_ = std::move(*log);
  }

  TempDir dir_;
  const std::shared_ptr<FaultFs> fs_ = std::make_shared<FaultFs>();
  const std::unique_ptr<rocksdb::Env> env_ = MakeFaultEnv(fs_);
  std::unique_ptr<RocksDbEventLog> log_;
};

}  // namespace

std::unique_ptr<LogUnderTest> MakeMemoryLogUnderTest() {
  return std::make_unique<MemoryLogUnderTest>();
}
std::unique_ptr<LogUnderTest> MakeRocksDbLogUnderTest() {
  return std::make_unique<RocksDbLogUnderTest>();
}

}  // namespace conductor::storage
