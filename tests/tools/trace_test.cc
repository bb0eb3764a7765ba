#include "tools/trace.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/tools/sim_test_util.h"
#include "tools/trace_driver.h"

namespace conductor::enginesim {
namespace {

const std::string kGood =
    R"({"timestamp": 27482, "input_length": 700, "output_length": 52, "hash_ids": [46, 47]})";

std::string ErrorOf(const std::string& text) {
  std::istringstream input(text);
  TraceReader reader(input, "t.jsonl");
  while (true) {
    const auto request = reader.Next();
    if (!request) return request.error().message;
    if (!*request) return "no error";
  }
}

TEST(TraceTest, SplitMix64IsTheWellKnownOne) {
  EXPECT_EQ(SplitMix64(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(SplitMix64(1), 0x910a2dec89025cc1u);
}

// The values come from the Python formula in trace.h.
TEST(TraceTest, ExpansionIsTheDocumentedFormula) {
  EXPECT_EQ(ExpandTrace({.input_length = 4, .hash_ids = {0}}),
            (std::vector<std::int32_t>{7535, 22465, 48110, 39053}));
  const auto tokens = ExpandTrace({.input_length = 515, .hash_ids = {7, 3}});
  ASSERT_EQ(tokens.size(), 515u);
  EXPECT_EQ(tokens[0], 29881);
  EXPECT_EQ(tokens[1], 17201);
  EXPECT_EQ(std::vector<std::int32_t>(tokens.begin() + 511, tokens.end()),
            (std::vector<std::int32_t>{47059, 48853, 2142, 9164}));
  EXPECT_EQ(ExpandTrace({.input_length = 3, .hash_ids = {5}}, 4),
            (std::vector<std::int32_t>{18044, 19543, 2346}));
}

TEST(TraceTest, RequestsAreReadInOrder) {
  std::istringstream input(kGood + "\r\n\n" + kGood);
  TraceReader reader(input, "t.jsonl");
  const auto first = reader.Next().value();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->timestamp_ms, 27482u);
  EXPECT_EQ(first->input_length, 700u);
  EXPECT_EQ(first->output_length, 52u);
  EXPECT_EQ(first->hash_ids, (std::vector<std::uint64_t>{46, 47}));
  EXPECT_TRUE(reader.Next().value());
  EXPECT_EQ(reader.line(), 3u);
  EXPECT_FALSE(reader.Next().value());
}

TEST(TraceTest, ErrorsNameTheLineAndWhatWasExpected) {
  EXPECT_EQ(ErrorOf(kGood + "\nnonsense\n"), "t.jsonl line 2: expected one JSON object");
  EXPECT_EQ(ErrorOf("[1]"), "t.jsonl line 1: expected one JSON object");
  EXPECT_EQ(ErrorOf(R"({"input_length":1,"hash_ids":[1]})"),
            "t.jsonl line 1: timestamp is missing");
  EXPECT_EQ(ErrorOf(R"({"timestamp":1,"input_length":1})"), "t.jsonl line 1: hash_ids is missing");
  EXPECT_EQ(ErrorOf(R"({"timestamp":1,"input_length":-1,"hash_ids":[1]})"),
            "t.jsonl line 1: input_length: expected a number from 0, got -1");
  EXPECT_EQ(ErrorOf(R"({"timestamp":1,"input_length":1,"hash_ids":7})"),
            "t.jsonl line 1: hash_ids: expected an array");
  EXPECT_EQ(ErrorOf(R"({"timestamp":1,"input_length":1,"hash_ids":["a"]})"),
            "t.jsonl line 1: hash_ids: expected numbers from 0, got \"a\"");
  EXPECT_EQ(ErrorOf(R"({"timestamp":1,"input_length":513,"hash_ids":[1]})"),
            "t.jsonl line 1: hash_ids: expected 2 ids for input_length 513, got 1");
  EXPECT_EQ(ErrorOf(R"({"timestamp":1,"input_length":99999999999,"hash_ids":[1]})"),
            "t.jsonl line 1: input_length: at most 4000000, got 99999999999");
}

TEST(TraceTest, AnEndlessLineIsRefused) {
  EXPECT_EQ(ErrorOf(kGood + "\n" + std::string(kTraceLineBytesMax + 1, ' ')),
            "t.jsonl line 2: longer than 4194304 bytes");
}

TEST(TraceTest, TheBundledTraceIsReadWhole) {
  std::ifstream file(std::string(CONDUCTOR_SOURCE_DIR) + "/examples/trace_small.jsonl");
  ASSERT_TRUE(file);
  TraceReader reader(file, "trace_small.jsonl");
  std::uint64_t requests = 0, before = 0;
  while (true) {
    const auto request = reader.Next();
    ASSERT_TRUE(request) << request.error().message;
    if (!*request) break;
    EXPECT_GE((*request)->timestamp_ms, before);
    before = (*request)->timestamp_ms;
    ++requests;
  }
  EXPECT_EQ(requests, 1'500u);
}

FleetOptions TwoEngines() {
  FleetOptions options;
  options.engines = 2;
  options.engine.profile = Profile();
  options.engine.block_size = 512;
  return options;
}

TEST(TraceDriverTest, RequestsGoRoundTheEngines) {
  auto fleet = std::move(Fleet::Start(TwoEngines()).value());
  std::string trace;
  for (int i = 0; i < 4; ++i) trace += kGood + "\n";
  std::istringstream input(trace);
  TraceReader reader(input, "t");
  const std::atomic<bool> stop{false};
  const TraceSummary summary = RunTrace(*fleet, reader, {.speed = 0}, stop).value();
  EXPECT_EQ(summary.requests, 4u);
  EXPECT_EQ(summary.prompt_tokens, 4 * 700u);
  EXPECT_EQ(summary.stored_blocks, 2u);  // the first request of each engine
  EXPECT_EQ(summary.hit_tokens, 2 * 512u);
  EXPECT_EQ(summary.batches, 2u);
  EXPECT_EQ(fleet->engine(0).CachedBlocks(), 1u);
  EXPECT_EQ(fleet->engine(1).CachedBlocks(), 1u);
}

TEST(TraceDriverTest, SpeedDividesTheTimesOfTheTrace) {
  auto fleet = std::move(Fleet::Start(TwoEngines()).value());
  std::istringstream input(
      "{\"timestamp\":1000,\"input_length\":1,\"hash_ids\":[1]}\n"
      "{\"timestamp\":2000,\"input_length\":1,\"hash_ids\":[1]}\n");
  TraceReader reader(input, "t");
  const std::atomic<bool> stop{false};
  const TraceSummary summary = RunTrace(*fleet, reader, {.speed = 10}, stop).value();
  EXPECT_EQ(summary.requests, 2u);
  EXPECT_GE(summary.seconds, 0.1);
}

TEST(TraceDriverTest, AWrongLineEndsTheRunWithItsNumber) {
  auto fleet = std::move(Fleet::Start(TwoEngines()).value());
  std::istringstream input(kGood + "\n{}\n");
  TraceReader reader(input, "t");
  const std::atomic<bool> stop{false};
  const auto summary = RunTrace(*fleet, reader, {.speed = 0}, stop);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().message, "t line 2: timestamp is missing");
}

TEST(TraceDriverTest, StopEndsTheRun) {
  auto fleet = std::move(Fleet::Start(TwoEngines()).value());
  std::istringstream input(kGood);
  TraceReader reader(input, "t");
  const std::atomic<bool> stop{true};
  EXPECT_EQ(RunTrace(*fleet, reader, {}, stop).value().requests, 0u);
}

}  // namespace
}  // namespace conductor::enginesim
