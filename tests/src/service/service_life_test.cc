// The service's life: rebuilding, readiness, damage, the end.
#include <thread>

#include "tests/src/service/service_fixture.h"

namespace conductor {
namespace {

class ServiceLifeTest : public ServiceFixture {
 protected:
  // Over the same log. Why the second life ended.
  Error RestartToFail() {
    service_->Stop();
    service_ = std::make_unique<ConductorService>(options_, log_, snapshots_, clock_);
    std::atomic<bool> told{false};
    service_->OnFatal([&] { told = true; });
    service_->Start(source_, {});
    EXPECT_TRUE(changes_.WaitFor([&] { return told.load(); }));
    return service_->FatalError().value_or(Error{});
  }
};

TEST_F(ServiceLifeTest, BeforeTheStartNothingIsAnswered) {
  service_ = std::make_unique<ConductorService>(options_, log_, snapshots_, clock_);
  EXPECT_FALSE(service_->GetReadiness().ready);
  PromptQuery query;
  query.context = StateWorld::Key();
  const auto answer = service_->Query(query);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, "not_ready");
  EXPECT_EQ(service_->Register(Request("a")).error().reason, "not_ready");
  EXPECT_EQ(service_->ListServices().error().reason, "not_ready");
}

TEST_F(ServiceLifeTest, ARestartGivesTheSameAnswersAndDigest) {
  StartReady();
  const StreamId stream = MustRegister("a");
  for (std::uint64_t n = 0; n < 4; ++n) ASSERT_TRUE(Offer(stream, n));
  ASSERT_TRUE(WaitForHits("a", 3));
  const std::string digest = service_->GetStatus()->digest;
  service_->Stop();
  service_.reset();
  StartReady();
  EXPECT_EQ(service_->GetStatus()->digest, digest);
  for (std::uint64_t n = 0; n < 4; ++n) EXPECT_EQ(Hits("a", n), kTestBlockSize);
  // The stream goes on where the log ends, and knows the last frames.
  ASSERT_TRUE(changes_.WaitFor([&] { return source_.Count("start 1") == 2; }));
  const StreamSeed seed = source_.seed(stream);
  EXPECT_EQ(seed.cursor, 3u);
  EXPECT_EQ(seed.recent.size(), 4u);
}

TEST_F(ServiceLifeTest, ItIsReadyWhenTheFirstCatchUpOfEveryStreamIsOver) {
  source_.SetCaughtUp(false);
  Start();
  // Without streams there is nothing to wait for; one that joins later holds nobody up.
  ASSERT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().ready; }));
  MustRegister("a");
  EXPECT_TRUE(service_->GetReadiness().ready);
  service_->Stop();
  service_.reset();

  Start();
  ASSERT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().streams_waiting == 1; }));
  const Readiness waiting = service_->GetReadiness();
  EXPECT_FALSE(waiting.ready);
  EXPECT_EQ(waiting.phase, "catching_up");
  EXPECT_EQ(waiting.streams_waiting, 1u);
  EXPECT_EQ(Hits("a", 0), 0u);  // queries are answered meanwhile
  source_.SetCaughtUp(true);
  EXPECT_TRUE(service_->GetReadiness().ready);
  source_.SetCaughtUp(false);
  EXPECT_TRUE(service_->GetReadiness().ready);  // it stays so
}

TEST_F(ServiceLifeTest, ItIsNotReadyBeforeTheStaticStreamsAreStarted) {
  log_.Hold();
  Start({Static("a")});
  log_.WaitForHeldAppend();
  const Readiness readiness = service_->GetReadiness();
  EXPECT_FALSE(readiness.ready);
  EXPECT_EQ(readiness.phase, "catching_up");
  log_.Release();
  ASSERT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().ready; }));
  EXPECT_EQ(source_.Count("start 1"), 1);
}

TEST_F(ServiceLifeTest, ADamagedLogIsFatalAndSaysWhy) {
  StartReady();
  MustRegister("a");
  log_.damaged = true;
  const Error error = RestartToFail();
  EXPECT_EQ(error.code, ErrorCode::kDataLoss);
  EXPECT_NE(error.message.find("crc 1, expected 2"), std::string::npos);
  EXPECT_FALSE(service_->GetReadiness().ready);
  EXPECT_EQ(service_->Register(Request("b")).error().reason, "not_ready");
  EXPECT_EQ(source_.Count("start 1"), 1);  // of the first service only
}

// Whoever supervises the daemon starts it again, which a damaged log would not be worth.
TEST_F(ServiceLifeTest, ALogThatCannotBeReadNowIsFatalButNotDamaged) {
  StartReady();
  MustRegister("a");
  log_.unreadable = true;
  const Error error = RestartToFail();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_NE(error.message.find("Input/output error"), std::string::npos);
  EXPECT_EQ(service_->GetReadiness().phase, "log_failed");
  const auto status = service_->GetStatus();
  ASSERT_TRUE(status);
  EXPECT_NE(status->log_error.find("Input/output error"), std::string::npos);
}

TEST_F(ServiceLifeTest, StopAppliesWhatWasHandedOverAndSyncsIt) {
  options_.log_sync = LogSync::kNever;
  StartReady();
  const StreamId stream = MustRegister("a");
  log_.Hold();
  for (std::uint64_t n = 0; n < 3; ++n) ASSERT_TRUE(Offer(stream, n));
  log_.WaitForHeldAppend();
  std::thread stop([&] { service_->Stop(); });
  log_.Release();
  stop.join();
  EXPECT_EQ(LoggedNumbers(stream), (Numbers{0, 1, 2}));
  EXPECT_EQ(log_.inner.SyncedSeqForTest(), log_.LastSeq());
  EXPECT_FALSE(Offer(stream, 3));
  EXPECT_GE(source_.Count("stop all"), 1);
}

TEST_F(ServiceLifeTest, EveryCommandIsAnsweredAtTheEnd) {
  StartReady();
  log_.Hold();
  constexpr int kCommands = 8;
  std::vector<Result<RegisterOutcome>> outcomes(kCommands,
                                                MakeError(ErrorCode::kInternal, "not asked"));
  std::vector<std::thread> threads;
  for (int i = 0; i < kCommands; ++i) {
    threads.emplace_back([&, i] {
      outcomes[static_cast<std::size_t>(i)] = service_->Register(Request("s" + std::to_string(i)));
    });
  }
  log_.WaitForHeldAppend();
  std::thread stop([&] { service_->Stop(); });
  log_.Release();
  stop.join();
  for (std::thread& thread : threads) thread.join();
  std::uint64_t registered = 0;
  ForFacts([&](const Fact& fact) { registered += std::holds_alternative<Registered>(fact); });
  std::uint64_t acknowledged = 0;
  for (const auto& outcome : outcomes) {
    acknowledged += outcome ? 1 : 0;
    if (!outcome) {
      EXPECT_EQ(outcome.error().reason, "not_ready");
    }
  }
  // What was acknowledged is in the log, and nothing else is.
  EXPECT_EQ(registered, acknowledged);
  EXPECT_GE(acknowledged, 1u);
}

TEST_F(ServiceLifeTest, AFullQueueTakesNothingAndLosesNothing) {
  options_.limits.queue_frames_max = 2;
  StartReady();
  const StreamId stream = MustRegister("a");
  log_.Hold();
  ASSERT_TRUE(Offer(stream, 0));
  log_.WaitForHeldAppend();
  ASSERT_TRUE(Offer(stream, 1));
  ASSERT_TRUE(Offer(stream, 2));
  std::vector<Fact> facts = {MakeFrame(stream, 3)};
  EXPECT_FALSE(service_->Offer(stream, facts, 100));
  EXPECT_EQ(facts.size(), 1u);  // still the caller's
  log_.Release();
  ASSERT_TRUE(changes_.WaitFor([&] { return service_->Offer(stream, facts, 100); }));
  EXPECT_TRUE(WaitForHits("a", 3));
  EXPECT_EQ(LoggedNumbers(stream), (Numbers{0, 1, 2, 3}));
}

}  // namespace
}  // namespace conductor
