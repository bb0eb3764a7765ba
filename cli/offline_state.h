// The state of a data directory, rebuilt from its log without a daemon: what `inspect` shows
// offline. Live facts (connections, ages) are not in the log; those fields keep their defaults. One
// thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/ports.h"
#include "src/service.h"
#include "src/state/state_machine.h"

namespace conductor::cli {

class OfflineState {
 public:
  // Reads the whole log. kDataLoss: damaged, or its beginning is missing.
  static Result<OfflineState> Read(const EventLog& log);

  std::vector<ServiceView> Services() const;
  std::vector<ContextView> Contexts() const;
  // Holders of a block by its 64-bit name, one line each.
  std::vector<std::string> Block(std::uint64_t hash) const;

 private:
  OfflineState() : state_(std::make_unique<StateMachine>()) {}
  std::unique_ptr<StateMachine> state_;
};

}  // namespace conductor::cli
