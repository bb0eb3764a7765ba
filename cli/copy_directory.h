// Copies a checkpoint: complete and on disk, or not there at all. Regular files and directories.
#pragma once

#include <string>

#include "src/result.h"

namespace conductor::cli {

// `to` must not exist, or be an empty directory. Errors: kFailedPrecondition, kResourceExhausted.
Status CheckTarget(const std::string& to);
Status CopyDirectory(const std::string& from, const std::string& to);

}  // namespace conductor::cli
