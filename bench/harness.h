// The harness of all rows: time, percentiles, checksums, calibration, the report.
//
// A row names its work and carries a checksum of what the work produced. Times of different
// machines are compared by their ratio to CAL and XXH3, which are measured anew before every group
// in the same run. Single-threaded: only the main thread touches a Report.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"

namespace conductor::bench {

class Stopwatch {
 public:
  double ElapsedNs() const {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

// Processor time of all threads of the process: what a busy machine does not change. A system call;
// not for work of less than some microseconds.
class ProcessorWatch {
 public:
  double ElapsedNs() const { return Now() - begin_; }

 private:
  static double Now();
  double begin_ = Now();
};

// The same numbers in the same order give the same value, on every machine.
class Checksum {
 public:
  void Add(std::uint64_t value);
  void Add(std::string_view text);
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

// Until the watch shows `due_ns`: asleep, and awake for the last part. Returns at once when late.
void WaitUntilDue(const Stopwatch& watch, double due_ns);

// Of one of `count`.
inline double Per(double total, std::size_t count) {
  return total / static_cast<double>(count);
}

// In words: "20k", "1M", "1500k".
std::string SpellCount(std::size_t count);

// `quantile` in [0, 1], by nearest rank. `values` is not empty.
double Quantile(std::vector<double> values, double quantile);

// What this machine does right now.
struct Calibration {
  double cal_ns = 0;   // one SHA-256 CBOR step of a vLLM chain (block of 16 tokens)
  double xxh3_ns = 0;  // one fingerprint of a block of 16 tokens: XXH3-64 of 64 bytes
};
Calibration Calibrate();

// kTimes: a plain ratio.
enum class Measure { kNanoseconds, kBytes, kTimes };

struct Row {
  std::string work = {};  // unique in its group
  std::string unit = {};  // what is counted: "block", "query", "event"
  Measure measure = Measure::kNanoseconds;
  // Of one unit, one value per repeat. Latencies: the median of each repeat.
  std::vector<double> repeats = {};
  std::vector<double> p99 = {};        // latencies only, one value per repeat
  std::vector<double> processor = {};  // processor time, one value per repeat; empty: not measured
  // What is required of the judged figure, in the row's measure; 0: nothing. Printed, never judged.
  double bar = 0;
  // What is judged is the median of the repeats: each is a maximum (or a quotient of such), and of
  // maxima the least says what happened when nothing did.
  bool by_median = false;
  // The same work done the baseline's way takes this many times what it takes us (best by best of
  // one interleaved run); 0: not a baseline's row.
  double times_ours = 0;
  std::uint64_t checksum = 0;
};

// The smallest of the repeats.
double Best(const Row& row);
// What is held against the bar and compared between machines: the smallest, or the median.
double Judged(const Row& row);

class Report {
 public:
  // `machine` is printed once, before the first group. `human`: print tables as they come.
  Report(std::string machine, bool human);

  void BeginGroup(const std::string& name);
  void Add(Row row);
  void EndGroup();
  // A line below the table: what is not a figure.
  void Note(const std::string& text);
  // The work was done wrongly: no time counts.
  void Fail(const std::string& what);

  // Every row against its known checksum, in both directions.
  void CompareWithGolden();
  // In words: the rows whose ratio is more than 30 % below the recorded one, also in the attempts
  // before. `best` carries each row's best ratio from attempt to attempt.
  std::vector<std::string> FallenRatios(std::map<std::string, double>& best) const;
  std::string ToJson() const;
  // The lines of bench/golden.h, and of bench/recorded.h.
  std::string ToGolden() const;
  std::string ToRecorded() const;
  bool failed() const { return !failures_.empty(); }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  struct Group {
    std::string name;
    Calibration calibration;
    double load = 0;  // of the machine, at the group's beginning
    std::vector<Row> rows;
    std::vector<std::string> notes;
  };
  void PrintGroup(const Group& group) const;

  std::string machine_;
  bool human_;
  std::vector<Group> groups_;
  std::vector<std::string> failures_;
};

// The error of a work that went wrong: kInternal.
tl::unexpected<Error> Wrong(std::string what);

// Processor, cores, memory, compiler, commit: in one line.
std::string MachineLine();
// The machine's load average of the last minute; negative: unknown.
double LoadAverage();
// Bytes of this process in memory, after the allocator gave back what it can.
std::uint64_t ResidentWithoutFreed();

}  // namespace conductor::bench
