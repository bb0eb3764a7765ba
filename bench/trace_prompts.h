// The requests of a trace as prompts: one block (or a few) for each hash id, its content a function
// of the id.
#pragma once

#include <string>
#include <vector>

#include "bench/prompts.h"
#include "tools/trace.h"

namespace conductor::bench {

// In the order of the file. Errors name the file and the line.
Result<std::vector<enginesim::TraceRequest>> ReadTrace(const std::string& path);

Prompt TracePrompt(const PromptSource& source, const enginesim::TraceRequest& request,
                   std::size_t blocks_per_id);

}  // namespace conductor::bench
