// QueryCounters: what queries were asked for, counted by the threads that answer them. Each thread
// counts in a cache line of its own, so that no query waits for a line that another one writes; as
// many as there are lines, then they share. Any thread may count and sum.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace conductor {

class QueryCounters {
 public:
  static constexpr std::size_t kLines = 64;

  struct Counts {
    std::uint64_t queries = 0, asked_tokens = 0, matched_tokens = 0;
  };

  void Add(const Counts& counts) {
    Line& line = lines_[LineOfThread()];
    line.queries.fetch_add(counts.queries, std::memory_order_relaxed);
    line.asked_tokens.fetch_add(counts.asked_tokens, std::memory_order_relaxed);
    line.matched_tokens.fetch_add(counts.matched_tokens, std::memory_order_relaxed);
  }
  // Everything that was counted before the call, and maybe some of what is counted meanwhile.
  Counts Sum() const {
    Counts sum;
    for (const Line& line : lines_) {
      sum.queries += line.queries.load(std::memory_order_relaxed);
      sum.asked_tokens += line.asked_tokens.load(std::memory_order_relaxed);
      sum.matched_tokens += line.matched_tokens.load(std::memory_order_relaxed);
    }
    return sum;
  }

  // In turn, as threads come.
  static std::size_t LineOfThread() {
    static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t line = threads.fetch_add(1, std::memory_order_relaxed) % kLines;
    return line;
  }

 private:
  struct alignas(64) Line {
    std::atomic<std::uint64_t> queries{0}, asked_tokens{0}, matched_tokens{0};
  };
  std::array<Line, kLines> lines_;
};

}  // namespace conductor
