// conductor-bench: what Conductor costs, in ratios to one hash step of the same run.
//
//   conductor-bench all                   every row, under four minutes
//   conductor-bench query --blocks 10000000 -o json
//   conductor-bench all --quick           small sizes; checksums against bench/golden.h
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "bench/rows.h"

namespace conductor::bench {
namespace {

struct Group {
  std::string name;
  std::string help;
  std::function<Status(const Settings&, Report&)> run;
};

// Memory first: nothing has grown the process yet.
const std::vector<Group>& AllGroups() {
  static const std::vector<Group> groups = {
      {"memory", "bytes of one distinct block, by holders", RunMemory},
      {"state", "Apply of prepared records: stored, removed", RunState},
      {"query", "MatchPrompt: by prompt length and instances", RunQuery},
      {"compare", "ours beside both baselines: query, apply, memory", RunCompare},
      {"walk", "fingerprints ready: plain, branching; beside baseline T", RunWalk},
      {"named", "8k tokens, 1 % of the blocks known by name only", RunNamed},
      {"trace", "requests of a trace, fingerprints ready, up to 7,000 instances", RunTrace},
      {"growth", "memory over a growth cycle, churn to empty, pauses", RunGrowth},
      {"scale", "by reading threads, and by size of the index", RunScale},
      {"replay", "a trace with open-loop deadlines: the highest sustained rate", RunReplay},
      {"contention", "queries while ingesting at half the maximum", RunContention},
      {"front", "HTTP, gRPC and Python beside empty handlers", RunFront},
      {"log", "facts offered to the service until visible, log on disk", RunLog},
      {"rebuild", "the state from the log", RunRebuild},
      {"stream", "ZMQ messages until visible, log on disk", RunStream},
      {"freshness", "one message on an idle service until visible", RunFreshness},
  };
  return groups;
}

constexpr int kRatioAttempts = 3;
constexpr std::size_t kRatioRepeats = 5;
constexpr double kRatioSeconds = 0.05;

void RunGroups(const Settings& settings, const std::vector<const Group*>& groups, Report& report) {
  for (const Group* group : groups) {
    report.BeginGroup(group->name);
    if (Status status = group->run(settings, report); !status) {
      report.Fail(group->name + ": " + status.error().message);
    }
    report.EndGroup();
  }
}

}  // namespace

Settings Settings::Quick() {
  Settings settings;
  settings.repeats = 2;
  settings.blocks = 20'000;
  settings.prompt_tokens = {1'024, 8'192};
  settings.instances = {1, 8, 64};
  settings.query_seconds = 0.02;
  settings.log_blocks = 16 * 1'024;
  settings.stream_blocks = 16 * 1'024;
  settings.memory_blocks = 10'000;
  settings.freshness_samples = 20;
  settings.growth_blocks = 64'000;
  settings.scale_blocks = {1'024, 20'000};
  settings.replay_blocks_per_id = 1;
  return settings;
}

int Main(int argc, char** argv) {
  CLI::App app("Benchmarks of Conductor");
  bool quick = false;
  std::size_t blocks = 0, repeats = 0;
  std::string output = "table", python;
  std::string directory = std::filesystem::temp_directory_path();
  app.add_flag("--quick", quick, "small sizes; fails when a checksum is not the known one");
  auto* blocks_option = app.add_option("--blocks", blocks, "blocks of the index (default 1000000)")
                            ->check(CLI::Range(1'000, 200'000'000));
  auto* repeats_option =
      app.add_option("--repeats", repeats, "repeats of each row")->check(CLI::Range(1, 100));
  bool large = false, ratios = false;
  std::string trace = std::string(CONDUCTOR_SOURCE_DIR) + "/examples/trace_small.jsonl";
  std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  auto* trace_option =
      app.add_option("--trace", trace, "requests for trace and replay (default: the small example)")
          ->check(CLI::ExistingFile);
  std::size_t blocks_per_id = 0;
  auto* blocks_per_id_option = app.add_option("--trace-blocks", blocks_per_id,
                                              "blocks of one trace id in replay (default 4)")
                                   ->check(CLI::Range(1, 64));
  app.add_option("--threads", threads, "readers of the scale rows, at most")
      ->check(CLI::Range(1, 256));
  app.add_flag(
      "--ratios", ratios,
      "fails when a ratio of bench/recorded.h has fallen (quick sizes), at the third attempt");
  app.add_flag("--large", large, "growth to 16M blocks, scale to 50M blocks: many minutes");
  auto* python_option =
      app.add_option("--python", python, "where the Python package is (build/python): its rows too")
          ->check(CLI::ExistingDirectory);
  app.add_option("--dir", directory, "where data directories are made and removed")
      ->check(CLI::ExistingDirectory);
  app.add_option(
         "-o,--output", output,
         "table, json, or the lines of bench/golden.h (golden) or bench/recorded.h (recorded)")
      ->check(CLI::IsMember({"table", "json", "golden", "recorded"}));
  app.require_subcommand(1, 0);
  app.fallthrough();
  const CLI::App* all = app.add_subcommand("all", "every group");
  std::vector<const CLI::App*> chosen;
  for (const Group& group : AllGroups()) {
    chosen.push_back(app.add_subcommand(group.name, group.help));
  }
  CLI11_PARSE(app, argc, argv);

  Settings settings = quick ? Settings::Quick() : Settings();
  if (*blocks_option) settings.blocks = blocks;
  if (*repeats_option) settings.repeats = repeats;
  settings.directory = directory;
  if (ratios) {
    settings.repeats = std::max(settings.repeats, kRatioRepeats);
    settings.query_seconds = std::max(settings.query_seconds, kRatioSeconds);
  }
  settings.python = python;
  settings.trace = trace;
  if (*blocks_per_id_option) settings.replay_blocks_per_id = blocks_per_id;
  settings.threads = quick ? 2 : threads;
  if (large) {
    settings.growth_blocks = 16'000'000;
    settings.scale_blocks = {1'024, 1'000'000, 10'000'000, 50'000'000};
  }
  std::vector<const Group*> groups;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (all->parsed() || chosen[i]->parsed()) groups.push_back(&AllGroups()[i]);
  }
  // The known sums are those of the quick sizes and repeats.
  const bool known = quick && !ratios && !*blocks_option && !*trace_option && !*python_option &&
                     !*blocks_per_id_option && !large;
  Report report(MachineLine(), output == "table");
  std::map<std::string, double> best_ratios;
  for (int attempt = 1;; ++attempt) {
    RunGroups(settings, groups, report);
    if (known && output != "golden") report.CompareWithGolden();
    if (!ratios || report.failed()) break;
    // A machine that was busy with something else is asked again.
    const std::vector<std::string> fallen = report.FallenRatios(best_ratios);
    if (fallen.empty()) break;
    if (attempt < kRatioAttempts) {
      report = Report(MachineLine(), output == "table");
      continue;
    }
    for (const std::string& ratio : fallen) report.Fail(ratio);
    break;
  }
  if (output == "golden") printf("%s", report.ToGolden().c_str());
  if (output == "recorded") printf("%s", report.ToRecorded().c_str());
  if (output == "json") printf("%s\n", report.ToJson().c_str());
  for (const std::string& failure : report.failures()) {
    fprintf(stderr, "WRONG %s\n", failure.c_str());
  }
  return report.failed() ? 1 : 0;
}

}  // namespace conductor::bench

int main(int argc, char** argv) try {
  return conductor::bench::Main(argc, argv);
} catch (const std::exception& error) {
  fprintf(stderr, "conductor-bench: %s\n", error.what());
  return 1;
}
