// Who goes first where there are fewer processors than threads: queries. A thread that takes events
// in shares the processors as before, but when it is woken it does not interrupt one that is
// answering a query (SCHED_BATCH; docs/decisions/0013).
//
// A system that forbids it leaves everything as it is: nothing depends on it but latencies.
#pragma once

namespace conductor {

// For as long as it lives, on the thread that made it. What that thread starts meanwhile is of that
// kind for good: threads inherit it.
class QueriesFirst {
 public:
  QueriesFirst();
  ~QueriesFirst();
  QueriesFirst(const QueriesFirst&) = delete;
  QueriesFirst& operator=(const QueriesFirst&) = delete;

 private:
  const bool changed_;
};

}  // namespace conductor
