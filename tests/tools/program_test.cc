// The program as its users start it.
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace conductor::enginesim {
namespace {

const std::string kProgram = std::string(CONDUCTOR_BINARY_DIR) + "/tools/conductor-enginesim";

struct Outcome {
  int code = 0;
  std::vector<std::string> lines;
};

Outcome RunShell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string text;
  for (int byte = std::fgetc(pipe); byte != EOF; byte = std::fgetc(pipe)) {
    text += static_cast<char>(byte);
  }
  outcome.code = WEXITSTATUS(pclose(pipe));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) outcome.lines.push_back(line);
  return outcome;
}

TEST(ProgramTest, ServesCommandsFromStdin) {
  const Outcome outcome = RunShell("printf 'prompt [1,2,3,4]\\nquit\\n' | " + kProgram +
                                   " --stdin --block-size 4 --engines 2 --model m1");
  EXPECT_EQ(outcome.code, 0);
  ASSERT_EQ(outcome.lines.size(), 3u);
  const auto start = nlohmann::json::parse(outcome.lines[0]);
  EXPECT_EQ(start["model"], "m1");
  EXPECT_EQ(start["engines"].size(), 2u);
  EXPECT_EQ(outcome.lines[1], R"({"hit_tokens":0,"stored_blocks":1,"removed_blocks":0,"seq":0})");
}

TEST(ProgramTest, SimulatesSglangAndStores) {
  const Outcome sglang =
      RunShell("printf 'prompt [1,2,3,4,5]\\nquit\\n' | " + kProgram +
               " --stdin --type sglang --block-size 4 --bigram --host-blocks 9 --show-removed");
  ASSERT_EQ(sglang.lines.size(), 3u);
  const auto start = nlohmann::json::parse(sglang.lines[0]);
  EXPECT_EQ(start["type"], "SGLang");
  EXPECT_EQ(start["era"], "s4");
  EXPECT_EQ(start["hash_profile"]["strategy"], "sglang_bigram");
  EXPECT_EQ(sglang.lines[1],
            R"({"hit_tokens":0,"stored_blocks":1,"removed_blocks":0,"seq":0,"host_hit_tokens":0,)"
            R"("removed":[]})");

  const Outcome store = RunShell("printf 'put [\"" + std::string(64, 'a') + "\"]\\nquit\\n' | " +
                                 kProgram + " --stdin --type mooncake --keys sglang-mha --tp 2");
  ASSERT_EQ(store.lines.size(), 3u);
  const auto described = nlohmann::json::parse(store.lines[0]);
  EXPECT_EQ(described["type"], "Mooncake");
  EXPECT_EQ(described["hash_profile"]["strategy"], "sglang");
  EXPECT_EQ(described["engines"][0]["replay"], "");
  EXPECT_EQ(store.lines[1], R"({"stored_blocks":1,"removed_blocks":0,"seq":1})");
}

TEST(ProgramTest, RunsABundledTraceAndEnds) {
  const Outcome outcome = RunShell(
      kProgram + " --engines 3 --speed 0 --exit-after-trace --trace-requests 200 --trace " +
      CONDUCTOR_SOURCE_DIR + "/examples/trace_small.jsonl");
  EXPECT_EQ(outcome.code, 0);
  ASSERT_EQ(outcome.lines.size(), 2u);
  const auto summary = nlohmann::json::parse(outcome.lines[1]);
  EXPECT_EQ(summary["trace_requests"], 200);
  EXPECT_GT(summary["hit_tokens"], 0);
}

TEST(ProgramTest, WrongOptionsEndWithAnErrorAndNoStartLine) {
  for (const char* options :
       {"--era x", "--algorithm md5", "--trace /no/such/file", "--engines 0", "--names hex",
        "--seed x", "--frobnicate", "--type lmdeploy", "--type sglang --era b",
        "--type mooncake --era s4", "--type mooncake --keys x", "--type mooncake --tp 0",
        "--type mooncake --dp-ranks 2", "--host-blocks 5"}) {
    SCOPED_TRACE(options);
    const Outcome outcome = RunShell(kProgram + " " + options + " 2>&1 >/dev/null");
    EXPECT_NE(outcome.code, 0);
    EXPECT_FALSE(outcome.lines.empty());
  }
}

TEST(ProgramTest, HelpHasExamplesAndEveryCommand) {
  const Outcome outcome = RunShell(kProgram + " --help");
  EXPECT_EQ(outcome.code, 0);
  std::string text;
  for (const std::string& line : outcome.lines) text += line + "\n";
  for (const char* part : {"Examples:", "--trace", "prompt_ids", "no_end_marker", "--host-blocks",
                           "m1, m2, m3", "put [", "ascend-layer-id"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

}  // namespace
}  // namespace conductor::enginesim
