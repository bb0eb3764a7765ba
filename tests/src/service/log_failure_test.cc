// What the service does when its log fails, under every sync policy.
#include <gmock/gmock.h>

#include <thread>

#include "tests/src/service/service_fixture.h"

namespace conductor {
namespace {

class LogFailureTest : public ServiceFixture, public ::testing::WithParamInterface<LogSync> {
 protected:
  LogFailureTest() { options_.log_sync = GetParam(); }
};

TEST_P(LogFailureTest, FramesAreAppliedAndAnswered) {
  StartReady();
  const StreamId stream = MustRegister("a");
  for (std::uint64_t n = 0; n < 5; ++n) ASSERT_TRUE(Offer(stream, n));
  EXPECT_TRUE(WaitForHits("a", 4));
  EXPECT_EQ(LoggedNumbers(stream), (Numbers{0, 1, 2, 3, 4}));
  ExpectStateIsTheLogs();
}

TEST_P(LogFailureTest, FailedAppendIsWrittenAgain) {
  StartReady();
  const StreamId stream = MustRegister("a");
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/false);
  ASSERT_TRUE(Offer(stream, 0));
  EXPECT_TRUE(WaitForHits("a", 0));
  EXPECT_EQ(LoggedNumbers(stream), Numbers{0});
  ExpectStateIsTheLogs();
}

TEST_P(LogFailureTest, WhatTheFormatRefusesCostsItsFrameAndNothingElse) {
  StartReady();
  const StreamId a = MustRegister("a"), b = MustRegister("b");
  log_.Hold();
  ASSERT_TRUE(Offer(b, 0));
  log_.WaitForHeldAppend();
  // One group: a good frame of each stream around the bad one.
  ASSERT_TRUE(Offer(a, 1));
  ASSERT_TRUE(Offer(a, 666));
  ASSERT_TRUE(Offer(b, 2));
  log_.Release();
  EXPECT_TRUE(WaitForHits("b", 2));
  EXPECT_TRUE(WaitForHits("a", 1));
  EXPECT_EQ(Hits("a", 666), 0u);
  EXPECT_EQ(LoggedNumbers(a), (Numbers{1, 666})) << "the cursor moves on";
  EXPECT_EQ(LoggedNumbers(b), (Numbers{0, 2}));
  const ServiceView view = View("a");
  EXPECT_THAT(view.counters, testing::Contains(std::pair<std::string, std::uint64_t>(
                                 "ignored_undecodable_frames_total", 1)));
  EXPECT_TRUE(WaitForLine("event=frame_refused_by_log"));
  EXPECT_EQ(log_.reopens(), 0) << "the log is not at fault";
  ExpectStateIsTheLogs();
}

TEST_P(LogFailureTest, RecordThatReachedTheLogIsNotWrittenTwice) {
  StartReady();
  const StreamId stream = MustRegister("a");
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/true);
  ASSERT_TRUE(Offer(stream, 0));
  EXPECT_TRUE(WaitForHits("a", 0));
  ASSERT_TRUE(Offer(stream, 1));
  EXPECT_TRUE(WaitForHits("a", 1));
  EXPECT_EQ(LoggedNumbers(stream), (Numbers{0, 1}));
  ExpectStateIsTheLogs();
}

TEST_P(LogFailureTest, RegistrationThatReachedTheLogIsAcknowledgedOnce) {
  StartReady();
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/true);
  const auto outcome = service_->Register(Request("a"));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(log_.LastSeq(), 1u);
  EXPECT_EQ(log_.inner.SyncedSeqForTest(), 1u);
  EXPECT_EQ(source_.calls(), std::vector<std::string>{"start 1"});
  ExpectStateIsTheLogs();
}

TEST_P(LogFailureTest, RegistrationThatCannotBeWrittenIsRefusedAndLeavesNothing) {
  StartReady();
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/false);
  const auto outcome = service_->Register(Request("a"));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(outcome.error().reason, "not_ready");
  EXPECT_EQ(log_.LastSeq(), 0u);
  EXPECT_EQ(View("a").stream, 0u);
  EXPECT_TRUE(source_.calls().empty());
  // The refusal is about that moment only.
  EXPECT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().ready; }));
  MustRegister("a");
  ExpectStateIsTheLogs();
}

TEST_P(LogFailureTest, UnregistrationThatCannotBeWrittenKeepsTheStreamGoing) {
  StartReady();
  const StreamId stream = MustRegister("a");
  ASSERT_TRUE(Offer(stream, 0));
  ASSERT_TRUE(WaitForHits("a", 0));
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/false);
  const auto outcome = service_->Unregister({"a", "default", 0});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().reason, "not_ready");
  EXPECT_EQ(Hits("a", 0), kTestBlockSize);
  // Refused first, then started again.
  ASSERT_TRUE(changes_.WaitFor([&] { return source_.Count("start 1") == 2; }));
  EXPECT_EQ(source_.calls(), (std::vector<std::string>{"start 1", "stop 1", "start 1"}));
  // It goes on where the log ends.
  EXPECT_EQ(source_.seed(stream).cursor, 0u);
}

TEST_P(LogFailureTest, WhileTheLogFailsQueriesGoOnAndTheRestWaits) {
  StartReady();
  const StreamId stream = MustRegister("a");
  ASSERT_TRUE(Offer(stream, 0));
  ASSERT_TRUE(WaitForHits("a", 0));
  log_.SetReopenFails(true);
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/false);
  ASSERT_TRUE(Offer(stream, 1));
  // Several attempts fail.
  ASSERT_TRUE(changes_.WaitFor([&] { return log_.reopens() >= 3; }));
  const Readiness readiness = service_->GetReadiness();
  EXPECT_FALSE(readiness.ready);
  EXPECT_EQ(readiness.phase, "log_failed");
  EXPECT_FALSE(service_->GetStatus()->log_error.empty());
  EXPECT_EQ(Hits("a", 0), kTestBlockSize);
  EXPECT_EQ(Hits("a", 1), 0u);
  const auto refused = service_->Register(Request("b"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(refused.error().reason, "not_ready");
  const auto kept = service_->Unregister({"a", "default", 0});
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().reason, "not_ready");
  ASSERT_TRUE(Offer(stream, 2));

  log_.SetReopenFails(false);
  EXPECT_TRUE(WaitForHits("a", 2));
  EXPECT_TRUE(service_->GetReadiness().ready);
  EXPECT_TRUE(service_->GetStatus()->log_error.empty());
  EXPECT_EQ(LoggedNumbers(stream), (Numbers{0, 1, 2}));
  EXPECT_EQ(source_.calls(), std::vector<std::string>{"start 1"});
  ExpectStateIsTheLogs();
}

// Who came upon the failure is refused like those after him, however long the disk stays sick.
TEST_P(LogFailureTest, RegistrationThatMetTheFailureDoesNotWaitForItsEnd) {
  StartReady();
  log_.SetReopenFails(true);
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/false);
  const auto refused = service_->Register(Request("a"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(refused.error().reason, "not_ready");
  EXPECT_NE(refused.error().message.find("no space left"), std::string::npos);
  EXPECT_EQ(service_->GetReadiness().phase, "log_failed");
  log_.SetReopenFails(false);
  EXPECT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().ready; }));
  EXPECT_EQ(log_.LastSeq(), 0u);
  MustRegister("a");
  ExpectStateIsTheLogs();
}

// They share no record, so the later ones wait while the first one meets the failure.
TEST_P(LogFailureTest, CommandsBehindTheOneThatMetTheFailureDoNotWaitForItsEnd) {
  StartReady();
  const StreamId stream = MustRegister("a");
  log_.SetReopenFails(true);
  log_.Hold();
  ASSERT_TRUE(Offer(stream, 0));
  log_.WaitForHeldAppend();
  log_.FailAppend(1, DiskError());  // the one behind the frame's
  std::vector<std::thread> clients;
  std::atomic<int> refused{0};
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      const auto outcome = service_->Unregister({"a", "default", 0});
      if (!outcome && outcome.error().reason == "not_ready") ++refused;
    });
  }
  ASSERT_TRUE(changes_.WaitFor([&] { return queued_commands() == 4; }));
  log_.Release();
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(refused.load(), 4);
  EXPECT_EQ(service_->GetReadiness().phase, "log_failed");
  log_.SetReopenFails(false);
  EXPECT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().ready; }));
  EXPECT_TRUE(service_->Unregister({"a", "default", 0}));
  ExpectStateIsTheLogs();
}

TEST_P(LogFailureTest, RefusedRegistrationThatIsInTheLogNeverthelessIsServed) {
  StartReady();
  log_.SetReopenFails(true);
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/true);
  ASSERT_FALSE(service_->Register(Request("a")));
  log_.SetReopenFails(false);
  EXPECT_TRUE(changes_.WaitFor([&] { return source_.Count("start 1") == 1; }));
  const auto again = service_->Register(Request("a"));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->already);
  EXPECT_EQ(log_.LastSeq(), 1u);
  ExpectStateIsTheLogs();
}

TEST_P(LogFailureTest, SnapshotThatMetTheFailureDoesNotWaitForItsEnd) {
  StartReady();
  const StreamId stream = MustRegister("a");
  log_.SetReopenFails(true);
  log_.Hold();
  ASSERT_TRUE(Offer(stream, 0));
  log_.WaitForHeldAppend();
  Result<SnapshotInfo> snapshot = MakeError(ErrorCode::kInternal, "not asked");
  std::thread asking([&] { snapshot = service_->CreateSnapshot(); });
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/false);
  log_.Release();
  asking.join();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().reason, "not_ready");
  log_.SetReopenFails(false);
  EXPECT_TRUE(WaitForHits("a", 0));
  EXPECT_TRUE(service_->CreateSnapshot());
}

TEST_P(LogFailureTest, StopAnswersThoseWhoWaitForAFailedLog) {
  StartReady();
  log_.SetReopenFails(true);
  log_.Hold();
  Result<RegisterOutcome> first = MakeError(ErrorCode::kInternal, "not asked"), second = first;
  std::thread one([&] { first = service_->Register(Request("a")); });
  log_.WaitForHeldAppend();
  std::thread two([&] { second = service_->Register(Request("b")); });
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/false);
  log_.Release();
  ASSERT_TRUE(changes_.WaitFor([&] { return log_.reopens() > 0; }));
  service_->Stop();
  one.join();
  two.join();
  for (const auto* outcome : {&first, &second}) {
    ASSERT_FALSE(*outcome);
    EXPECT_EQ(outcome->error().reason, "not_ready");
  }
  EXPECT_EQ(log_.LastSeq(), 0u);
}

// Records are gone that nobody has any more: the state goes back to the log, and the streams are
// started again from there. What was read by the streams that were ahead is not applied.
TEST_P(LogFailureTest, LostRecordsRebuildTheStateAndRestartTheStreams) {
  StartReady();
  const StreamId stream = MustRegister("a");
  ASSERT_TRUE(Offer(stream, 0));
  ASSERT_TRUE(WaitForHits("a", 0));
  ASSERT_TRUE(log_.inner.Sync());
  const Seq kept = log_.LastSeq();
  for (std::uint64_t n = 1; n < 4; ++n) {
    ASSERT_TRUE(Offer(stream, n));
    ASSERT_TRUE(WaitForHits("a", n));
  }
  log_.Hold();
  ASSERT_TRUE(Offer(stream, 4));
  log_.WaitForHeldAppend();
  ASSERT_TRUE(Offer(stream, 5));
  log_.inner.CrashForTest(/*lose_unsynced=*/true);
  const bool lost = log_.LastSeq() == kept;
  log_.Release();

  if (lost && GetParam() == LogSync::kNever) {
    ASSERT_TRUE(WaitForLine("event=log_lost_records"));
    ASSERT_TRUE(changes_.WaitFor([&] { return source_.Count("start 1") == 2; }));
    EXPECT_EQ(source_.seed(stream).cursor, 0u);
    EXPECT_EQ(source_.calls(), (std::vector<std::string>{"start 1", "stop 1", "start 1"}));
    // The stream reads again what was lost.
    for (std::uint64_t n = 1; n < 6; ++n) ASSERT_TRUE(Offer(stream, n));
  }
  EXPECT_TRUE(WaitForHits("a", 5));
  EXPECT_EQ(LoggedNumbers(stream), (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().ready; }));
  ExpectStateIsTheLogs();
}

INSTANTIATE_TEST_SUITE_P(Policies, LogFailureTest,
                         ::testing::Values(LogSync::kAlways, LogSync::kInterval, LogSync::kNever),
                         [](const auto& info) -> std::string {
                           return info.param == LogSync::kAlways     ? "Always"
                                  : info.param == LogSync::kInterval ? "Interval"
                                                                     : "Never";
                         });

class SyncTest : public ServiceFixture {};

TEST_F(SyncTest, IntervalSyncsWhatWasAppended) {
  StartReady();
  const StreamId stream = MustRegister("a");
  ASSERT_TRUE(Offer(stream, 0));
  EXPECT_TRUE(changes_.WaitFor([&] { return log_.inner.SyncedSeqForTest() == 2; }));
  EXPECT_TRUE(changes_.WaitFor([&] { return service_->GetStatus()->log_synced == 2; }));
}

TEST_F(SyncTest, AlwaysAppendsEveryRecordSynced) {
  options_.log_sync = LogSync::kAlways;
  StartReady();
  const StreamId stream = MustRegister("a");
  ASSERT_TRUE(Offer(stream, 0));
  ASSERT_TRUE(WaitForHits("a", 0));
  EXPECT_EQ(log_.synced_appends(), 2);
  EXPECT_EQ(log_.inner.SyncedSeqForTest(), 2u);
}

TEST_F(SyncTest, NeverSyncsRegistrationsAndTheEndOnly) {
  options_.log_sync = LogSync::kNever;
  StartReady();
  const StreamId stream = MustRegister("a");
  ASSERT_TRUE(Offer(stream, 0));
  ASSERT_TRUE(WaitForHits("a", 0));
  EXPECT_EQ(log_.synced_appends(), 1);
  EXPECT_EQ(log_.syncs(), 0);
  service_->Stop();
  EXPECT_EQ(log_.inner.SyncedSeqForTest(), 2u);
}

// What a failed sync left unwritten is written again, not synced again as if it were there.
TEST_F(SyncTest, FailedSyncWritesTheRecordsAgain) {
  options_.log_sync_interval_ms = 3'600'000;
  StartReady();
  const StreamId stream = MustRegister("a");
  for (std::uint64_t n = 0; n < 3; ++n) {
    ASSERT_TRUE(Offer(stream, n));
    ASSERT_TRUE(WaitForHits("a", n));
  }
  EXPECT_EQ(log_.inner.SyncedSeqForTest(), 1u);
  log_.LoseTailAtNextSync();
  ASSERT_FALSE(log_.Sync());
  EXPECT_EQ(log_.LastSeq(), 1u);
  // The next write finds the handle ended.
  ASSERT_TRUE(Offer(stream, 3));
  ASSERT_TRUE(WaitForHits("a", 3));
  EXPECT_EQ(LoggedNumbers(stream), (Numbers{0, 1, 2, 3}));
  EXPECT_GE(log_.inner.SyncedSeqForTest(), 4u);
  EXPECT_EQ(source_.calls(), std::vector<std::string>{"start 1"});
  ExpectStateIsTheLogs();
}

TEST_F(SyncTest, SyncThatFailsOnItsIntervalIsRecoveredWithoutAnyFrame) {
  StartReady();
  const StreamId stream = MustRegister("a");
  log_.LoseTailAtNextSync();
  ASSERT_TRUE(Offer(stream, 0));
  ASSERT_TRUE(WaitForLine("event=log_recovered"));
  EXPECT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().ready; }));
  EXPECT_EQ(LoggedNumbers(stream), Numbers{0});
  EXPECT_EQ(log_.inner.SyncedSeqForTest(), 2u);
  ExpectStateIsTheLogs();
}

// It is in the apply thread's hands when that sees that a sync has failed meanwhile.
TEST_F(SyncTest, RegistrationBehindAFailedSyncDoesNotWaitForItsEnd) {
  StartReady();
  const StreamId stream = MustRegister("a");
  const int syncs = log_.syncs();
  log_.HoldSync();
  ASSERT_TRUE(Offer(stream, 0));
  log_.WaitForSync(syncs + 1);
  log_.Hold();
  ASSERT_TRUE(Offer(stream, 1));
  log_.WaitForHeldAppend();
  Result<RegisterOutcome> outcome = MakeError(ErrorCode::kInternal, "not asked");
  std::thread client([&] { outcome = service_->Register(Request("b")); });
  ASSERT_TRUE(changes_.WaitFor([&] { return queued_commands() == 1; }));
  log_.SetReopenFails(true);
  log_.SetSyncFails(true);
  log_.ReleaseSync();
  ASSERT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().phase == "log_failed"; }));
  log_.Release();
  client.join();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().reason, "not_ready");
  EXPECT_EQ(service_->GetReadiness().phase, "log_failed");
  log_.SetSyncFails(false);
  log_.SetReopenFails(false);
  EXPECT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().ready; }));
  EXPECT_EQ(LoggedNumbers(stream), (Numbers{0, 1}));
  ExpectStateIsTheLogs();
}

TEST_F(SyncTest, FullBufferOfUnsyncedRecordsForcesASync) {
  options_.log_sync_interval_ms = 3'600'000;
  options_.limits.unsynced_bytes_max = 250;  // two frames of 100
  StartReady();
  const StreamId stream = MustRegister("a");
  for (std::uint64_t n = 0; n < 3; ++n) {
    ASSERT_TRUE(Offer(stream, n));
    ASSERT_TRUE(WaitForHits("a", n));
  }
  EXPECT_TRUE(changes_.WaitFor([&] { return log_.inner.SyncedSeqForTest() == 4; }));
}

}  // namespace
}  // namespace conductor
