// Snapshots as the service takes them: when, of what, what is dropped behind them, and what happens
// when they fail.
#include <future>

#include "tests/src/service/service_fixture.h"

namespace conductor {
namespace {

using Seqs = std::vector<Seq>;

class SnapshotTest : public ServiceFixture {
 protected:
  SnapshotTest() {
    options_.snapshot_interval_events = 0;
    options_.snapshot_interval_s = 0;
  }
  // A registration of `a` and frames 0 to `frames` - 1, all applied.
  void StartWith(std::uint64_t frames) {
    StartReady();
    stream_ = MustRegister("a");
    MoreFrames(frames);
  }
  void MoreFrames(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(Offer(stream_, next_));
      ASSERT_TRUE(WaitForHits("a", next_++));  // so that each is a record of its own
    }
  }
  void Restart() {
    service_->Stop();
    service_.reset();
    StartReady();
  }
  Seq MustSnapshot() {
    const auto snapshot = service_->CreateSnapshot();
    EXPECT_TRUE(snapshot) << snapshot.error().message;
    return snapshot ? snapshot->seq : 0;
  }
  StatusView Status() { return *service_->GetStatus(); }

  StreamId stream_ = 0;
  std::uint64_t next_ = 0;
};

TEST_F(SnapshotTest, ARestartBeginsAtTheSnapshot) {
  StartWith(3);
  const Seq seq = MustSnapshot();
  EXPECT_EQ(seq, log_.LastSeq());
  MoreFrames(2);
  const std::string digest = Status().digest;
  Restart();
  EXPECT_TRUE(WaitForLine("event=rebuilt snapshot=" + std::to_string(seq) + " records=2"));
  EXPECT_EQ(Status().digest, digest);
  EXPECT_EQ(Status().snapshot_seq, seq);
  for (std::uint64_t n = 0; n < 5; ++n) EXPECT_EQ(Hits("a", n), kTestBlockSize);
  EXPECT_EQ(source_.seed(stream_).cursor, 4u);
  ExpectStateIsTheLogs();
}

TEST_F(SnapshotTest, TheNewestTwoStayAndTheLogBehindTheOlderOne) {
  StartWith(1);
  Seqs made;
  for (int i = 0; i < 4; ++i) {
    made.push_back(MustSnapshot());
    MoreFrames(1);
  }
  ASSERT_TRUE(changes_.WaitFor([&] { return snapshots_.seqs() == Seqs({made[2], made[3]}); }));
  ASSERT_TRUE(changes_.WaitFor([&] { return log_.FirstSeq() == made[2] + 1; }));
  const std::string digest = Status().digest;
  Restart();
  EXPECT_EQ(Status().digest, digest);
  EXPECT_EQ(Status().log_first, made[2] + 1);
}

TEST_F(SnapshotTest, OneAloneKeepsTheWholeLog) {
  StartWith(2);
  MustSnapshot();
  MoreFrames(1);
  EXPECT_EQ(log_.FirstSeq(), 1u);
}

TEST_F(SnapshotTest, NothingNewNeedsNoNewOne) {
  StartWith(2);
  const Seq seq = MustSnapshot();
  EXPECT_EQ(MustSnapshot(), seq);
  EXPECT_EQ(Status().snapshots_made, 1u);
}

TEST_F(SnapshotTest, AnEmptyLogHasNone) {
  StartReady();
  const auto snapshot = service_->CreateSnapshot();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(SnapshotTest, EventsMakeOneDue) {
  options_.snapshot_interval_events = 3;
  StartWith(2);
  EXPECT_EQ(snapshots_.seqs(), Seqs());
  MoreFrames(1);
  const Seq due = log_.LastSeq();
  EXPECT_TRUE(changes_.WaitFor([&] { return snapshots_.seqs() == Seqs({due}); }));
  MoreFrames(3);
  EXPECT_TRUE(changes_.WaitFor([&] { return snapshots_.seqs() == Seqs({due, due + 3}); }));
}

TEST_F(SnapshotTest, TimeMakesOneDueWhenThereIsSomethingNew) {
  options_.snapshot_interval_s = 60;
  StartWith(1);
  clock_.Advance(59'999);
  MoreFrames(1);
  EXPECT_EQ(snapshots_.seqs(), Seqs());
  clock_.Advance(1);
  EXPECT_TRUE(changes_.WaitFor([&] { return snapshots_.seqs() == Seqs({log_.LastSeq()}); }));
  EXPECT_TRUE(changes_.WaitFor([&] { return Status().snapshots_made == 1; }));
  clock_.Advance(60'000);
  MustSnapshot();  // the apply thread has looked at the clock: there was nothing new
  EXPECT_EQ(Status().snapshots_made, 1u);
}

// While the disk is slow, frames go on being applied, and are not in the image.
TEST_F(SnapshotTest, AnImageIsOfOneMomentHoweverLongItsWritingTakes) {
  StartWith(3);
  const std::string digest = Status().digest;
  const Seq seq = log_.LastSeq();
  snapshots_.Hold();
  auto snapshot = std::async(std::launch::async, [this] { return service_->CreateSnapshot(); });
  snapshots_.WaitForHeldAppend();
  MoreFrames(4);
  EXPECT_GE(Status().snapshot_percent, 0);
  snapshots_.Release();
  const auto made = snapshot.get();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->seq, seq);
  EXPECT_EQ(made->digest, digest);
  EXPECT_EQ(Status().snapshot_percent, -1);
  const std::string now = Status().digest;
  Restart();
  EXPECT_EQ(Status().digest, now);
}

TEST_F(SnapshotTest, AFailureIsSaidAndTheNextOneMayWork) {
  StartWith(2);
  for (const bool finish : {false, true}) {
    snapshots_.FailNext(DiskError(), finish);
    const auto failed = service_->CreateSnapshot();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().message, DiskError().message);
    EXPECT_EQ(Status().snapshot_error, DiskError().message);
    EXPECT_EQ(snapshots_.seqs(), Seqs());
  }
  EXPECT_EQ(Status().snapshots_failed, 2u);
  EXPECT_TRUE(service_->GetReadiness().ready);  // queries and the log do not depend on it
  MoreFrames(1);
  EXPECT_EQ(MustSnapshot(), log_.LastSeq());
  EXPECT_EQ(Status().snapshot_error, "");
}

TEST_F(SnapshotTest, AFailedOneIsTriedAgainLater) {
  options_.snapshot_interval_events = 2;
  snapshots_.FailNext(DiskError());
  StartWith(2);
  ASSERT_TRUE(changes_.WaitFor([&] { return Status().snapshots_failed == 1; }));
  MoreFrames(2);
  EXPECT_EQ(snapshots_.seqs(), Seqs());  // not at once
  clock_.Advance(5'000);
  EXPECT_TRUE(changes_.WaitFor([&] { return snapshots_.seqs() == Seqs({log_.LastSeq()}); }));
}

// The same where only time makes one due: the retry does not wait for a whole interval.
TEST_F(SnapshotTest, AFailedOneIsTriedAgainLaterByTimeToo) {
  options_.snapshot_interval_s = 900;
  snapshots_.FailNext(DiskError());
  StartWith(2);
  clock_.Advance(900'000);
  ASSERT_TRUE(changes_.WaitFor([&] { return Status().snapshots_failed == 1; }));
  MoreFrames(2);  // so that the apply thread has seen the failure
  clock_.Advance(5'000);
  EXPECT_TRUE(changes_.WaitFor([&] { return snapshots_.seqs() == Seqs({log_.LastSeq()}); }));
}

// Restarts that come more often than snapshots are due do not put them off for ever.
TEST_F(SnapshotTest, ARestartCountsWhatItReadBehindTheSnapshot) {
  options_.snapshot_interval_events = 3;
  StartWith(2);
  Restart();
  MoreFrames(1);
  EXPECT_TRUE(changes_.WaitFor([&] { return snapshots_.seqs() == Seqs({log_.LastSeq()}); }));
}

// One that cannot be read now, or was written by a newer release, is not damaged.
TEST_F(SnapshotTest, WhatCannotBeReadIsNeverRemoved) {
  StartWith(1);
  const Seq first = MustSnapshot();
  MoreFrames(1);
  const Seq second = MustSnapshot();
  snapshots_.MakeUnreadable(second, true);
  MoreFrames(1);
  const Seq third = MustSnapshot();
  ASSERT_TRUE(changes_.WaitFor([&] { return snapshots_.seqs() == Seqs({first, second, third}); }));
  // And when nothing can be read, nothing goes.
  snapshots_.MakeUnreadable(first, true);
  snapshots_.MakeUnreadable(third, true);
  EXPECT_TRUE(service_->PruneSnapshots(1)->empty());
  EXPECT_EQ(snapshots_.seqs(), Seqs({first, second, third}));
  for (const Seq seq : {first, second, third}) snapshots_.MakeUnreadable(seq, false);
  MoreFrames(1);
  const Seq fourth = MustSnapshot();
  EXPECT_TRUE(changes_.WaitFor([&] { return snapshots_.seqs() == Seqs({third, fourth}); }));
}

TEST_F(SnapshotTest, AStartPastAnUnreadableOneLeavesItInPlace) {
  StartWith(1);
  const Seq older = MustSnapshot();
  MoreFrames(1);
  const Seq newer = MustSnapshot();
  const std::string digest = Status().digest;
  snapshots_.MakeUnreadable(newer, true);
  Restart();
  EXPECT_TRUE(WaitForLine("event=rebuilt snapshot=" + std::to_string(older) + " "));
  EXPECT_EQ(Status().digest, digest);
  EXPECT_EQ(snapshots_.set_aside(), Seqs());
  EXPECT_EQ(snapshots_.seqs(), Seqs({older, newer}));
}

TEST_F(SnapshotTest, ALogThatFailsRefusesWhoWaitsForOne) {
  StartWith(1);
  log_.SetReopenFails(true);
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/false);
  ASSERT_TRUE(Offer(stream_, next_));
  ASSERT_TRUE(WaitForLine("event=log_failed"));
  const auto refused = service_->CreateSnapshot();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "not_ready");
  log_.SetReopenFails(false);
  ASSERT_TRUE(WaitForHits("a", next_));
}

TEST_F(SnapshotTest, TooMuchThatWaitsForTheDiskGivesItUp) {
  options_.limits.snapshot_set_aside_bytes_max = 500;
  snapshots_.SetFrameBytes(1'000);
  StartWith(3);
  const auto given_up = service_->CreateSnapshot();
  ASSERT_FALSE(given_up);
  EXPECT_NE(given_up.error().message.find("limits.snapshot_set_aside_bytes_max"), std::string::npos)
      << given_up.error().message;
  EXPECT_EQ(snapshots_.seqs(), Seqs());
  MoreFrames(1);
  snapshots_.SetFrameBytes(1);
  EXPECT_EQ(MustSnapshot(), log_.LastSeq());
}

TEST_F(SnapshotTest, ADamagedOneFallsBackToTheOneBefore) {
  StartWith(1);
  const Seq older = MustSnapshot();
  MoreFrames(1);
  const Seq newer = MustSnapshot();
  MoreFrames(1);
  const std::string digest = Status().digest;
  snapshots_.Damage(newer, /*seen=*/false);
  Restart();
  EXPECT_TRUE(WaitForLine("event=snapshot_unusable"));
  EXPECT_TRUE(WaitForLine("event=rebuilt snapshot=" + std::to_string(older) + " "));
  EXPECT_EQ(Status().digest, digest);
  EXPECT_EQ(snapshots_.set_aside(), Seqs({newer}));
  EXPECT_EQ(Status().snapshot_seq, older);
}

TEST_F(SnapshotTest, AllDamagedAndNoLogBeforeThemIsFatalAndSaysWhy) {
  StartWith(1);
  for (int i = 0; i < 2; ++i) {
    MustSnapshot();
    MoreFrames(1);
  }
  ASSERT_TRUE(changes_.WaitFor([&] { return log_.FirstSeq() > 1; }));
  service_->Stop();
  service_.reset();
  for (const Seq seq : snapshots_.seqs()) snapshots_.Damage(seq, /*seen=*/true);
  Start();
  ASSERT_TRUE(changes_.WaitFor([&] { return service_->FatalError().has_value(); }));
  EXPECT_NE(service_->FatalError()->message.find("no snapshot reaches it"), std::string::npos);
  EXPECT_NE(service_->FatalError()->message.find("memory/"), std::string::npos);
}

// It says what the log says up to its position: the log must not be able to say less.
TEST_F(SnapshotTest, ItCountsOnlyWhenTheLogIsOnDiskUpToIt) {
  options_.log_sync = LogSync::kNever;
  StartWith(2);
  log_.LoseTailAtNextSync();
  const auto refused = service_->CreateSnapshot();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("fsync"), std::string::npos) << refused.error().message;
  EXPECT_EQ(snapshots_.seqs(), Seqs());
  // The log lost records, so the state was rebuilt from what is left.
  ASSERT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().ready; }));
}

TEST_F(SnapshotTest, AStateThatIsRebuiltMeanwhileTakesItsImageAlong) {
  options_.log_sync = LogSync::kNever;
  options_.limits.snapshot_buffer_bytes_max = 0;
  StartWith(2);
  snapshots_.Hold();
  auto snapshot = std::async(std::launch::async, [this] { return service_->CreateSnapshot(); });
  snapshots_.WaitForHeldAppend();
  log_.inner.CrashForTest(/*lose_unsynced=*/true);
  ASSERT_TRUE(Offer(stream_, next_));
  ASSERT_TRUE(WaitForLine("event=log_lost_records"));
  snapshots_.Release();
  EXPECT_FALSE(snapshot.get());
  ASSERT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().ready; }));
  ExpectStateIsTheLogs();
  MustRegister("b");
  EXPECT_EQ(MustSnapshot(), log_.LastSeq());
}

TEST_F(SnapshotTest, PruneKeepsWhatItIsTold) {
  StartWith(1);
  const Seq first = MustSnapshot();
  MoreFrames(1);
  const Seq second = MustSnapshot();
  auto removed = service_->PruneSnapshots(2);
  ASSERT_TRUE(removed);
  EXPECT_TRUE(removed->empty());
  removed = service_->PruneSnapshots(0);  // at least one stays
  ASSERT_TRUE(removed);
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_EQ((*removed)[0].seq, first);
  EXPECT_EQ(snapshots_.seqs(), Seqs({second}));
}

TEST_F(SnapshotTest, PruneRemovesOldCheckpointsToo) {
  StartWith(1);
  MustSnapshot();
  SnapshotInfo checkpoint;
  checkpoint.path = "checkpoints/1-1";
  snapshots_.AddOldCheckpoint(checkpoint);
  const auto removed = service_->PruneSnapshots(2);
  ASSERT_TRUE(removed);
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_EQ((*removed)[0].path, checkpoint.path);
  EXPECT_TRUE(service_->PruneSnapshots(2)->empty());
}

TEST_F(SnapshotTest, StoppingRefusesWhoWaitsForOne) {
  StartWith(2);
  snapshots_.Hold();
  auto snapshot = std::async(std::launch::async, [this] { return service_->CreateSnapshot(); });
  snapshots_.WaitForHeldAppend();
  auto next = std::async(std::launch::async, [this] { return service_->CreateSnapshot(); });
  auto stopped = std::async(std::launch::async, [this] { service_->Stop(); });
  ASSERT_TRUE(changes_.WaitFor([&] { return source_.Count("stop all") > 0; }));
  snapshots_.Release();
  stopped.get();
  const auto first = snapshot.get(), second = next.get();
  EXPECT_FALSE(second && second->seq != log_.LastSeq());
  if (!first) {
    EXPECT_EQ(first.error().reason, "not_ready");
  }
}

}  // namespace
}  // namespace conductor
