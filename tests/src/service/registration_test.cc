// Registrations: every conflict, what repeats, what is refused, and what an unregistration leaves.
#include <functional>
#include <thread>

#include "tests/src/service/service_fixture.h"

namespace conductor {
namespace {

class RegistrationServiceTest : public ServiceFixture {
 protected:
  void ExpectConflict(const RegistrationRequest& request, const std::string& field) {
    const Seq before = log_.LastSeq();
    const auto outcome = service_->Register(request);
    ASSERT_FALSE(outcome) << field;
    EXPECT_EQ(outcome.error().code, ErrorCode::kInvalidArgument) << field;
    EXPECT_EQ(outcome.error().reason, "invalid_registration") << field;
    EXPECT_EQ(outcome.error().field, field);
    EXPECT_NE(outcome.error().message.find(field), std::string::npos);
    EXPECT_EQ(log_.LastSeq(), before);
  }
  // A registration of every field.
  static RegistrationRequest Full() {
    RegistrationRequest request = Request("a");
    request.replay_endpoint = "inproc://a-replay";
    request.snapshot_endpoint = "inproc://a-snapshot";
    request.topic = "topic";
    request.lora_name = "lora";
    return request;
  }
};

TEST_F(RegistrationServiceTest, OneIsOnDiskWhenItIsAcknowledged) {
  options_.log_sync = LogSync::kNever;
  StartReady();
  const auto outcome = service_->Register(Request("a"));
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->already);
  EXPECT_EQ(outcome->instance_id, "a");
  EXPECT_EQ(log_.inner.SyncedSeqForTest(), 1u);
  EXPECT_EQ(source_.calls(), std::vector<std::string>{"start 1"});
}

TEST_F(RegistrationServiceTest, TheIdenticalOneAgainChangesNothing) {
  StartReady();
  ASSERT_TRUE(service_->Register(Full()));
  const auto again = service_->Register(Full());
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->already);
  RegistrationRequest with_group = Full();
  with_group.cache_group = 0;
  EXPECT_TRUE(service_->Register(with_group)->already);
  EXPECT_EQ(log_.LastSeq(), 1u);
  EXPECT_EQ(source_.calls(), std::vector<std::string>{"start 1"});
}

TEST_F(RegistrationServiceTest, EveryOtherValueUnderAUsedKeyNamesItsField) {
  StartReady();
  ASSERT_TRUE(service_->Register(Full()));
  using Change = std::function<void(RegistrationRequest&)>;
  const std::vector<std::pair<std::string, Change>> changes = {
      {"endpoint", [](auto& r) { r.endpoint = "inproc://other"; }},
      {"replay_endpoint", [](auto& r) { r.replay_endpoint = "inproc://other"; }},
      {"replay_endpoint", [](auto& r) { r.replay_endpoint.reset(); }},
      {"snapshot_endpoint", [](auto& r) { r.snapshot_endpoint.reset(); }},
      {"topic", [](auto& r) { r.topic = "other"; }},
      {"topic", [](auto& r) { r.topic.reset(); }},
      {"type",
       [](auto& r) {
         r.type = "SGLang";
         r.hash_profile = RegistrationRequest::Profile{"sglang", "sha256_raw", "0", "first64_be"};
       }},
      {"modelname", [](auto& r) { r.modelname = "other"; }},
      {"lora_name", [](auto& r) { r.lora_name = "other"; }},
      {"block_size", [](auto& r) { r.block_size = 8; }},
      {"algorithm", [](auto& r) { r.hash_profile->algorithm = "sha256"; }},
      {"python_hash_seed", [](auto& r) { r.hash_profile->python_hash_seed = "1"; }},
      {"pool_parts",
       [](auto& r) {
         r.pool_parts = {{"tp", 8}};
       }},
  };
  for (const auto& [field, change] : changes) {
    RegistrationRequest request = Full();
    change(request);
    ExpectConflict(request, field);
  }
  EXPECT_EQ(source_.calls(), std::vector<std::string>{"start 1"});
}

TEST_F(RegistrationServiceTest, AnEndpointIsOneInEverySpelling) {
  StartReady();
  const std::vector<std::vector<std::string>> same = {
      {"tcp://*:5557", "tcp://0.0.0.0:5557", "tcp://[::]:5557"},
      {"tcp://localhost:5558", "tcp://127.0.0.1:5558"}};
  for (const auto& spellings : same) {
    RegistrationRequest first = Request("of " + spellings[0]);
    first.endpoint = spellings[0];
    ASSERT_TRUE(service_->Register(first));
    for (const std::string& spelling : spellings) {
      RegistrationRequest other = Request("other");
      other.endpoint = spelling;
      ExpectConflict(other, "endpoint");
    }
  }
  RegistrationRequest elsewhere = Request("elsewhere");
  elsewhere.endpoint = "tcp://*:5558";
  EXPECT_TRUE(service_->Register(elsewhere));
}

TEST_F(RegistrationServiceTest, AnEndpointBelongsToOneRegistration) {
  StartReady();
  MustRegister("a");
  RegistrationRequest request = Request("b");
  request.endpoint = "inproc://a";
  ExpectConflict(request, "endpoint");
  ASSERT_TRUE(service_->Unregister({"a", "default", 0}));
  EXPECT_TRUE(service_->Register(request));
}

TEST_F(RegistrationServiceTest, AContextHasOneProfile) {
  StartReady();
  MustRegister("a");
  RegistrationRequest seed = Request("b");
  seed.hash_profile->python_hash_seed = "1";
  ExpectConflict(seed, "python_hash_seed");
  RegistrationRequest algorithm = Request("b");
  algorithm.hash_profile->algorithm = "sha256";
  ExpectConflict(algorithm, "algorithm");
  RegistrationRequest strategy = Request("b");
  strategy.type = "SGLang";
  strategy.hash_profile = RegistrationRequest::Profile{"sglang", "sha256_raw", "0", "first64_be"};
  ExpectConflict(strategy, "strategy");
  // Another tenant, or an emptied context, is another matter.
  RegistrationRequest tenant = seed;
  tenant.tenant_id = "other";
  tenant.endpoint = "inproc://tenant";
  EXPECT_TRUE(service_->Register(tenant));
  ASSERT_TRUE(service_->Unregister({"a", "default", 0}));
  EXPECT_TRUE(service_->Register(seed));
}

TEST_F(RegistrationServiceTest, RanksAndTenantsAreKeysOfTheirOwn) {
  StartReady();
  MustRegister("a");
  RegistrationRequest rank = Request("a");
  rank.dp_rank = 1;
  rank.endpoint = "inproc://rank";
  EXPECT_FALSE(service_->Register(rank)->already);
  RegistrationRequest tenant = Request("a");
  tenant.tenant_id = "other";
  tenant.endpoint = "inproc://tenant";
  EXPECT_FALSE(service_->Register(tenant)->already);
  EXPECT_EQ(service_->ListServices()->size(), 3u);
}

TEST_F(RegistrationServiceTest, AnInvalidOneNeverReachesTheQueue) {
  StartReady();
  RegistrationRequest request = Request("a");
  request.block_size = 0;
  const auto outcome = service_->Register(request);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().reason, "out_of_range");
  EXPECT_EQ(outcome.error().field, "block_size");
  EXPECT_EQ(log_.LastSeq(), 0u);
}

TEST_F(RegistrationServiceTest, TheirNumberIsLimited) {
  options_.limits.registrations_max = 2;
  StartReady();
  MustRegister("a");
  MustRegister("b");
  const auto third = service_->Register(Request("c"));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(third.error().reason, "too_large");
  EXPECT_NE(third.error().message.find("registrations_max"), std::string::npos);
  EXPECT_TRUE(service_->Register(Request("a"))->already);
  ASSERT_TRUE(service_->Unregister({"a", "default", 0}));
  MustRegister("c");
}

TEST_F(RegistrationServiceTest, CommandsThatWaitTogetherShareOneSyncedRecord) {
  StartReady();
  log_.Hold();
  std::vector<std::thread> threads;
  threads.emplace_back([&] { EXPECT_TRUE(service_->Register(Request("first"))); });
  log_.WaitForHeldAppend();
  // These wait behind the one that is being written, in whatever order.
  for (const char* name : {"a", "b", "c", "d"}) {
    threads.emplace_back([&, name] { EXPECT_TRUE(service_->Register(Request(name))); });
  }
  log_.Release();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(service_->ListServices()->size(), 5u);
  EXPECT_EQ(log_.synced_appends(), static_cast<int>(log_.LastSeq()));
  ExpectStateIsTheLogs();
}

TEST_F(RegistrationServiceTest, OneWhoseStreamCannotStartIsTakenBack) {
  StartReady();
  source_.Refuse(true);
  const auto outcome = service_->Register(Request("a"));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().field, "endpoint");
  EXPECT_TRUE(service_->ListServices()->empty());
  source_.Refuse(false);
  EXPECT_FALSE(service_->Register(Request("a"))->already);
  ExpectStateIsTheLogs();
}

TEST_F(RegistrationServiceTest, UnregisterOfAnUnknownKeyIsNotFound) {
  StartReady();
  MustRegister("a");
  for (const ServiceKey& key : {ServiceKey{"b", "default", 0}, ServiceKey{"a", "other", 0},
                                ServiceKey{"a", "default", 1}}) {
    const auto outcome = service_->Unregister(key);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(outcome.error().reason, "not_found");
  }
  EXPECT_EQ(log_.LastSeq(), 1u);
}

TEST_F(RegistrationServiceTest, UnregisterStopsTheStreamThenForgetsIt) {
  StartReady();
  const StreamId stream = MustRegister("a");
  ASSERT_TRUE(Offer(stream, 0));
  ASSERT_TRUE(WaitForHits("a", 0));
  const auto answer = service_->Unregister({"a", "", 0});  // the empty tenant is the default one
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, "a|default|0");
  EXPECT_EQ(source_.calls(), (std::vector<std::string>{"start 1", "stop 1"}));
  EXPECT_EQ(log_.inner.SyncedSeqForTest(), log_.LastSeq());
  EXPECT_EQ(Hits("a", 0), 0u);
  EXPECT_EQ(service_->GetStatus()->blocks, 0u);
}

TEST_F(RegistrationServiceTest, NoQueuedFrameOfAnUnregisteredStreamResurfaces) {
  StartReady();
  const StreamId stream = MustRegister("a");
  const StreamId other = MustRegister("b");
  log_.Hold();
  ASSERT_TRUE(Offer(other, 0));
  log_.WaitForHeldAppend();
  for (std::uint64_t n = 0; n < 3; ++n) ASSERT_TRUE(Offer(stream, n));
  std::thread unregister([&] { EXPECT_TRUE(service_->Unregister({"a", "default", 0})); });
  log_.Release();
  unregister.join();
  // Nor one that was offered too late, nor any under the key's next registration.
  ASSERT_TRUE(Offer(stream, 3));
  const StreamId again = MustRegister("a");
  EXPECT_NE(again, stream);
  ASSERT_TRUE(Offer(stream, 4));
  ASSERT_TRUE(Offer(other, 1));
  ASSERT_TRUE(WaitForHits("b", 1));
  bool gone = false;
  ForFacts([&](const Fact& fact) {
    gone = gone || std::holds_alternative<Unregistered>(fact);
    const auto* frame = std::get_if<Frame>(&fact);
    if (gone && frame != nullptr) {
      EXPECT_NE(frame->stream, stream);
    }
  });
  EXPECT_TRUE(gone);
  for (std::uint64_t n = 0; n < 5; ++n) EXPECT_EQ(Hits("a", n), 0u);
  EXPECT_FALSE(View("a").last_seq);
  ExpectStateIsTheLogs();
}

}  // namespace
}  // namespace conductor
