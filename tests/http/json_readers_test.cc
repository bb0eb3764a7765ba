// The fast and the careful JSON reader see the same in every body.
#include "http/json_readers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "http/http_limits.h"
#include "tests/http/recorder.h"

namespace conductor::http {
namespace {

std::string Careful(const std::string& body) {
  Recorder recorder;
  return ReadJsonCarefully(body, recorder) ? recorder.text : "invalid";
}

std::string Fast(const std::string& body, Recorder::Runs runs) {
  Recorder recorder(runs);
  Error error;
  return ReadJsonFast(body, recorder, &error) == FastJson::kRead ? recorder.text : "invalid";
}

void ExpectSame(const std::string& body) {
  const std::string careful = Careful(body);
  EXPECT_EQ(Fast(body, Recorder::Runs::kRefused), careful) << body;
  EXPECT_EQ(Fast(body, Recorder::Runs::kTaken), careful) << body;
}

// Every kind of value, at the borders of what a number may be.
const std::vector<std::string>& Values() {
  static const std::vector<std::string> values = {
      "0", "-0", "1", "-1", "2147483647", "2147483648", "-2147483648", "-2147483649",
      "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
      "18446744073709551615", "18446744073709551616", "99999999999999999999999999", "1.0", "-1.5e3",
      "1e3", "1E+2", "0.1", "1e308", "null", "true", "false", "\"\"", "\"x\"", "\"\\u00e9\\n\\\"\"",
      "\"\\ud83d\\ude00\"", "\"\xc3\xa9\"", "[]", "{}", "[1,2]", "{\"a\":[{}]}",
      // not JSON
      "01", "-", "+1", "1.", ".5", "1e", "0x1", "1e999", "nul", "truee", "\"\\x\"", "\"\\ud800\"",
      "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\xff\"", "\"\xed\xa0\x80\"", "\"\t\"", "'a'", "",
      "1 2", "[1,]", "[,1]", "[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{1:2}", "NaN",
      "Infinity", "\"", "[", "{", "]", "}", "1]",
      "\xc2\xa0"
      "1"};
  return values;
}

TEST(JsonReadersTest, EveryValueInEveryPlaceIsTheSameToBoth) {
  for (const std::string& value : Values()) {
    ExpectSame("{\"a\":" + value + "}");
    ExpectSame("{\"a\":[" + value + "]}");
    ExpectSame("{\"a\":[1," + value + ",2]}");
    ExpectSame(" \n{ \"a\" :\t[ 1 , " + value + " ] , \"b\" : " + value + " } \r\n");
    ExpectSame("{\"a\":1}" + value);
  }
}

TEST(JsonReadersTest, ABodyCutAnywhereIsRefusedByBoth) {
  const std::string body = R"({"model":"m\u00e9","token_ids":[1,-2,300000],"x":{"y":[null,1.5]}})";
  ExpectSame(body);
  for (std::size_t length = 0; length < body.size(); ++length) {
    const std::string cut = body.substr(0, length);
    EXPECT_EQ(Careful(cut), "invalid") << cut;
    EXPECT_EQ(Fast(cut, Recorder::Runs::kTaken), "invalid") << cut;
  }
}

TEST(JsonReadersTest, DepthHasTheSameLimit) {
  for (std::size_t depth = kBodyDepthMax - 2; depth <= kBodyDepthMax + 2; ++depth) {
    const std::string arrays(depth - 1, '[');
    const std::string ends(depth - 1, ']');
    ExpectSame("{\"a\":" + arrays + ends + "}");
  }
  ExpectSame("{\"a\":" + std::string(100'000, '['));
}

TEST(JsonReadersTest, LongRunsArriveWhole) {
  std::string body = "{\"a\":[";
  for (std::size_t i = 0; i < 3 * kInt32sAtOnce + 5; ++i) {
    body += std::to_string(i * 37 % 5'000'000) + (i % 1'000 == 999 ? ",3000000000," : ",");
  }
  body += "7]}";
  Recorder recorder(Recorder::Runs::kTaken);
  Error error;
  ASSERT_EQ(ReadJsonFast(body, recorder, &error), FastJson::kRead);
  EXPECT_EQ(recorder.text, Careful(body));
  EXPECT_GT(recorder.runs, 3);
}

TEST(JsonReadersTest, MutatedBodiesAreTheSameToBoth) {
  const char* given = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20261130;
  std::cout << "CONDUCTOR_SEED=" << seed << '\n';
  std::mt19937_64 random(seed);
  const std::string letters = "{}[],:\"\\ 0123456789-+.eEtrufalsn\t\xc3\xa9";
  const std::string body =
      R"({"model":"m","block_size":16,"token_ids":[1,22,333,-4444,55555],"extra_keys":[null,)"
      R"(["a",1,["b",-2]]],"detail":true,"top_k":1.5e1,"cache_salt":"\u00e9\\"})";
  for (int round = 0; round < 20'000; ++round) {
    std::string mutated = body;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const std::size_t at = random() % mutated.size();
      const char letter = letters[random() % letters.size()];
      switch (random() % 3) {
        case 0:
          mutated[at] = letter;
          break;
        case 1:
          mutated.insert(at, 1, letter);
          break;
        default:
          mutated.erase(at, 1);
      }
    }
    if (mutated.find('{') != mutated.find_first_not_of(" \t")) continue;  // not the fast one's
    ExpectSame(mutated);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace conductor::http
