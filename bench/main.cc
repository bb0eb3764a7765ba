// conductor-bench: what Conductor costs, in ratios to one hash step of the same run.
//
//   conductor-bench all                   every row, under four minutes
//   conductor-bench query --blocks 10000000 -o json
//   conductor-bench all --quick           small sizes; checksums against bench/golden.h
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
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
      {"log", "facts offered to the service until visible, log on disk", RunLog},
      {"rebuild", "the state from the log", RunRebuild},
      {"stream", "ZMQ messages until visible, log on disk", RunStream},
      {"freshness", "one message on an idle service until visible", RunFreshness},
  };
  return groups;
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
  return settings;
}

int Main(int argc, char** argv) {
  CLI::App app("Benchmarks of Conductor");
  bool quick = false;
  std::size_t blocks = 0, repeats = 0;
  std::string output = "table";
  std::string directory = std::filesystem::temp_directory_path();
  app.add_flag("--quick", quick, "small sizes; fails when a checksum is not the known one");
  auto* blocks_option = app.add_option("--blocks", blocks, "blocks of the index (default 1000000)")
                            ->check(CLI::Range(1'000, 200'000'000));
  auto* repeats_option =
      app.add_option("--repeats", repeats, "repeats of each row")->check(CLI::Range(1, 100));
  app.add_option("--dir", directory, "where data directories are made and removed")
      ->check(CLI::ExistingDirectory);
  app.add_option("-o,--output", output, "table, json, or golden: the lines of bench/golden.h")
      ->check(CLI::IsMember({"table", "json", "golden"}));
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
  Report report(MachineLine(), output == "table");
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (!all->parsed() && !chosen[i]->parsed()) continue;
    const Group& group = AllGroups()[i];
    report.BeginGroup(group.name);
    if (Status status = group.run(settings, report); !status) {
      report.Fail(group.name + ": " + status.error().message);
    }
    report.EndGroup();
  }
  if (output == "golden") {
    printf("%s", report.ToGolden().c_str());
    return report.failed() ? 1 : 0;
  }
  // The known sums are those of the quick sizes.
  if (quick && !*blocks_option) report.CompareWithGolden();
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
