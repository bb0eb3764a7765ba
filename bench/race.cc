#include "bench/race.h"

#include <numeric>

namespace conductor::bench {
namespace {

constexpr std::size_t kSamplesMin = 30;
constexpr std::size_t kSamplesMax = 20'000;

}  // namespace

void CompareWithFirst(std::vector<Racer>& racers) {
  for (std::size_t r = 1; r < racers.size(); ++r) {
    racers[r].row.times_ours = Best(racers[r].row) / Best(racers[0].row);
  }
}

Status Race(const Settings& settings, Items items, std::vector<Racer>& racers) {
  for (std::size_t repeat = 0; repeat < settings.repeats; ++repeat) {
    std::vector<std::vector<double>> samples(racers.size());
    const Stopwatch total;
    for (std::size_t begin = 0; begin < kSamplesMax; begin += items.turn) {
      if (begin >= kSamplesMin && total.ElapsedNs() > settings.query_seconds * 1e9) break;
      for (std::size_t r = 0; r < racers.size(); ++r) {
        for (std::size_t i = begin; i < begin + items.turn; ++i) {
          CONDUCTOR_ASSIGN_OR_RETURN(const double ns, racers[r].time_one(i % items.count));
          samples[r].push_back(ns);
        }
      }
    }
    for (std::size_t r = 0; r < racers.size(); ++r) {
      const double sum = std::accumulate(samples[r].begin(), samples[r].end(), 0.0);
      racers[r].row.repeats.push_back(racers[r].middle == Middle::kMean
                                          ? Per(sum, samples[r].size())
                                          : Quantile(samples[r], 0.5));
      racers[r].row.p99.push_back(Quantile(samples[r], 0.99));
    }
  }
  CompareWithFirst(racers);
  return {};
}

Status RaceAndReport(const Settings& settings, Items items, std::vector<Racer> racers,
                     Report& report) {
  CONDUCTOR_RETURN_IF_ERROR(Race(settings, items, racers));
  for (Racer& racer : racers) report.Add(std::move(racer.row));
  return {};
}

}  // namespace conductor::bench
