// conductor-bench: what Conductor costs, in ratios to one hash step of the same run.
//
//   conductor-bench all                   every row, some minutes
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
      {"retire", "unregistering an instance that has everything", RunRetire},
      {"scale", "by reading threads, and by size of the index", RunScale},
      {"replay", "a trace with open-loop deadlines: the highest sustained rate", RunReplay},
      {"contention", "queries while ingesting at half the maximum", RunContention},
      {"front", "HTTP, gRPC and Python beside empty handlers", RunFront},
      {"log", "facts offered to the service until visible, log on disk", RunLog},
      {"rebuild", "the state from the log", RunRebuild},
      {"snapshot", "images taken, written, loaded; bounded disk under churn", RunSnapshot},
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

namespace {

struct Options {
  bool quick = false, large = false, ratios = false;
  std::size_t blocks = 0, repeats = 0, blocks_per_id = 0;  // 0: the default
  std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  std::string output = "table", python, trace;
  std::string directory = std::filesystem::temp_directory_path();

  // Whether the rows are those of bench/golden.h.
  bool AreKnown() const {
    return quick && !large && !ratios && blocks == 0 && repeats == 0 && blocks_per_id == 0 &&
           python.empty() && trace.empty();
  }
};

void AddOptions(CLI::App& app, Options& options) {
  app.add_flag("--quick", options.quick, "small sizes; fails when a checksum is not the known one");
  app.add_flag("--ratios", options.ratios,
               "fails when a ratio of bench/recorded.h has fallen at the third attempt, or "
               "its row did not run: with compare walk trace --quick");
  app.add_flag("--large", options.large, "growth to 16M blocks, scale to 50M blocks: many minutes");
  app.add_option("--blocks", options.blocks, "blocks of the index (default 1000000)")
      ->check(CLI::Range(1'000, 200'000'000));
  app.add_option("--repeats", options.repeats, "repeats of each row")->check(CLI::Range(1, 100));
  app.add_option("--trace", options.trace,
                 "requests for trace and replay (default: examples/trace_small.jsonl)")
      ->check(CLI::ExistingFile);
  app.add_option("--trace-blocks", options.blocks_per_id,
                 "blocks of one trace id in replay (default 4)")
      ->check(CLI::Range(1, 64));
  app.add_option("--threads", options.threads, "readers of the scale rows, at most")
      ->check(CLI::Range(1, 256));
  app.add_option("--python", options.python,
                 "where the Python package is (build/python): its rows too")
      ->check(CLI::ExistingDirectory);
  app.add_option("--dir", options.directory, "where data directories are made and removed")
      ->check(CLI::ExistingDirectory);
  app.add_option("-o,--output", options.output,
                 "table, json, or the lines of bench/golden.h (golden) or bench/recorded.h "
                 "(recorded)")
      ->check(CLI::IsMember({"table", "json", "golden", "recorded"}));
}

Settings MakeSettings(const Options& options) {
  Settings settings = options.quick ? Settings::Quick() : Settings();
  if (options.blocks != 0) settings.blocks = options.blocks;
  if (options.repeats != 0) settings.repeats = options.repeats;
  if (options.blocks_per_id != 0) settings.replay_blocks_per_id = options.blocks_per_id;
  if (options.ratios) {
    settings.repeats = std::max(settings.repeats, kRatioRepeats);
    settings.query_seconds = std::max(settings.query_seconds, kRatioSeconds);
  }
  if (options.large) {
    settings.growth_blocks = 16'000'000;
    settings.scale_blocks = {1'024, 1'000'000, 10'000'000, 50'000'000};
  }
  settings.threads = options.quick ? 2 : options.threads;
  settings.directory = options.directory;
  settings.python = options.python;
  settings.trace = options.trace.empty()
                       ? std::string(CONDUCTOR_SOURCE_DIR) + "/examples/trace_small.jsonl"
                       : options.trace;
  return settings;
}

// The report of the last attempt; all but --ratios need one.
Report Run(const Options& options, const std::vector<const Group*>& groups) {
  const Settings settings = MakeSettings(options);
  const bool human = options.output == "table";
  std::map<std::string, double> best_ratios;
  for (int attempt = 1;; ++attempt) {
    Report report(MachineLine(), human);
    RunGroups(settings, groups, report);
    if (options.AreKnown() && options.output != "golden") report.CompareWithGolden();
    if (!options.ratios || report.failed()) return report;
    // A machine that was busy with something else is asked again.
    const std::vector<std::string> fallen = report.FallenRatios(best_ratios);
    if (fallen.empty()) return report;
    if (attempt < kRatioAttempts) continue;
    for (const std::string& ratio : fallen) report.Fail(ratio);
    return report;
  }
}

}  // namespace

int Main(int argc, char** argv) {
  CLI::App app("Benchmarks of Conductor");
  Options options;
  AddOptions(app, options);
  app.require_subcommand(1, 0);
  app.fallthrough();
  const CLI::App* all = app.add_subcommand("all", "every group");
  const CLI::App* names = app.add_subcommand("groups", "prints the names of the groups");
  std::vector<const CLI::App*> chosen;
  for (const Group& group : AllGroups()) {
    chosen.push_back(app.add_subcommand(group.name, group.help));
  }
  CLI11_PARSE(app, argc, argv);

  if (names->parsed()) {
    for (const Group& group : AllGroups()) printf("%s\n", group.name.c_str());
    return 0;
  }
  std::vector<const Group*> groups;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (all->parsed() || chosen[i]->parsed()) groups.push_back(&AllGroups()[i]);
  }
  const Report report = Run(options, groups);
  if (options.output == "golden") printf("%s", report.ToGolden().c_str());
  if (options.output == "recorded") printf("%s", report.ToRecorded().c_str());
  if (options.output == "json") printf("%s\n", report.ToJson().c_str());
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
