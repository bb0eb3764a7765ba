#include "cli/copy_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace conductor::cli {

namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> Fail(const std::string& what, const std::string& why, bool no_space) {
  return MakeError(no_space ? ErrorCode::kResourceExhausted : ErrorCode::kFailedPrecondition,
                   what + ": " + why);
}

tl::unexpected<Error> Fail(const std::string& what, const std::error_code& error) {
  return Fail(what, error.message(), error == std::errc::no_space_on_device);
}

// Everything of the file system `path` is on.
bool SyncFileSystem(const std::string& path) {
  const int directory = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  const bool synced = syncfs(directory) == 0;
  const int error_number = errno;
  close(directory);
  errno = error_number;
  return synced;
}

bool IsLeftOut(const fs::path& path, const CopyOptions& options) {
  const std::string name = path.filename().string();
  return std::find(options.leave_out.begin(), options.leave_out.end(), name) !=
         options.leave_out.end();
}

Status CopyTree(const fs::path& from, const fs::path& to, const CopyOptions& options) {
  const std::string what = "copy of " + from.string() + " to " + to.string();
  std::error_code error;
  fs::create_directory(to, error);
  if (error) return Fail(what, error);
  fs::recursive_directory_iterator entry(from, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (options.interrupted && options.interrupted()) {
      return MakeError(ErrorCode::kAborted, what + ": interrupted");
    }
    const bool is_directory = entry->is_directory(error);
    if (entry.depth() == 0 && IsLeftOut(entry->path(), options)) {
      if (is_directory) entry.disable_recursion_pending();
      continue;
    }
    const fs::path target = to / entry->path().lexically_relative(from);
    if (is_directory) {
      fs::create_directory(target, error);
    } else {
      fs::copy_file(entry->path(), target, error);
    }
    if (error) return Fail(what + ": " + entry->path().string(), error);
  }
  if (error) return Fail(what, error);
  return {};
}

}  // namespace

Status CheckTarget(const std::string& to) {
  std::error_code error;
  const bool exists = fs::exists(to, error);
  if (error) return Fail(to, error);
  if (exists && !(fs::is_directory(to, error) && fs::is_empty(to, error))) {
    return Fail(to, "exists and is not an empty directory", false);
  }
  return {};
}

Status CopyDirectory(const std::string& from, const std::string& to, const CopyOptions& options) {
  CONDUCTOR_RETURN_IF_ERROR(CheckTarget(to));
  std::error_code error;
  fs::path target = fs::path(to).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "dir/"
  const fs::path unfinished = target.string() + ".unfinished";
  fs::remove_all(unfinished, error);
  Status copied = CopyTree(from, unfinished, options);
  if (copied && !SyncFileSystem(unfinished.string())) {
    copied = Fail("sync of " + unfinished.string(), std::strerror(errno), errno == ENOSPC);
  }
  if (copied && options.check) copied = options.check(unfinished.string());
  if (!copied) {
    fs::remove_all(unfinished, error);
    return copied;
  }
  fs::remove(target, error);  // an empty one, if it is there
  fs::rename(unfinished, target, error);
  if (error) return Fail("rename of " + unfinished.string() + " to " + target.string(), error);
  // The new name is an entry of the directory above.
  if (!SyncFileSystem(target.string())) {
    return Fail("sync of " + target.string(), std::strerror(errno), errno == ENOSPC);
  }
  return {};
}

}  // namespace conductor::cli
