#include "bench/harness.h"

#include <malloc.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "bench/workload.h"
#include "conductor_version.h"
#include "src/check.h"
#include "src/hash/chain.h"
#include "src/hash/fingerprint.h"
#include "src/resident_memory.h"

namespace conductor::bench {
namespace {

constexpr int kCalibrationBatches = 7;
constexpr std::size_t kCalibrationSteps = 10'000;
constexpr double kSleepAheadNs = 200e3;  // less than this ahead of time is waited for awake

std::string ProcessorName() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

double ProcessorWatch::Now() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void WaitUntilDue(const Stopwatch& watch, double due_ns) {
  for (double ahead = due_ns - watch.ElapsedNs(); ahead > 0; ahead = due_ns - watch.ElapsedNs()) {
    if (ahead > kSleepAheadNs) {
      std::this_thread::sleep_for(
          std::chrono::nanoseconds(static_cast<std::int64_t>(ahead - kSleepAheadNs)));
    } else {
      std::this_thread::yield();
    }
  }
}

void Checksum::Add(std::uint64_t value) {
  value_ = MixBits(value_ ^ value) + 1;
}

void Checksum::Add(std::string_view text) {
  Add(text.size());
  for (unsigned char c : text) Add(std::uint64_t{c});
}

std::string SpellCount(std::size_t count) {
  return count % 1'000'000 == 0 ? std::to_string(count / 1'000'000) + "M"
                                : std::to_string(count / 1'000) + "k";
}

double Quantile(std::vector<double> values, double quantile) {
  CHECK(!values.empty());
  const auto rank =
      static_cast<std::size_t>(std::ceil(quantile * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank == 0 ? 0 : rank - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// The best of several batches: what the machine can do, not who else is on it.
Calibration Calibrate() {
  const PromptSource source(1);
  const BlockHasher hasher(BenchProfile());
  const std::vector<std::int32_t> tokens = source.Tokens(0, 256);
  const auto block = [&](std::size_t i) {
    return std::span(tokens).subspan((i % 256) * kBlockSize, kBlockSize);
  };
  Calibration best{1e18, 1e18};
  volatile std::uint64_t sink = 0;
  for (int batch = 0; batch < kCalibrationBatches; ++batch) {
    Digest digest = hasher.Root();
    const Stopwatch sha;
    for (std::size_t i = 0; i < kCalibrationSteps; ++i)
      digest = hasher.HashTokens(digest, block(i));
    best.cal_ns = std::min(best.cal_ns, sha.ElapsedNs() / kCalibrationSteps);
    std::uint64_t sum = hasher.Project(digest);
    const Stopwatch xxh3;
    for (std::size_t i = 0; i < kCalibrationSteps; ++i) sum += FingerprintV1(block(i), {});
    best.xxh3_ns = std::min(best.xxh3_ns, xxh3.ElapsedNs() / kCalibrationSteps);
    sink = sink + sum;
  }
  return best;
}

tl::unexpected<Error> Wrong(std::string what) {
  return MakeError(ErrorCode::kInternal, std::move(what));
}

std::string MachineLine() {
  utsname system{};
  uname(&system);
  return ProcessorName() + ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " cores, " +
         std::to_string((sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)) >> 30) + " GiB, " +
         system.sysname + " " + system.release + ", compiler " + __VERSION__ +
         ", commit " CONDUCTOR_COMMIT;
}

double LoadAverage() {
  double load[1] = {0};
  return getloadavg(load, 1) == 1 ? load[0] : -1;
}

std::uint64_t ResidentWithoutFreed() {
  malloc_trim(0);
  return ResidentBytes();
}

}  // namespace conductor::bench
