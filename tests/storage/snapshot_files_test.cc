// Snapshots as files of a data directory: from the first byte to the name, and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "storage/rocksdb_event_log.h"
#include "storage/snapshot_reader.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/image_text.h"
#include "tests/storage/record_text.h"
#include "tests/storage/temp_dir.h"
#include "tests/storage/test_image.h"
#include "tests/storage/warning_lines.h"

namespace conductor::storage {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class SnapshotFilesTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    log_.reset();
    auto log = RocksDbEventLog::Open({.data_dir = dir_.data_dir(),
                                      .env = env_.get(),
                                      .on_warning = [this](auto line) { warnings_.Add(line); }});
    ASSERT_TRUE(log) << log.error().message;
    log_ = std::move(*log);
  }
  void AppendTo(Seq last) {
    while (log_->LastSeq() < last) {
      const Seq seq = log_->LastSeq() + 1;
      ASSERT_TRUE(log_->Append(std::vector<Record>{{{Lost{1, seq, seq}}}}, Durability::kSynced));
    }
  }
  Result<SnapshotInfo> Write(const TestImage& image) {
    const std::unique_ptr<ImageEncoder> encoder = log_->NewEncoder();
    CONDUCTOR_ASSIGN_OR_RETURN(const std::unique_ptr<ImageFile> file,
                               log_->CreateImage(image.start.seq));
    CONDUCTOR_RETURN_IF_ERROR(image.Play(*encoder));
    CONDUCTOR_RETURN_IF_ERROR(file->Append(encoder->Take()));
    return file->Finish();
  }
  SnapshotInfo MustWrite(Seq seq) {
    AppendTo(seq);
    const auto info = Write(SmallImage(seq));
    EXPECT_TRUE(info) << info.error().message;
    return info ? *info : SnapshotInfo{};
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    const std::string directory = dir_.data_dir() + "/snapshots";
    if (!std::filesystem::exists(directory)) return names;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  std::vector<SnapshotInfo> List() const {
    const auto list = log_->ListSnapshots();
    EXPECT_TRUE(list) << list.error().message;
    return list.value_or(std::vector<SnapshotInfo>{});
  }
  static void Flip(const std::string& path, std::uint64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 0x40));
  }

  TempDir dir_;
  const std::shared_ptr<FaultFs> fs_ = std::make_shared<FaultFs>();
  const std::unique_ptr<rocksdb::Env> env_ = MakeFaultEnv(fs_);
  WarningLines warnings_;
  std::unique_ptr<RocksDbEventLog> log_;
};

TEST_F(SnapshotFilesTest, FinishedOneIsListedAndComesBack) {
  const SnapshotInfo made = MustWrite(5);
  EXPECT_EQ(made.path, dir_.data_dir() + "/snapshots/00000000000000000005.snapshot");
  Open();
  const std::vector<SnapshotInfo> list = List();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].seq, 5u);
  EXPECT_EQ(list[0].bytes, std::filesystem::file_size(made.path));
  EXPECT_EQ(list[0].blocks, 5u);
  EXPECT_EQ(list[0].digest, "00000000000000050000000000000006");
  EXPECT_EQ(list[0].damage, "");
  EXPECT_GT(list[0].created_unix_ms, 0);
  ImageText text;
  ASSERT_TRUE(log_->ReadSnapshot(5, text));
  EXPECT_EQ(text.lines(), TextsOf(SmallImage(5)));
}

TEST_F(SnapshotFilesTest, NewestIsListedFirst) {
  for (const Seq seq : {5, 12, 9}) MustWrite(seq);
  const std::vector<SnapshotInfo> list = List();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].seq, 12u);
  EXPECT_EQ(list[2].seq, 5u);
}

TEST_F(SnapshotFilesTest, UnfinishedOneLeavesNothing) {
  {
    const auto file = log_->CreateImage(1);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->Append("frames"));
    EXPECT_THAT(Names(), UnorderedElementsAre("00000000000000000001.snapshot.growing"));
    EXPECT_THAT(List(), IsEmpty());
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(SnapshotFilesTest, WhatACrashLeftIsRemovedAtTheNextOpening) {
  MustWrite(3);
  std::ofstream(dir_.data_dir() + "/snapshots/00000000000000000009.snapshot.growing") << "half";
  Open();
  EXPECT_THAT(Names(), UnorderedElementsAre("00000000000000000003.snapshot"));
}

TEST_F(SnapshotFilesTest, ReadOnlyOpeningRemovesNothingAndWritesNothing) {
  MustWrite(3);
  log_.reset();
  std::ofstream(dir_.data_dir() + "/snapshots/00000000000000000009.snapshot.growing") << "half";
  auto reader = RocksDbEventLog::Open({.data_dir = dir_.data_dir(), .read_only = true});
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(Names().size(), 2u);
  EXPECT_EQ((*reader)->ListSnapshots()->size(), 1u);
  const auto file = (*reader)->CreateImage(9);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(SnapshotFilesTest, OnlyOneGrowsAtATime) {
  const auto first = log_->CreateImage(1);
  ASSERT_TRUE(first);
  const auto second = log_->CreateImage(2);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(second.error().message, HasSubstr("another one is being written"));
}

TEST_F(SnapshotFilesTest, ReopeningTheLogLeavesAGrowingOneAlone) {
  AppendTo(4);
  const auto encoder = log_->NewEncoder();
  const auto file = log_->CreateImage(4);
  ASSERT_TRUE(file);
  ASSERT_TRUE(SmallImage(4).Play(*encoder));
  ASSERT_TRUE(log_->Reopen());
  ASSERT_TRUE((*file)->Append(encoder->Take()));
  const auto made = (*file)->Finish();
  EXPECT_TRUE(made) << made.error().message;
}

TEST_F(SnapshotFilesTest, BytesThatDoNotReadBackAreNoSnapshot) {
  AppendTo(4);
  TestImage image = SmallImage(4);
  image.sets[1].second = {2, 1};
  const auto made = Write(image);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(made.error().message, HasSubstr(": set: holder 1 behind 2"));
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(SnapshotFilesTest, AheadOfTheLogOnDiskItIsNoSnapshot) {
  AppendTo(4);
  ASSERT_TRUE(log_->Append(std::vector<Record>{{{Lost{1, 5, 5}}}}, Durability::kBuffered));
  const auto early = Write(SmallImage(5));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(early.error().message, HasSubstr("the log is on disk up to 4"));
  EXPECT_THAT(Names(), IsEmpty());
  ASSERT_TRUE(log_->Sync());
  EXPECT_TRUE(Write(SmallImage(5)));
}

TEST_F(SnapshotFilesTest, DamagedEndsAreListedAsDamaged) {
  const SnapshotInfo made = MustWrite(5);
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{17}, made.bytes - 1}) {
    Flip(made.path, offset);
    const std::vector<SnapshotInfo> list = List();
    ASSERT_EQ(list.size(), 1u);
    EXPECT_THAT(list[0].damage, HasSubstr("snapshot " + made.path + ": offset ")) << offset;
    Flip(made.path, offset);
    EXPECT_EQ(List()[0].damage, "");
  }
}

TEST_F(SnapshotFilesTest, EmptyFileIsListedAsDamaged) {
  MustWrite(5);
  std::ofstream(dir_.data_dir() + "/snapshots/00000000000000000004.snapshot");
  EXPECT_THAT(List().at(1).damage, HasSubstr("0 bytes, expected a header of 32"));
}

TEST_F(SnapshotFilesTest, DamageInsideIsFoundWhenItIsRead) {
  const SnapshotInfo made = MustWrite(5);
  Flip(made.path, made.bytes / 2);
  EXPECT_EQ(List()[0].damage, "");
  NullVisitor checks;
  const Status read = log_->ReadSnapshot(5, checks);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kDataLoss);
  EXPECT_THAT(read.error().message, HasSubstr("snapshot " + made.path + ": offset 32: checksum "));
}

TEST_F(SnapshotFilesTest, RemovedOneIsGone) {
  MustWrite(5);
  ASSERT_TRUE(log_->RemoveSnapshot(5));
  EXPECT_THAT(Names(), IsEmpty());
  NullVisitor checks;
  EXPECT_EQ(log_->ReadSnapshot(5, checks).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(log_->RemoveSnapshot(5).error().code, ErrorCode::kNotFound);
}

TEST_F(SnapshotFilesTest, OneSetAsideIsKeptButNeverReadAgain) {
  MustWrite(5);
  ASSERT_TRUE(log_->SetAside(5));
  EXPECT_THAT(List(), IsEmpty());
  Open();
  EXPECT_THAT(Names(), UnorderedElementsAre("00000000000000000005.snapshot.damaged"));
  EXPECT_THAT(List(), IsEmpty());
}

TEST_F(SnapshotFilesTest, LogThatEndsBeforeASnapshotGoesOnBehindIt) {
  AppendTo(20);
  MustWrite(20);
  log_.reset();
  for (const char* name : {"CURRENT", "synced"}) {
    std::filesystem::remove(dir_.data_dir() + "/" + name);
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir_.data_dir())) {
    if (entry.is_regular_file()) std::filesystem::remove(entry.path());
  }
  Open();
  EXPECT_EQ(log_->FirstSeq(), 21u);
  EXPECT_EQ(log_->LastSeq(), 20u);
  EXPECT_THAT(ToLine(log_->GetRecoveryReport()), HasSubstr(" only_in_snapshot=20"));
  AppendTo(22);
  Open();
  EXPECT_EQ(log_->FirstSeq(), 21u);
  EXPECT_EQ(log_->LastSeq(), 22u);
}

TEST_F(SnapshotFilesTest, CheckpointCarriesTheSnapshotsItReaches) {
  MustWrite(5);
  MustWrite(9);
  ASSERT_TRUE(log_->DropBelow(6));
  const auto checkpoint = log_->CreateCheckpoint();
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->seq, 9u);
  MustWrite(11);
  ASSERT_TRUE(log_->RemoveSnapshot(5));
  ASSERT_TRUE(log_->RemoveSnapshot(9));
  const std::string moved = dir_.path() + "/moved";
  std::filesystem::rename(checkpoint->path, moved);
  log_.reset();
  std::filesystem::remove_all(dir_.data_dir());
  auto copy = RocksDbEventLog::Open({.data_dir = moved});
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ((*copy)->FirstSeq(), 6u);
  EXPECT_EQ((*copy)->LastSeq(), 9u);
  ASSERT_EQ((*copy)->ListSnapshots()->size(), 2u);
  ImageText text;
  ASSERT_TRUE((*copy)->ReadSnapshot(9, text));
  EXPECT_EQ(text.lines(), TextsOf(SmallImage(9)));
}

TEST_F(SnapshotFilesTest, RemovedCheckpointIsGoneAndOthersAreNot) {
  AppendTo(3);
  const std::string first = log_->CreateCheckpoint()->path;
  AppendTo(4);
  const std::string second = log_->CreateCheckpoint()->path;
  ASSERT_TRUE(log_->RemoveCheckpoint(first));
  EXPECT_FALSE(std::filesystem::exists(first));
  ASSERT_EQ(log_->ListCheckpoints()->size(), 1u);
  EXPECT_EQ((*log_->ListCheckpoints())[0].path, second);
  for (const std::string& path : {first, dir_.data_dir(), dir_.path(), std::string()}) {
    const Status removed = log_->RemoveCheckpoint(path);
    ASSERT_FALSE(removed);
    EXPECT_EQ(removed.error().code, ErrorCode::kNotFound);
  }
}

}  // namespace
}  // namespace conductor::storage
