// Static registrations: reconciled with the configuration at every start.
#include "tests/src/service/service_fixture.h"

namespace conductor {
namespace {

class StaticRegistrationTest : public ServiceFixture {
 protected:
  // Ends the service and starts another one on the same log.
  void Restart(std::vector<Registration> statics) {
    service_->Stop();
    service_.reset();
    StartReady(std::move(statics));
  }
  std::vector<std::string> Instances() const {
    std::vector<std::string> names;
    const auto services = service_->ListServices();
    if (!services) return names;
    for (const ServiceView& view : *services) {
      names.push_back(view.registration.instance_id);
    }
    return names;
  }
};

using Names = std::vector<std::string>;

TEST_F(StaticRegistrationTest, NewOnesAreRegisteredAndStartedOnce) {
  StartReady({Static("a"), Static("b")});
  EXPECT_TRUE(changes_.WaitFor([&] { return source_.calls().size() >= 2; }));
  EXPECT_EQ(Instances(), (Names{"a", "b"}));
  EXPECT_EQ(View("a").registration.origin, RegistrationOrigin::kStatic);
  EXPECT_EQ(log_.inner.SyncedSeqForTest(), log_.LastSeq());
  // An operator's answer proves that the start is over.
  MustRegister("c");
  EXPECT_EQ(source_.Count("start 1"), 1);
  EXPECT_EQ(source_.Count("start 2"), 1);
}

TEST_F(StaticRegistrationTest, ManyShareFewSyncedRecords) {
  constexpr int kPublishers = 200;
  std::vector<Registration> statics;
  for (int i = 0; i < kPublishers; ++i) statics.push_back(Static("s" + std::to_string(i)));
  StartReady(statics);
  MustRegister("last");
  EXPECT_EQ(service_->ListServices()->size(), kPublishers + 1u);
  EXPECT_LE(log_.synced_appends(), 4);
  for (int i = 1; i <= kPublishers; ++i) {
    EXPECT_EQ(source_.Count("start " + std::to_string(i)), 1) << i;
  }
}

TEST_F(StaticRegistrationTest, TheSameFileAgainChangesNothing) {
  StartReady({Static("a"), Static("b")});
  MustRegister("c");
  const Seq before = log_.LastSeq();
  Restart({Static("a"), Static("b")});
  EXPECT_EQ(log_.LastSeq(), before);
  EXPECT_EQ(Instances(), (Names{"a", "b", "c"}));
}

TEST_F(StaticRegistrationTest, OnesThatVanishedAreUnregisteredDynamicOnesStay) {
  StartReady({Static("a"), Static("b")});
  MustRegister("c");
  Restart({Static("b")});
  EXPECT_EQ(Instances(), (Names{"b", "c"}));
  ExpectStateIsTheLogs();
}

TEST_F(StaticRegistrationTest, ChangedOnesAreRegisteredAnew) {
  StartReady({Static("a"), Static("b")});
  const StreamId before = View("a").stream, kept = View("b").stream;
  Registration changed = Static("a");
  changed.replay_endpoint = "inproc://a-replay";
  Restart({changed, Static("b")});
  EXPECT_EQ(Instances(), (Names{"b", "a"}));
  EXPECT_NE(View("a").stream, before);
  EXPECT_EQ(View("a").registration.replay_endpoint, "inproc://a-replay");
  EXPECT_EQ(View("b").stream, kept);
}

TEST_F(StaticRegistrationTest, EndpointsMayBeSwapped) {
  StartReady({Static("a"), Static("b")});
  Registration a = Static("a"), b = Static("b");
  std::swap(a.endpoint, b.endpoint);
  Restart({a, b});
  EXPECT_EQ(View("a").registration.endpoint, "inproc://b");
  EXPECT_EQ(View("b").registration.endpoint, "inproc://a");
}

TEST_F(StaticRegistrationTest, ADynamicOneUnderTheKeyGivesWayToTheFile) {
  StartReady();
  MustRegister("a");
  Registration wanted = Static("a");
  wanted.endpoint = "inproc://elsewhere";
  Restart({wanted});
  EXPECT_EQ(View("a").registration.endpoint, "inproc://elsewhere");
  EXPECT_EQ(View("a").registration.origin, RegistrationOrigin::kStatic);
}

TEST_F(StaticRegistrationTest, AConflictIsReportedAndTheOthersAreServed) {
  StartReady();
  MustRegister("a");
  Registration conflict = Static("b");
  conflict.endpoint = "inproc://a";
  Restart({conflict, Static("c")});
  EXPECT_TRUE(WaitForLine("event=static_registration_refused instance=b"));
  const auto status = service_->GetStatus();
  ASSERT_TRUE(status);
  ASSERT_EQ(status->refused_statics.size(), 1u);
  EXPECT_NE(status->refused_statics[0].find("instance=b"), std::string::npos);
  EXPECT_EQ(Instances(), (Names{"a", "c"}));
}

TEST_F(StaticRegistrationTest, TheyAreMadeWhenTheLogTakesWritesAgain) {
  log_.SetReopenFails(true);
  log_.inner.FailNextAppendForTest(DiskError(), /*written=*/false);
  Start({Static("a"), Static("b")});
  ASSERT_TRUE(changes_.WaitFor([&] { return log_.reopens() >= 2; }));
  EXPECT_EQ(service_->GetReadiness().phase, "log_failed");
  log_.SetReopenFails(false);
  EXPECT_TRUE(changes_.WaitFor([&] { return service_->GetReadiness().ready; }));
  EXPECT_EQ(Instances(), (Names{"a", "b"}));
  EXPECT_TRUE(service_->GetStatus()->refused_statics.empty());
}

}  // namespace
}  // namespace conductor
