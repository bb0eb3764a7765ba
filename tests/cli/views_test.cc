// JSON shapes that scripts rely on, and tables that people read.
#include "cli/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace conductor::cli {
namespace {

using testing::HasSubstr;

ServiceView Service() {
  ServiceView view;
  view.registration.instance_id = "vllm-0";
  view.registration.endpoint = "tcp://10.0.0.1:5557";
  view.registration.model_name = "m";
  view.registration.block_size = 4;
  view.stream = 3;
  view.epoch = 2;
  view.hash_check = "unknown";
  view.counters = {{"b_total", 2}, {"a_total", 1}};
  return view;
}

TEST(ViewsJsonTest, ServiceHasTheFieldsOfTheHttpBodyInTheirOrder) {
  const Json json = ToJson(std::vector<ServiceView>{Service()});
  EXPECT_EQ(json["count"], 1);
  std::string keys;
  for (const auto& [key, value] : json["services"][0].items()) keys += key + " ";
  EXPECT_EQ(keys,
            "Endpoint ReplayEndpoint Type ModelName LoraName TenantID InstanceID BlockSize DPRank "
            "CacheGroup HashProfile StreamState Epoch LastSeq HistoryFrom LostRanges HashCheck "
            "LastFrameAgeMs DisconnectedForMs LastError Counters Blocks StreamID Topic "
            "SnapshotEndpoint PoolParts StaticName ");
}

TEST(ViewsJsonTest, WhatIsNotKnownIsNull) {
  const Json json = ToJson(std::vector<ServiceView>{Service()})["services"][0];
  for (const char* key : {"CacheGroup", "LastSeq", "HistoryFrom", "LastFrameAgeMs", "Topic"}) {
    EXPECT_TRUE(json[key].is_null()) << key;
  }
  EXPECT_EQ(json["Counters"].dump(), R"({"a_total":1,"b_total":2})");
  EXPECT_EQ(json["Blocks"].dump(), R"({"device":0,"cpu_local":0,"cpu_share":0,"disk":0})");
}

TEST(ViewsJsonTest, LargeNumbersAreExact) {
  StatusView status;
  status.log_last = 18446744073709551615ull;
  EXPECT_EQ(ToJson(status)["log_last"].dump(), "18446744073709551615");
}

TEST(ViewsJsonTest, QueryAnswerHasTheShapeOfTheHttpBody) {
  QueryAnswer answer;
  answer.instances = {{"a", {4, 8, 8, 12}, {{1, {4, 8, 8, 12}}}, StreamState::kDegraded}};
  answer.degraded = {"a"};
  answer.log_seq = 5;
  answer.context_known = true;
  EXPECT_EQ(
      ToJson(answer).dump(),
      R"({"instances":{"a":{"longest_matched":12,"dp":{"1":4},)"
      R"("rank_matches":{"1":{"device":4,"cpu_local":8,"cpu_share":8,"disk":12}},)"
      R"("device":4,"cpu_local":8,"cpu_share":8,"disk":12,"stream_state":"degraded"}},)"
      R"("log_seq":5,"degraded":["a"],"context_known":true,"hint":"","nearest_contexts":[]})");
}

TEST(ViewsJsonTest, ContextListsItsRanks) {
  ContextView context;
  context.key = {"default", "m", "", 4};
  context.prefix_count = 9;
  context.instances["a"] = {0, 1};
  const Json json = ToJson(std::vector<ContextView>{context});
  EXPECT_EQ(json["context_count"], 1);
  EXPECT_EQ(json["contexts"][0]["instances"].dump(), R"({"a":[0,1]})");
  EXPECT_EQ(json["contexts"][0]["hash_profile"]["root_digest"].get<std::string>().size(), 64u);
}

TEST(ViewsTableTest, ServiceThatNeverSpokeSaysSo) {
  const std::string table = ToTable(std::vector<ServiceView>{Service()});
  EXPECT_THAT(table, HasSubstr("never"));
  EXPECT_THAT(table, HasSubstr("connecting"));
}

TEST(ViewsTableTest, EmptyListsAreSentences) {
  EXPECT_EQ(ToTable(std::vector<ServiceView>{}), "no publishers are registered\n");
  EXPECT_EQ(ToTable(std::vector<ContextView>{}), "no contexts: nothing is registered\n");
  EXPECT_EQ(ToTable(std::vector<SnapshotInfo>{}), "no snapshots\n");
}

TEST(ViewsTableTest, RebuildShowsItsProgress) {
  StatusView status;
  status.readiness = {.phase = "rebuilding",
                      .replayed = 5,
                      .total = 10,
                      .blocks_done = 7,
                      .blocks_per_s = 5.25e6,
                      .percent = 58.3,
                      .seconds_left = 1.5};
  EXPECT_THAT(ToTable(status),
              HasSubstr("rebuilding, 58.3 %, 5 of 10 records, 7 blocks, 5.25 M blocks/s, "
                        "1.5 s left"));
  status.readiness.phase = "loading_snapshot";
  status.readiness.blocks_per_s = 0;
  status.readiness.seconds_left = -1;
  EXPECT_THAT(ToTable(status), HasSubstr("loading_snapshot, 58.3 %, 5 of 10 records, 7 blocks\n"));
}

TEST(ViewsTableTest, StatusTellsOfTheNewestSnapshot) {
  StatusView status;
  EXPECT_THAT(ToTable(status), HasSubstr("snapshot        none\n"));
  status.snapshot_seq = 12;
  status.snapshot_age_ms = 180'000;
  status.snapshot_bytes = 99;
  status.snapshot_percent = 41.7;
  status.snapshot_error = "no space";
  const std::string table = ToTable(status);
  EXPECT_THAT(table, HasSubstr("at 12, 3 min old, 99 bytes; writing one, 42 %"));
  EXPECT_THAT(table, HasSubstr("snapshot error  no space"));
}

TEST(ViewsJsonTest, WhatIsNotKnownOfSnapshotsIsNull) {
  const Json json = ToJson(StatusView{});
  for (const char* key : {"seconds_left", "snapshot_age_ms", "snapshot_percent"}) {
    EXPECT_TRUE(json[key].is_null()) << key;
  }
}

TEST(ViewsJsonTest, SnapshotHasAllItsFields) {
  EXPECT_EQ(ToJson(SnapshotInfo{7, 8, "p", 1'000, 9, "d", "torn"}).dump(),
            R"({"seq":7,"bytes":8,"path":"p","created_unix_ms":1000,"blocks":9,"digest":"d",)"
            R"("damage":"torn"})");
}

TEST(ViewsTableTest, SnapshotsAreDatedAndDamageIsNamed) {
  const std::string table =
      ToTable(std::vector<SnapshotInfo>{{7, 8, "p", 1'796'050'623'000, 9, "d", "torn"}});
  EXPECT_THAT(table, HasSubstr("2026-11-30 14:57:03"));
  EXPECT_THAT(table, HasSubstr("torn"));
}

TEST(ViewsTableTest, CapsStandBesideWhatTheyCap) {
  StatusView status;
  status.blocks = 990;
  status.max_blocks = 1'000;
  status.evicted_blocks = 17;
  const std::string table = ToTable(status);
  EXPECT_THAT(table, HasSubstr("990 of at most 1000"));
  EXPECT_THAT(table, HasSubstr("0, no cap"));
  EXPECT_THAT(table, HasSubstr("evicted blocks  17"));
}

TEST(ViewsTableTest, UnknownContextNamesTheNearest) {
  QueryAnswer answer;
  answer.hint = "unknown context";
  answer.nearest_contexts = {{"default", "m", "a", 4}};
  EXPECT_THAT(ToTable(answer), HasSubstr("known: default/m (adapter a, block size 4)"));
}

TEST(ViewsTableTest, TimesAreForPeople) {
  EXPECT_EQ(DescribeMs(999), "999 ms");
  EXPECT_EQ(DescribeMs(1'500), "1.5 s");
  EXPECT_EQ(DescribeMs(600'000), "10 min");
  EXPECT_EQ(DescribeMs(10'800'000), "3 h");
}

}  // namespace
}  // namespace conductor::cli
