// Copies a data directory or a checkpoint: complete, checked and on disk, or not there at all.
// Regular files and directories. One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/result.h"

namespace conductor::cli {

struct CopyOptions {
  std::vector<std::string> leave_out;  // names in the directory itself
  // Called with the finished copy before it gets its name; an error undoes it.
  std::function<Status(const std::string& path)> check;
  // Asked before every file: true ends the copy and undoes it.
  std::function<bool()> interrupted;
};

// `to` must not exist, or be an empty directory. Errors: kFailedPrecondition, kResourceExhausted;
// kAborted: interrupted.
Status CheckTarget(const std::string& to);
Status CopyDirectory(const std::string& from, const std::string& to,
                     const CopyOptions& options = {});

}  // namespace conductor::cli
