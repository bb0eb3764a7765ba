// RpcClient against the real server: every call of the service, and its errors.
#include "rpc/client.h"

#include <gtest/gtest.h>

#include <thread>

#include "rpc/admin_handlers.h"
#include "rpc/rpc_server.h"
#include "tests/rpc/scripted_service.h"
#include "tests/slowness.h"

namespace conductor::rpc {
namespace {

class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = RpcServer::Start(service_, {});
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    client_ = Connect(3'000 * kSlowness);
  }
  void TearDown() override { service_.Release(); }

  std::unique_ptr<RpcClient> Connect(std::uint32_t request_timeout_ms) {
    auto client = RpcClient::Connect("127.0.0.1:" + std::to_string(server_->port()),
                                     {.request_timeout_ms = request_timeout_ms});
    EXPECT_TRUE(client) << client.error().message;
    return client ? *std::move(client) : nullptr;
  }
  static PromptQuery MakeQuery(const std::string& model,
                               std::span<const std::int32_t> tokens = {}) {
    PromptQuery query;
    query.context = {"default", model, "", 16};
    query.token_ids = tokens;
    return query;
  }
  static RegistrationRequest MakeRegistrationRequest() {
    RegistrationRequest request;
    request.instance_id = "i";
    request.endpoint = "tcp://127.0.0.1:5557";
    request.type = "vLLM";
    request.modelname = "m";
    request.block_size = 16;
    request.dp_rank = 1;
    request.hash_profile = {"vllm_v1", "sha256_cbor", "0", "low64_be"};
    return request;
  }

  ScriptedService service_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcClient> client_;
};

TEST_F(ClientTest, AQueryArrivesWhole) {
  const std::vector<std::int32_t> tokens = {1, -2, 3};
  PromptQuery query = MakeQuery("echo", tokens);
  query.context.tenant_id = "t";
  query.context.lora_name = "l";
  query.cache_salt = "s";
  query.options = {"f", 5, 6, false};
  query.extra_keys = {{{ExtraKey::Kind::kText, "x", 0}}};
  const auto answer = client_->Query(query);
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(answer->instances.size(), 1u);
  EXPECT_EQ(answer->instances[0].instance_id, ScriptedService::EchoOf(query));
  EXPECT_EQ(answer->log_seq, 42u);
}

TEST_F(ClientTest, AMillionTokensFit) {
  const std::vector<std::int32_t> tokens(service_.limits().tokens_max, 7);
  const auto answer = client_->Query(MakeQuery("echo", tokens));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->instances[0].best.disk, tokens.size());
}

TEST_F(ClientTest, MoreTokensAreTooLarge) {
  const std::vector<std::int32_t> tokens(service_.limits().tokens_max + 1, 7);
  const auto answer = client_->Query(MakeQuery("echo", tokens));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(answer.error().reason, "too_large");
  EXPECT_EQ(answer.error().field, "token_ids");
}

TEST_F(ClientTest, AMessageAboveTheLimitIsRefusedAndTheClientGoesOn) {
  const std::vector<std::int32_t> tokens(20'000'000, 7);
  const auto answer = client_->Query(MakeQuery("echo", tokens));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kResourceExhausted) << answer.error().message;
  EXPECT_TRUE(client_->Query(MakeQuery("echo")));
}

TEST_F(ClientTest, RanksAndDegradedInstancesComeBack) {
  PromptQuery query = MakeQuery("ranks");
  query.options.detail = true;
  const auto answer = client_->Query(query);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->instances.size(), 2u);
  EXPECT_EQ(answer->instances[0].best, (TierCounts{32, 32, 32, 48}));
  EXPECT_EQ(answer->instances[0].ranks.begin()->first, 0u);
  EXPECT_EQ(answer->instances[0].ranks.begin()->second, (TierCounts{16, 32, 32, 48}));
  EXPECT_EQ(answer->instances[1].stream_state, StreamState::kDegraded);
  EXPECT_EQ(answer->degraded, std::vector<std::string>{"b"});
}

TEST_F(ClientTest, DetailSaysWhyNothingMatched) {
  PromptQuery query = MakeQuery("empty");
  query.options.detail = true;
  const auto answer = client_->Query(query);
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->context_known);
  EXPECT_EQ(answer->hint, "no context 'empty'");
  ASSERT_EQ(answer->nearest_contexts.size(), 1u);
  EXPECT_EQ(answer->nearest_contexts[0].model_name, "ranks");
}

TEST_F(ClientTest, AnIdThatIsNotUtf8DoesNotFailTheAnswer) {
  const auto answer = client_->Query(MakeQuery("bytes"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->instances[0].instance_id, "bad\xEF\xBF\xBDid");
}

TEST_F(ClientTest, HashesArriveWhole) {
  const std::vector<std::uint64_t> hashes = {~std::uint64_t{0}, 1};
  const auto answer = client_->QueryByHash(
      {.context = {"default", "echo", "", 16}, .hashes = hashes, .options = {}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->instances[0].instance_id, "xor=" + std::to_string(~std::uint64_t{1}));
}

TEST_F(ClientTest, ABatchAnswersEachPrompt) {
  const std::vector<std::int32_t> tokens = {1};
  const std::vector<PromptQuery> queries = {MakeQuery("echo", tokens), MakeQuery("internal"),
                                            MakeQuery("")};
  const auto answers = client_->QueryBatch(queries);
  ASSERT_TRUE(answers) << answers.error().message;
  ASSERT_EQ(answers->size(), 3u);
  EXPECT_EQ((*answers)[0]->instances[0].best.disk, 1u);
  EXPECT_EQ((*answers)[1].error().code, ErrorCode::kInternal);
  EXPECT_EQ((*answers)[2].error().field, "model");
}

TEST_F(ClientTest, ABatchWhileNotReadyFailsWhole) {
  const std::vector<PromptQuery> queries = {MakeQuery("echo"), MakeQuery("not-ready")};
  const auto answers = client_->QueryBatch(queries);
  ASSERT_FALSE(answers);
  EXPECT_EQ(answers.error().reason, "not_ready");
}

TEST_F(ClientTest, ABatchHasALimit) {
  const std::vector<PromptQuery> queries(service_.limits().batch_prompts_max + 1,
                                         MakeQuery("echo"));
  EXPECT_EQ(client_->QueryBatch(queries).error().reason, "too_large");
}

TEST_F(ClientTest, ErrorsKeepCodeReasonAndField) {
  const auto not_ready = client_->Query(MakeQuery("not-ready"));
  ASSERT_FALSE(not_ready);
  EXPECT_EQ(not_ready.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(not_ready.error().reason, "not_ready");
  EXPECT_EQ(not_ready.error().message, "rebuilding: 7 of 100 records");
  const auto internal = client_->Query(MakeQuery("internal"));
  ASSERT_FALSE(internal);
  EXPECT_EQ(internal.error().code, ErrorCode::kInternal);
  EXPECT_EQ(internal.error().reason, "");
}

TEST_F(ClientTest, RegistersAndUnregisters) {
  auto outcome = client_->Register(MakeRegistrationRequest());
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->instance_id, "i");
  EXPECT_FALSE(outcome->already);
  EXPECT_TRUE(client_->Register(MakeRegistrationRequest())->already);
  EXPECT_EQ(client_->Unregister("i", "", 1), "i|default|1");
  const auto again = client_->Unregister("i", "", 1);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(again.error().reason, "not_found");
  EXPECT_EQ(client_->Unregister("i", "", -1).error().field, "dp_rank");
}

TEST_F(ClientTest, ABadRegistrationNamesItsField) {
  auto request = MakeRegistrationRequest();
  request.block_size = -1;
  const auto outcome = client_->Register(request);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(outcome.error().field, "block_size");
}

TEST_F(ClientTest, ServicesComeBackWithTheirDetail) {
  auto request = MakeRegistrationRequest();
  request.cache_group = 0;
  request.topic = "kv";
  ASSERT_TRUE(client_->Register(request));
  const auto services = client_->ListServices();
  ASSERT_TRUE(services) << services.error().message;
  ASSERT_EQ(services->size(), 1u);
  const ServiceView& view = services->front();
  EXPECT_EQ(view.registration.FirstDifference(*MakeRegistration(request)), "");
  EXPECT_TRUE(view.registration.has_cache_group);
  EXPECT_EQ(view.registration.hash_profile, MakeRegistration(request)->hash_profile);
  EXPECT_EQ(view.stream, 1u);
  EXPECT_EQ(view.status.state, StreamState::kDegraded);
  EXPECT_EQ(view.status.last_error, "connection refused");
  EXPECT_EQ(view.status.last_frame_age_ms, 12);
  EXPECT_EQ(view.status.disconnected_for_ms, -1);
  EXPECT_EQ(view.status.counters,
            (std::vector<std::pair<std::string, std::uint64_t>>{{"frames_total", 3}}));
  EXPECT_EQ(view.epoch, 2u);
  EXPECT_EQ(view.last_seq, 9u);
  EXPECT_EQ(view.history_from, std::nullopt);
  EXPECT_EQ(view.lost_ranges, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{4, 6}}));
  EXPECT_EQ(view.hash_check, "verified");
  EXPECT_EQ(view.counters.size(), 1u);
  EXPECT_EQ(view.blocks_by_tier[0], 5u);
}

TEST_F(ClientTest, TheGlobalViewComesBack) {
  ASSERT_TRUE(client_->Register(MakeRegistrationRequest()));
  const auto contexts = client_->GetGlobalView();
  ASSERT_TRUE(contexts) << contexts.error().message;
  ASSERT_EQ(contexts->size(), 1u);
  EXPECT_EQ(contexts->front().key, (ContextKey{"default", "m", "", 16}));
  EXPECT_EQ(contexts->front().prefix_count, 7u);
  EXPECT_EQ(contexts->front().instances,
            (std::map<std::string, std::set<std::uint32_t>>{{"i", {1}}}));
}

TEST_F(ClientTest, AdministrationComesBack) {
  const auto status = client_->GetStatus();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->version, "1.2.3");
  EXPECT_EQ(status->readiness.phase, "ready");
  EXPECT_EQ(status->digest, std::string(32, 'd'));
  EXPECT_EQ(status->log_synced, 41u);
  EXPECT_EQ(status->queue_frames, 16u);
  EXPECT_EQ(status->max_blocks, 17u);
  EXPECT_EQ(status->max_bytes, 18u);
  EXPECT_EQ(status->evicted_blocks, 19u);
  EXPECT_EQ(status->http_port, 13'333);
  EXPECT_EQ(*client_->InspectBlock(~std::uint64_t{0}),
            std::vector<std::string>{"block 18446744073709551615"});
  const auto found = client_->InspectLog(7, 3, 9);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->lines, (std::vector<std::string>{"from 7", "count 3", "stream 9"}));
  EXPECT_EQ(found->next, 9u);
  EXPECT_EQ(found->last, 42u);
  EXPECT_EQ(client_->InspectLog(7, 4'000'000, 0)->lines.at(1),
            "count " + std::to_string(kInspectRecordsMax));
  EXPECT_EQ(client_->InspectLog(1, 3, 0).error().code, ErrorCode::kOutOfRange);
}

TEST_F(ClientTest, RebuildAndSnapshotsOfTheStatusComeBack) {
  const auto status = client_->GetStatus();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->readiness.blocks_done, 1'000u);
  EXPECT_EQ(status->readiness.blocks_per_s, 2.5);
  EXPECT_EQ(status->readiness.percent, 99.5);
  EXPECT_EQ(status->readiness.seconds_left, 0.25);
  EXPECT_EQ(status->readiness.streams_waiting, 3u);
  EXPECT_EQ(status->snapshot_seq, 20u);
  EXPECT_EQ(status->snapshot_age_ms, 21);
  EXPECT_EQ(status->snapshot_bytes, 22u);
  EXPECT_EQ(status->snapshot_percent, 23.5);
  EXPECT_EQ(status->snapshots_made, 24u);
  EXPECT_EQ(status->snapshots_failed, 25u);
  EXPECT_EQ(status->snapshot_error, "26");
  EXPECT_EQ(status->snapshot_interval_events, 27u);
  EXPECT_EQ(status->snapshot_interval_s, 28u);
  EXPECT_EQ(status->log_opening.missing_records, 29u);
  EXPECT_EQ(status->log_opening.dropped_bytes, 30u);
}

TEST_F(ClientTest, SnapshotsAndCheckpointsComeBack) {
  const auto created = client_->CreateSnapshot();
  ASSERT_TRUE(created);
  EXPECT_EQ(created->seq, 42u);
  EXPECT_EQ(created->bytes, 9u);
  EXPECT_EQ(created->path, "snap");
  EXPECT_EQ(created->created_unix_ms, 1'234);
  EXPECT_EQ(created->blocks, 5u);
  EXPECT_EQ(created->digest, std::string(32, 'e'));
  const auto listed = client_->ListSnapshots();
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->at(0).damage, "torn");
  EXPECT_EQ(listed->at(1).bytes, 4u);
  EXPECT_EQ(listed->at(1).damage, "");
  const auto pruned = client_->PruneSnapshots(2);
  ASSERT_TRUE(pruned);
  ASSERT_EQ(pruned->size(), 2u);
  EXPECT_EQ(pruned->at(0).seq, 2u);
  EXPECT_EQ(client_->CreateCheckpoint()->path, "checkpoint");
  EXPECT_TRUE(client_->RemoveCheckpoint("checkpoint"));
  EXPECT_EQ(client_->RemoveCheckpoint("other").error().code, ErrorCode::kNotFound);
}

TEST_F(ClientTest, ACallEndsAtItsDeadlineAndTheClientGoesOn) {
  const auto client = Connect(150);
  const auto start = std::chrono::steady_clock::now();
  const auto answer = client->Query(MakeQuery("block"));
  const auto took = std::chrono::steady_clock::now() - start;
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_GE(took, std::chrono::milliseconds(150));
  EXPECT_LT(took, std::chrono::milliseconds(1'500 * kSlowness));
  EXPECT_TRUE(client->Query(MakeQuery("echo")));
}

TEST_F(ClientTest, ASlowCallHoldsUpNoOther) {
  std::thread slow([&] { EXPECT_TRUE(client_->Query(MakeQuery("block"))); });
  ASSERT_TRUE(service_.AwaitBlocked(1));
  EXPECT_TRUE(client_->Query(MakeQuery("echo")));
  service_.Release();
  slow.join();
}

TEST_F(ClientTest, ManyThreadsShareAClient) {
  constexpr int kThreads = 8;
  constexpr int kCalls = 50;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<std::int32_t> tokens(static_cast<std::size_t>(t) + 1, t);
      for (int i = 0; i < kCalls; ++i) {
        const auto answer = client_->Query(MakeQuery("echo", tokens));
        if (answer && answer->instances[0].best.disk == tokens.size()) ++right;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, kThreads * kCalls);
}

}  // namespace
}  // namespace conductor::rpc
