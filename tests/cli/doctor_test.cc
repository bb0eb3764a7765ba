// The doctor on constructed views: each misconfiguration of the field is named, a healthy service
// is not accused.
#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace conductor::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

MATCHER_P(HasCode, code, "") {
  return arg.code == code;
}
MATCHER_P3(Is, severity, code, text, "") {
  return arg.severity == severity && arg.code == code && arg.text.find(text) != std::string::npos;
}

ServiceView Healthy() {
  ServiceView view;
  view.registration.instance_id = "vllm-0";
  view.registration.endpoint = "tcp://10.0.0.1:5557";
  view.registration.model_name = "m";
  view.registration.block_size = 4;
  view.status.state = StreamState::kLive;
  view.status.last_frame_age_ms = 10;
  view.status.first_catch_up_done = true;
  view.last_seq = 7;
  view.hash_check = "verified";
  view.counters = {{"frames_total", 8}, {"blocks_stored_total", 8}};
  view.blocks_by_tier[0] = 8;
  return view;
}

ContextView Context(const std::string& tenant, const std::string& model, std::uint32_t block_size) {
  ContextView view;
  view.key = {tenant, model, "", block_size};
  view.prefix_count = 8;
  view.instances["vllm-0"] = {0};
  return view;
}

DoctorInput Input(std::vector<ServiceView> services) {
  DoctorInput input;
  input.status.readiness = {.ready = true, .phase = "ready"};
  input.services = std::move(services);
  input.contexts = {Context("default", "m", 4)};
  return input;
}

void SetCounter(ServiceView& view, const std::string& name, std::uint64_t value) {
  view.counters.emplace_back(name, value);
}

std::vector<Finding> Asked(const ContextKey& context, std::optional<std::uint64_t> tokens,
                           std::optional<QueryAnswer> answer = std::nullopt) {
  DoctorInput input = Input({Healthy()});
  input.probe = Probe{context, context.block_size != 0, tokens, std::move(answer)};
  return Diagnose(input);
}

TEST(DoctorTest, HealthyServiceHasNoFindings) {
  EXPECT_THAT(Diagnose(Input({Healthy()})), testing::IsEmpty());
}

TEST(DoctorTest, NothingRegistered) {
  EXPECT_THAT(Diagnose(Input({})),
              Contains(Is(Severity::kProblem, "nothing_registered", "no publisher")));
}

TEST(DoctorTest, RebuildingIsNotNothingRegistered) {
  DoctorInput input = Input({});
  input.status.readiness = {.phase = "rebuilding", .replayed = 3, .total = 10};
  const auto findings = Diagnose(input);
  EXPECT_THAT(findings, Contains(Is(Severity::kProblem, "rebuilding", "3 of 10")));
  EXPECT_THAT(findings, Not(Contains(HasCode("nothing_registered"))));
}

TEST(DoctorTest, LogThatTakesNoWrites) {
  DoctorInput input = Input({Healthy()});
  input.status.log_error = "no space";
  EXPECT_THAT(Diagnose(input), Contains(Is(Severity::kProblem, "log_failed", "no space")));
}

TEST(DoctorTest, LoadingASnapshotIsRebuildingToo) {
  DoctorInput input = Input({});
  input.status.readiness = {.phase = "loading_snapshot", .percent = 12.5};
  input.status.snapshot_error = "old news";
  const auto findings = Diagnose(input);
  EXPECT_THAT(findings, Contains(Is(Severity::kProblem, "rebuilding", "12.5 %")));
  EXPECT_EQ(findings.size(), 1u);
}

// The newest snapshot at position 5, made just now, one every 900 s.
DoctorInput WithSnapshot() {
  DoctorInput input = Input({Healthy()});
  input.status.log_applied = 9;
  input.status.uptime_ms = 100'000'000;
  input.status.snapshot_seq = 5;
  input.status.snapshot_age_ms = 1'000;
  input.status.snapshot_interval_s = 900;
  return input;
}

TEST(DoctorTest, SnapshotsThatFailAreNamed) {
  DoctorInput input = WithSnapshot();
  EXPECT_THAT(Diagnose(input), testing::IsEmpty());
  input.status.snapshot_error = "no space";
  EXPECT_THAT(Diagnose(input), Contains(Is(Severity::kWarning, "snapshots_failing", "no space")));
}

TEST(DoctorTest, SnapshotOlderThanFourIntervalsIsLate) {
  DoctorInput input = WithSnapshot();
  input.status.snapshot_age_ms = 4 * 900'000;
  EXPECT_THAT(Diagnose(input), testing::IsEmpty());
  input.status.snapshot_age_ms += 1;
  EXPECT_THAT(Diagnose(input), Contains(Is(Severity::kWarning, "snapshot_late", "60 min old")));
  input.status.snapshot_percent = 0;
  EXPECT_THAT(Diagnose(input), testing::IsEmpty()) << "one is being written";
}

TEST(DoctorTest, OldSnapshotIsFineWhenNothingHappened) {
  DoctorInput input = WithSnapshot();
  input.status.snapshot_age_ms = 100'000'000;
  input.status.log_applied = 5;
  EXPECT_THAT(Diagnose(input), testing::IsEmpty());
}

TEST(DoctorTest, OldSnapshotIsFineRightAfterAStart) {
  DoctorInput input = WithSnapshot();
  input.status.snapshot_age_ms = 100'000'000;
  input.status.uptime_ms = 1'000;
  EXPECT_THAT(Diagnose(input), testing::IsEmpty());
}

TEST(DoctorTest, NoSnapshotAtAllIsLateToo) {
  DoctorInput input = WithSnapshot();
  input.status.snapshot_seq = 0;
  input.status.snapshot_age_ms = -1;
  EXPECT_THAT(Diagnose(input), Contains(Is(Severity::kWarning, "snapshot_late", "no snapshot")));
  input.status.snapshot_interval_s = 0;
  EXPECT_THAT(Diagnose(input), testing::IsEmpty());
}

TEST(DoctorTest, CatchingUpIsAWarning) {
  DoctorInput input = Input({Healthy()});
  input.status.readiness = {
      .phase = "catching_up", .replayed = 1, .total = 1, .streams_waiting = 2};
  EXPECT_THAT(Diagnose(input), Contains(Is(Severity::kWarning, "catching_up", "2 streams")));
}

TEST(DoctorTest, NobodyAnswers) {
  ServiceView view = Healthy();
  view.status.state = StreamState::kConnecting;
  view.status.last_error = "connection refused";
  view.last_seq.reset();
  view.counters.clear();
  view.status.last_frame_age_ms = -1;
  const auto findings = Diagnose(Input({view}));
  EXPECT_THAT(findings, Contains(Is(Severity::kProblem, "connecting", "connection refused")));
  EXPECT_THAT(findings, Not(Contains(HasCode("never_seen_a_frame"))));
}

TEST(DoctorTest, NeverSeenAFrame) {
  ServiceView view = Healthy();
  view.last_seq.reset();
  view.counters.clear();
  view.status.last_frame_age_ms = -1;
  view.blocks_by_tier[0] = 0;
  EXPECT_THAT(Diagnose(Input({view})),
              Contains(Is(Severity::kProblem, "never_seen_a_frame", "switched on")));
}

TEST(DoctorTest, FramesBeforeARestartCountAsSeen) {
  ServiceView view = Healthy();
  view.status.last_frame_age_ms = -1;
  EXPECT_THAT(Diagnose(Input({view})), Not(Contains(HasCode("never_seen_a_frame"))));
}

TEST(DoctorTest, Undecodable) {
  ServiceView view = Healthy();
  SetCounter(view, "ignored_undecodable_frames_total", 5);
  EXPECT_THAT(Diagnose(Input({view})),
              Contains(Is(Severity::kProblem, "decode_errors", "5 frames")));
}

TEST(DoctorTest, BlockSizeMismatch) {
  ServiceView view = Healthy();
  SetCounter(view, "ignored_block_size_mismatch_total", 1);
  EXPECT_THAT(Diagnose(Input({view})),
              Contains(Is(Severity::kProblem, "block_size_mismatch", "registered 4")));
}

TEST(DoctorTest, RankMismatch) {
  ServiceView view = Healthy();
  SetCounter(view, "ignored_rank_mismatch_total", 1);
  EXPECT_THAT(Diagnose(Input({view})),
              Contains(Is(Severity::kProblem, "rank_mismatch", "registered 0")));
}

TEST(DoctorTest, RuntimeCountersAreReadToo) {
  ServiceView view = Healthy();
  view.status.counters = {{"ignored_topic_mismatch_total", 2}};
  EXPECT_THAT(Diagnose(Input({view})), Contains(HasCode("topic_mismatch")));
}

TEST(DoctorTest, ARefusedStaticPublisherIsNamed) {
  DoctorInput input = Input({Healthy()});
  input.status.refused_statics = {"instance=b tenant=default dp_rank=0: endpoint: it is used"};
  EXPECT_THAT(Diagnose(input), Contains(Is(Severity::kProblem, "static_refused", "instance=b")));
}

TEST(DoctorTest, RecordsThatWereGoneAtTheStartAreNamed) {
  DoctorInput input = Input({Healthy()});
  input.status.log_opening.dropped_bytes = 40;  // what was not synced may go
  EXPECT_THAT(Diagnose(input), Not(Contains(HasCode("log_shortened"))));
  input.status.log_opening.missing_records = 3;
  EXPECT_THAT(Diagnose(input), Contains(Is(Severity::kWarning, "log_shortened", "3 records")));
}

TEST(DoctorTest, HashMismatchNamesTheProfile) {
  ServiceView view = Healthy();
  view.hash_check = "mismatch";
  view.registration.hash_profile.python_hash_seed = "42";
  EXPECT_THAT(Diagnose(Input({view})),
              Contains(Is(Severity::kProblem, "hash_mismatch", "seed '42'")));
}

TEST(DoctorTest, TokenLessEventsAreNamed) {
  ServiceView view = Healthy();
  view.hash_check = "unknown";
  EXPECT_THAT(Diagnose(Input({view})),
              Contains(Is(Severity::kWarning, "hash_not_verified", "carry no tokens")));
  view.registration.type = PublisherType::kMooncake;
  EXPECT_THAT(Diagnose(Input({view})), Not(Contains(HasCode("hash_not_verified"))))
      << "a store never has tokens";
}

TEST(DoctorTest, LostEvents) {
  ServiceView view = Healthy();
  view.lost_ranges = {{3, 5}, {9, 9}};
  view.status.state = StreamState::kDegraded;
  const auto findings = Diagnose(Input({view}));
  EXPECT_THAT(findings, Contains(Is(Severity::kWarning, "lost_events", "2 lost ranges")));
  EXPECT_THAT(findings, Not(Contains(HasCode("degraded"))));
}

TEST(DoctorTest, JoinedLateNamesTheMissingReplay) {
  ServiceView view = Healthy();
  view.history_from = 100;
  EXPECT_THAT(Diagnose(Input({view})),
              Contains(Is(Severity::kInfo, "joined_late", "replay_endpoint")));
}

TEST(DoctorTest, FramesWithoutBlocks) {
  ServiceView view = Healthy();
  view.blocks_by_tier[0] = 0;
  EXPECT_THAT(Diagnose(Input({view})), Contains(HasCode("no_blocks")));
}

TEST(DoctorTest, UnknownModelNamesTheKnownOnes) {
  EXPECT_THAT(Asked({"default", "M", "", 4}, 8),
              Contains(Is(Severity::kProblem, "unknown_model",
                          "known ones are: default/m (block size 4)")));
}

TEST(DoctorTest, UnknownTenant) {
  EXPECT_THAT(Asked({"acme", "m", "", 4}, 8), Contains(HasCode("unknown_tenant")));
}

TEST(DoctorTest, UnknownAdapter) {
  EXPECT_THAT(Asked({"default", "m", "a", 4}, 8), Contains(HasCode("unknown_adapter")));
}

TEST(DoctorTest, UnknownBlockSizeNamesTheRightOne) {
  EXPECT_THAT(Asked({"default", "m", "", 16}, 64),
              Contains(Is(Severity::kProblem, "unknown_block_size", "has block size 4")));
}

TEST(DoctorTest, PromptShorterThanABlock) {
  const auto findings = Asked({"default", "m", "", 4}, 3, QueryAnswer{});
  EXPECT_THAT(findings,
              Contains(Is(Severity::kProblem, "prompt_shorter_than_a_block", "3 tokens")));
  EXPECT_THAT(findings, Not(Contains(HasCode("no_hit"))));
}

TEST(DoctorTest, MissRepeatsTheHint) {
  QueryAnswer answer;
  answer.hint = "no instance holds the first block";
  EXPECT_THAT(Asked({"default", "m", "", 4}, 8, answer),
              Contains(Is(Severity::kProblem, "no_hit", "first block")));
}

TEST(DoctorTest, HitIsNoProblem) {
  QueryAnswer answer;
  answer.instances = {{"vllm-0", {8, 8, 8, 8}, {}, StreamState::kLive}};
  const auto findings = Asked({"default", "m", "", 4}, 8, answer);
  EXPECT_THAT(findings, Contains(Is(Severity::kInfo, "hit", "8 of 8")));
  EXPECT_EQ(findings.size(), 1u);
}

TEST(DoctorTest, ModelAloneIsEnoughToAsk) {
  EXPECT_THAT(Asked({"default", "m", "", 0}, std::nullopt), testing::IsEmpty());
  EXPECT_THAT(Asked({"default", "x", "", 0}, std::nullopt), Contains(HasCode("unknown_model")));
}

TEST(DoctorTest, WorstFindingsComeFirst) {
  ServiceView view = Healthy();
  view.history_from = 100;
  view.lost_ranges = {{3, 5}};
  view.hash_check = "mismatch";
  const auto findings = Diagnose(Input({view}));
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].code, "hash_mismatch");
  EXPECT_EQ(findings[1].code, "lost_events");
  EXPECT_EQ(findings[2].code, "joined_late");
}

}  // namespace
}  // namespace conductor::cli
