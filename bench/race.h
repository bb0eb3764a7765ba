// A race: several ways to do the same work, in turns, again and again in one run, so that whatever
// else the machine does meets all of them.
#pragma once

#include <functional>
#include <vector>

#include "bench/rows.h"

namespace conductor::bench {

// What a repeat comes to: of items that are alike, or of items whose sum matters.
enum class Middle { kMedian, kMean };

struct Racer {
  Row row;
  // Does the work on item i (a prompt, a batch), checks the answer outside its own clock, and
  // returns nanoseconds of one unit.
  std::function<Result<double>(std::size_t i)> time_one;
  Middle middle = Middle::kMedian;
};

struct Items {
  Items(std::size_t items, std::size_t items_of_a_turn = 1) : count(items), turn(items_of_a_turn) {}
  std::size_t count;
  // So many in a row, then the next racer does the same ones: where each has its own large memory,
  // turns of one item would measure how cold the others leave the caches.
  std::size_t turn;
};

// Gives each row the median and p99 of each repeat; the first racer is ours, and the other rows
// say how many times as long they took, best by best.
Status Race(const Settings& settings, Items items, std::vector<Racer>& racers);
// The same, added to the report.
Status RaceAndReport(const Settings& settings, Items items, std::vector<Racer> racers,
                     Report& report);

// Sets `times_ours` of every row after the first.
void CompareWithFirst(std::vector<Racer>& racers);

}  // namespace conductor::bench
