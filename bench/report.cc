// The report: human tables, JSON, and the comparison with the known checksums.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/golden.h"
#include "bench/harness.h"
#include "bench/recorded.h"
#include "src/check.h"

namespace conductor::bench {
namespace {

constexpr int kWorkColumns = 54;
constexpr double kRatioLossMax = 0.3;

double Median(const Row& row) {
  return Quantile(row.repeats, 0.5);
}

std::string Hex(std::uint64_t value) {
  char text[17];
  snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

// Three figures and a unit that fits.
std::string Spell(double value, Measure measure) {
  static const char* const times[] = {"ns", "us", "ms", "s"};
  char text[32];
  if (measure == Measure::kBytes) {
    if (value >= 1e6) {
      snprintf(text, sizeof text, "%.2f MB", value / 1e6);
    } else {
      snprintf(text, sizeof text, "%.1f B", value);
    }
    return text;
  }
  if (measure == Measure::kTimes) {
    snprintf(text, sizeof text, "x %.2f", value);
    return text;
  }
  std::size_t unit = 0;
  while (value >= 1'000 && unit < 3) {
    value /= 1'000;
    ++unit;
  }
  snprintf(text, sizeof text, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, times[unit]);
  return text;
}

std::string_view Name(Measure measure) {
  switch (measure) {
    case Measure::kNanoseconds:
      return "ns";
    case Measure::kBytes:
      return "bytes";
    case Measure::kTimes:
      return "times";
  }
  return "";
}

std::string SpellRate(double per_second) {
  char text[32];
  if (per_second >= 1e6) {
    snprintf(text, sizeof text, "%.2f M/s", per_second / 1e6);
  } else if (per_second >= 1e3) {
    snprintf(text, sizeof text, "%.1f k/s", per_second / 1e3);
  } else {
    snprintf(text, sizeof text, "%.1f /s", per_second);
  }
  return text;
}

std::string SpellRatio(double ratio) {
  char text[32];
  snprintf(text, sizeof text, "%.*f", ratio < 0.1 ? 4 : ratio < 1 ? 3 : ratio < 10 ? 2 : 0, ratio);
  return text;
}

// Null when the row has no recorded ratio.
const Recorded* FindRecorded(std::string_view group, std::string_view work) {
  for (const Recorded& recorded : kRecordedRatios) {
    if (recorded.group == group && recorded.work == work) return &recorded;
  }
  return nullptr;
}

}  // namespace

double Best(const Row& row) {
  return Quantile(row.repeats, 0);
}

double Judged(const Row& row) {
  return row.by_median ? Median(row) : Best(row);
}

Report::Report(std::string machine, bool human) : machine_(std::move(machine)), human_(human) {
  if (human_) printf("machine: %s\n", machine_.c_str());
}

void Report::BeginGroup(const std::string& name) {
  groups_.push_back({name, Calibrate(), LoadAverage(), {}, {}});
}

void Report::Add(Row row) {
  CHECK(!groups_.empty() && !row.repeats.empty());
  groups_.back().rows.push_back(std::move(row));
}

void Report::EndGroup() {
  if (human_) PrintGroup(groups_.back());
}

void Report::Note(const std::string& text) {
  groups_.back().notes.push_back(text);
}

void Report::Fail(const std::string& what) {
  failures_.push_back(what);
}

void Report::PrintGroup(const Group& group) const {
  printf("\n%s    CAL %.1f ns, XXH3 %.2f ns, load %.1f\n", group.name.c_str(),
         group.calibration.cal_ns, group.calibration.xxh3_ns, group.load);
  printf("%-*s %7s %9s %9s %9s %9s %9s %7s %9s %7s  %s\n", kWorkColumns, "work", "of one", "best",
         "median", "p99", "cpu", "rate", "x CAL", "bar", "x ours", "checksum");
  for (const Row& row : group.rows) {
    const bool time = row.measure == Measure::kNanoseconds;
    const double median = Median(row);
    printf("%-*s %7s %9s %9s %9s %9s %9s %7s %9s %7s  %s\n", kWorkColumns, row.work.c_str(),
           row.unit.c_str(), row.by_median ? "" : Spell(Best(row), row.measure).c_str(),
           Spell(median, row.measure).c_str(),
           row.p99.empty() ? "" : Spell(Quantile(row.p99, 0.5), row.measure).c_str(),
           row.processor.empty() ? "" : Spell(Quantile(row.processor, 0), row.measure).c_str(),
           time ? SpellRate(1e9 / median).c_str() : "",
           time ? SpellRatio(Judged(row) / group.calibration.cal_ns).c_str() : "",
           row.bar > 0 ? Spell(row.bar, row.measure).c_str() : "",
           row.times_ours > 0 ? SpellRatio(row.times_ours).c_str() : "", Hex(row.checksum).c_str());
  }
  for (const std::string& note : group.notes) printf("note: %s\n", note.c_str());
  fflush(stdout);
}

void Report::CompareWithGolden() {
  std::set<std::string> seen;
  for (const Group& group : groups_) {
    std::set<std::string> known;
    for (const Golden& golden : kGoldenQuick) {
      if (golden.group == group.name) known.insert(std::string(golden.work));
    }
    for (const Row& row : group.rows) {
      const std::string name = group.name + ": " + row.work;
      if (known.erase(row.work) == 0) {
        Fail(name + ": checksum " + Hex(row.checksum) + ", none in bench/golden.h");
        continue;
      }
      for (const Golden& golden : kGoldenQuick) {
        if (golden.group != group.name || golden.work != row.work) continue;
        if (golden.checksum == row.checksum) continue;
        Fail(name + ": checksum " + Hex(row.checksum) + ", expected " + Hex(golden.checksum));
      }
    }
    for (const std::string& work : known) Fail(group.name + ": " + work + ": row did not run");
  }
}

std::vector<std::string> Report::FallenRatios(std::map<std::string, double>& best) const {
  std::vector<std::string> fallen;
  std::set<const Recorded*> missing;
  for (const Recorded& recorded : kRecordedRatios) missing.insert(&recorded);
  for (const Group& group : groups_) {
    for (const Row& row : group.rows) {
      const Recorded* recorded = FindRecorded(group.name, row.work);
      if (recorded == nullptr) continue;
      missing.erase(recorded);
      const double least = recorded->times_ours * (1 - kRatioLossMax);
      const std::string name = group.name + ": " + row.work;
      double& most = best[name];
      most = std::max(most, row.times_ours);
      if (most >= least) continue;
      fallen.push_back(name + ": takes " + SpellRatio(most) + " times what ours takes, recorded " +
                       SpellRatio(recorded->times_ours) + ", expected at least " +
                       SpellRatio(least));
    }
  }
  for (const Recorded* recorded : missing) {
    fallen.push_back(std::string(recorded->group) + ": " + std::string(recorded->work) +
                     ": recorded, but the row did not run");
  }
  return fallen;
}

std::string Report::ToRecorded() const {
  std::string lines;
  for (const Group& group : groups_) {
    for (const Row& row : group.rows) {
      if (FindRecorded(group.name, row.work) == nullptr) continue;
      lines += "    {\"" + group.name + "\", \"" + row.work + "\", " + SpellRatio(row.times_ours) +
               "},\n";
    }
  }
  return lines;
}

std::string Report::ToGolden() const {
  std::string lines;
  for (const Group& group : groups_) {
    for (const Row& row : group.rows) {
      lines += "    {\"" + group.name + "\", \"" + row.work + "\", 0x" + Hex(row.checksum) + "},\n";
    }
  }
  return lines;
}

std::string Report::ToJson() const {
  nlohmann::ordered_json document;
  document["machine"] = machine_;
  for (const Group& group : groups_) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Row& row : group.rows) {
      nlohmann::ordered_json json;
      json["work"] = row.work;
      json["of_one"] = row.unit;
      json["measure"] = Name(row.measure);
      json["best"] = Best(row);
      json["median"] = Median(row);
      json["judged"] = row.by_median ? "median" : "best";
      if (!row.p99.empty()) json["p99"] = Quantile(row.p99, 0.5);
      if (!row.processor.empty()) json["processor_best"] = Quantile(row.processor, 0);
      json["repeats"] = row.repeats;
      if (row.measure == Measure::kNanoseconds) {
        json["x_cal"] = Judged(row) / group.calibration.cal_ns;
        json["x_xxh3"] = Judged(row) / group.calibration.xxh3_ns;
      }
      if (row.bar > 0) json["bar"] = row.bar;
      if (row.times_ours > 0) json["times_ours"] = row.times_ours;
      json["checksum"] = Hex(row.checksum);
      rows.push_back(std::move(json));
    }
    document["groups"].push_back({{"group", group.name},
                                  {"cal_ns", group.calibration.cal_ns},
                                  {"xxh3_ns", group.calibration.xxh3_ns},
                                  {"load", group.load},
                                  {"rows", std::move(rows)},
                                  {"notes", group.notes}});
  }
  document["failures"] = failures_;
  return document.dump(2);
}

}  // namespace conductor::bench
