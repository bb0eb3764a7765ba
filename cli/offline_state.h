// The state of a data directory, rebuilt from its log without a daemon: what `inspect` shows
// offline. src/service/state_views.h says what a state alone tells.
#pragma once

#include <memory>

#include "src/ports.h"
#include "src/state/state_machine.h"

namespace conductor::cli {

// Reads the whole log. kDataLoss: damaged, or its beginning is missing.
Result<std::unique_ptr<StateMachine>> ReadState(const EventLog& log);

}  // namespace conductor::cli
