// The part of `inspect` that has a file of its own.
#pragma once

#include "cli/ctl.h"

namespace conductor::cli {

void AddInspectLogCommand(CLI::App& inspect, Ctl& ctl);

}  // namespace conductor::cli
