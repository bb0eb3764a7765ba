// Small text helpers of the command line: what the user may have meant, where home is, how a value
// is written into a log line. Pure, but for ExpandHome, which reads the environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"

namespace conductor::cli {

// Insertions, deletions and substitutions between two names, letters compared without case.
std::size_t EditDistance(std::string_view a, std::string_view b);

// The known name nearest to `name`; empty when there are none. Ties: the first.
std::string Nearest(std::string_view name, const std::vector<std::string>& known);

// "~" and "~/..." become paths below $HOME. Error: HOME is not set.
Result<std::string> ExpandHome(const std::string& path);

// A value of a key=value line: quoted and escaped when it has to be, on one line always.
std::string LogValue(std::string_view value);

// A file's bytes. Errors name the file and the reason.
Result<std::string> ReadFile(const std::string& path, std::size_t bytes_max);

}  // namespace conductor::cli
