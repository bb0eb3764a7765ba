// What a service does for others while something large goes on: a 64-block prompt comes and goes,
// each time until that is visible, and a query of 4,096 tokens, in turn.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "bench/service_rig.h"
#include "bench/workload.h"

namespace conductor::bench {

struct Beside {
  std::vector<double> visible, query;  // ns each
};

// While `more` says so. The first instance has prompt 0 of `source`; its stream is 1, its next
// frame `number`.
Status ComeAndGo(const PromptSource& source, ServiceRig& rig, std::uint64_t& number,
                 const std::function<bool(std::size_t samples)>& more, Beside& beside);

// While `work` is done, on a thread of its own.
Status ComeAndGoBeside(const PromptSource& source, ServiceRig& rig, std::uint64_t& number,
                       const std::function<Status()>& work, Beside& beside);

// Rows of what was beside; one Add a repeat.
class BesideRows {
 public:
  // `of`: what the rows are of, "service, 1 M blocks, snapshots".
  explicit BesideRows(const std::string& of);
  void Add(const Beside& beside);
  std::vector<Row*> rows() { return {&visible_, &longest_, &query_}; }

 private:
  Row visible_, longest_, query_;
};

}  // namespace conductor::bench
