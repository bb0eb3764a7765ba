// Bytes of answers against the message that defines them: what is written is what protobuf reads,
// what protobuf writes is read the same, and whatever is not taken is left to protobuf.
#include "rpc/answer_wire.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <limits>
#include <random>
#include <string>

#include "rpc/convert.h"
#include "tests/allocation_counter.h"

namespace conductor::rpc {
namespace {

using Random = std::mt19937_64;

Random SeededRandom() {
  const char* given = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20261130;
  std::cout << "CONDUCTOR_SEED=" << seed << '\n';
  return Random(seed);
}

std::string Write(const QueryAnswer& answer) {
  std::string bytes;
  int calls = 0;
  const auto allocate = [&](std::size_t size) {
    ++calls;
    bytes.resize(size);
    return bytes.data();
  };
  EXPECT_TRUE(WritePlainAnswer(answer, allocate));
  EXPECT_EQ(calls, 1);
  return bytes;
}

std::string WrittenByProtobuf(const QueryAnswer& answer, bool detail) {
  v1::QueryResponse message;
  FillQueryResponse(answer, detail, &message);
  return message.SerializeAsString();
}

void ExpectSame(const QueryAnswer& a, const QueryAnswer& b) {
  ASSERT_EQ(a.instances.size(), b.instances.size());
  for (std::size_t i = 0; i < a.instances.size(); ++i) {
    EXPECT_EQ(a.instances[i].instance_id, b.instances[i].instance_id);
    EXPECT_EQ(a.instances[i].best, b.instances[i].best);
    EXPECT_EQ(a.instances[i].ranks, b.instances[i].ranks);
    EXPECT_EQ(a.instances[i].stream_state, b.instances[i].stream_state);
  }
  EXPECT_EQ(a.log_seq, b.log_seq);
  EXPECT_EQ(a.degraded, b.degraded);
  EXPECT_EQ(a.context_known, b.context_known);
}

// Numbers of every width a varint has.
std::uint64_t AnyNumber(Random& random) {
  return random() >> (random() % 65 == 64 ? 63 : random() % 64);
}

TierCounts AnyCounts(Random& random) {
  const auto number = [&] { return random() % 3 == 0 ? 0 : AnyNumber(random); };
  return {number(), number(), number(), number()};
}

QueryAnswer AnyAnswer(Random& random) {
  QueryAnswer answer;
  for (std::size_t i = random() % 9; i > 0; --i) {
    InstanceHits& hits = answer.instances.emplace_back();
    hits.instance_id = "engine-\u00e9" + std::string(random() % 200, 'x');
    hits.best = AnyCounts(random);
    for (std::size_t rank = random() % 4; rank > 0; --rank) {
      hits.ranks[static_cast<std::uint32_t>(AnyNumber(random))] = AnyCounts(random);
    }
  }
  if (random() % 4 != 0) answer.log_seq = AnyNumber(random);
  answer.context_known = random() % 2 == 0;
  for (std::size_t i = random() % 3; i > 0; --i) answer.degraded.push_back("engine-1");
  return answer;
}

TEST(AnswerWireTest, ProtobufReadsWhatIsWrittenAndTheOtherWayRound) {
  Random random = SeededRandom();
  for (int round = 0; round < 3'000; ++round) {
    const QueryAnswer answer = AnyAnswer(random);
    const std::string bytes = Write(answer);
    v1::QueryResponse message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    v1::QueryResponse expected;
    FillQueryResponse(answer, false, &expected);
    EXPECT_EQ(message.DebugString(), expected.DebugString());
    const auto own = ReadPlainAnswer(bytes);
    ASSERT_TRUE(own);
    ExpectSame(*own, ToQueryAnswer(expected));
    const auto theirs = ReadPlainAnswer(expected.SerializeAsString());
    ASSERT_TRUE(theirs);
    ExpectSame(*theirs, *own);
    if (HasFailure()) return;
  }
}

TEST(AnswerWireTest, BytesThatAreTakenAreTakenAsProtobufTakesThem) {
  Random random = SeededRandom();
  int taken = 0;
  for (int round = 0; round < 30'000; ++round) {
    std::string bytes = Write(AnyAnswer(random));
    for (std::size_t changes = 1 + random() % 3; changes > 0 && !bytes.empty(); --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    const auto answer = ReadPlainAnswer(bytes);
    if (!answer) continue;
    ++taken;
    v1::QueryResponse message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    ExpectSame(*answer, ToQueryAnswer(message));
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 1'000);
}

TEST(AnswerWireTest, WhatIsMoreThanPlainIsLeftToProtobuf) {
  QueryAnswer answer;
  answer.instances.push_back({"a", {1, 2, 3, 4}, {{0, {1, 2, 3, 4}}}});
  ASSERT_TRUE(ReadPlainAnswer(WrittenByProtobuf(answer, false)));
  EXPECT_FALSE(ReadPlainAnswer(WrittenByProtobuf(answer, true)));  // stream_state
  answer.instances.clear();
  answer.hint = "why";
  EXPECT_FALSE(ReadPlainAnswer(WrittenByProtobuf(answer, true)));
  EXPECT_FALSE(ReadPlainAnswer("\x98\x06\x01"));          // field 99 of a newer server
  EXPECT_FALSE(ReadPlainAnswer("\x15\x01\x02\x03\x04"));  // log_seq of another wire type
  EXPECT_FALSE(ReadPlainAnswer("\x0a\x03\x0a\x01\xff"));  // an id that is not UTF-8
  EXPECT_FALSE(ReadPlainAnswer("\x0a\x05\x0a"));          // cut off
  EXPECT_FALSE(ReadPlainAnswer("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"));  // 65 bits
}

TEST(AnswerWireTest, TextsThatAreNotUtf8AreNotWritten) {
  const auto allocate = [](std::size_t) -> char* {
    ADD_FAILURE();
    return nullptr;
  };
  QueryAnswer answer;
  answer.instances.push_back({"\xff", {}, {}});
  EXPECT_FALSE(WritePlainAnswer(answer, allocate));
  answer.instances[0].instance_id = "";
  EXPECT_FALSE(WritePlainAnswer(answer, allocate));
  answer.instances.clear();
  answer.degraded = {"\xff"};
  EXPECT_FALSE(WritePlainAnswer(answer, allocate));
}

TEST(AnswerWireTest, AnEmptyAnswerIsNoBytes) {
  EXPECT_EQ(Write({}), "");
  const auto answer = ReadPlainAnswer("");
  ASSERT_TRUE(answer);
  ExpectSame(*answer, {});
}

TEST(AnswerWireTest, WritingAllocatesNothing) {
  QueryAnswer answer;
  for (int i = 0; i < 8; ++i) answer.instances.push_back({"a", {1, 2, 3, 4}, {{0, {1, 2, 3, 4}}}});
  char bytes[2'048];
  EXPECT_EQ(CountAllocations([&] {
              WritePlainAnswer(answer, [&](std::size_t size) {
                EXPECT_LE(size, sizeof bytes);
                return bytes;
              });
            }),
            0u);
}

}  // namespace
}  // namespace conductor::rpc
