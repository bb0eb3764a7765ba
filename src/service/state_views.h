// What a state alone tells about services, contexts and blocks: shared by the running service and
// by `inspect` on a data directory. Connections and ages are not in a state: those fields keep
// their defaults. The caller sees to it that the state does not change meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/service.h"
#include "src/state/state_machine.h"

namespace conductor {

std::vector<ServiceView> ServicesOf(const StateMachine& state);
std::vector<ContextView> ContextsOf(const StateMachine& state);
// Who holds a block, by its 64-bit name in every context: one line of key=value each.
std::vector<std::string> HoldersOfBlock(const StateMachine& state, std::uint64_t hash);

}  // namespace conductor
