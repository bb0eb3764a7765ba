// The `limits` object of the configuration: every field of src/limits.h by its own name, each with
// the range it may have. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/json_fields.h"
#include "src/limits.h"

namespace conductor::cli {

Status ReadLimits(const Json& json, const std::string& path, Limits* limits);

// In the order of src/limits.h.
std::vector<std::string> LimitNames();

}  // namespace conductor::cli
