#include "cli/copy_directory.h"

#include <fcntl.h>
#include <unistd.h>

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

Status CopyDirectory(const std::string& from, const std::string& to) {
  CONDUCTOR_RETURN_IF_ERROR(CheckTarget(to));
  std::error_code error;
  fs::path target = fs::path(to).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "dir/"
  const fs::path unfinished = target.string() + ".unfinished";
  fs::remove_all(unfinished, error);
  fs::copy(from, unfinished, fs::copy_options::recursive, error);
  if (error) {
    const std::error_code why = error;
    fs::remove_all(unfinished, error);
    return Fail("copy of " + from + " to " + unfinished.string(), why);
  }
  if (!SyncFileSystem(unfinished.string())) {
    return Fail("sync of " + unfinished.string(), std::strerror(errno), errno == ENOSPC);
  }
  fs::remove(target, error);  // an empty one, if it is there
  fs::rename(unfinished, target, error);
  if (error) return Fail("rename of " + unfinished.string() + " to " + target.string(), error);
  return {};
}

}  // namespace conductor::cli
