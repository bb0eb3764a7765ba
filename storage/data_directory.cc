#include "storage/data_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "storage/log_format.h"
#include "storage/storage_error.h"

namespace conductor::storage {
namespace {

std::string Named(const std::string& data_dir) {
  return "data directory " + data_dir;
}

std::string ParentOf(const std::string& path) {
  std::filesystem::path clean(path);
  if (!clean.has_filename()) clean = clean.parent_path();
  const std::filesystem::path parent = clean.parent_path();
  return parent.empty() ? "." : parent.string();
}

// A new directory survives a power cut only when its parent is synced.
Status SyncDirectory(const std::string& path) {
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return tl::unexpected(FromErrno(errno, "open of directory " + path));
  const int synced = ::fsync(directory);
  const int error_number = errno;
  ::close(directory);
  if (synced != 0) return tl::unexpected(FromErrno(error_number, "sync of directory " + path));
  return {};
}

Status CreateDirectory(const std::string& data_dir) {
  const std::string parent = ParentOf(data_dir);
  if (::mkdir(data_dir.c_str(), 0755) != 0) {
    const int error_number = errno;
    // /proc and its like answer ENOENT although the parent is there.
    if (error_number == ENOENT && ::access(parent.c_str(), F_OK) != 0) {
      return MakeError(ErrorCode::kFailedPrecondition,
                       Named(data_dir) + ": its parent " + parent + " does not exist");
    }
    return tl::unexpected(
        WithAdvice(FromErrno(error_number, Named(data_dir) + " could not be created")));
  }
  return SyncDirectory(parent);
}

bool IsNumberedFile(const std::string& name, std::string_view suffix) {
  if (name.size() <= suffix.size() || !name.ends_with(suffix)) return false;
  return std::all_of(name.begin(), name.end() - static_cast<std::ptrdiff_t>(suffix.size()),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string ReadPid(int file) {
  char text[32];
  const ssize_t bytes = ::pread(file, text, sizeof text, 0);
  std::string pid;
  for (ssize_t i = 0; i < bytes && std::isdigit(static_cast<unsigned char>(text[i])) != 0; ++i) {
    pid += text[i];
  }
  return pid.empty() ? "pid unknown" : "pid " + pid;
}

// Failing is no error: the lock is what counts, and a full disk must not keep anyone from giving
// space back.
void WritePid(int file) {
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file, 0) != 0) return;
  [[maybe_unused]] const ssize_t ignored = ::pwrite(file, pid.data(), pid.size(), 0);
}

}  // namespace

Status PrepareDataDirectory(const std::string& data_dir, bool create) {
  if (data_dir.empty()) {
    return MakeError(ErrorCode::kInvalidArgument, "data directory: empty path");
  }
  struct stat info;
  if (::stat(data_dir.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return {};
    return MakeError(
        ErrorCode::kFailedPrecondition,
        Named(data_dir) + ": a file is there, expected a directory; choose another path");
  }
  if (errno == ENOENT) {
    if (create) return CreateDirectory(data_dir);
    return MakeError(ErrorCode::kNotFound, Named(data_dir) + " does not exist");
  }
  return tl::unexpected(WithAdvice(FromErrno(errno, Named(data_dir))));
}

Result<bool> HasDatabase(const std::string& data_dir) {
  std::error_code error;
  if (std::filesystem::exists(data_dir + "/CURRENT", error)) return true;
  std::filesystem::directory_iterator entry(data_dir, error);
  if (error) return tl::unexpected(WithAdvice(FromErrno(error.value(), Named(data_dir))));
  for (; entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (IsNumberedFile(name, ".sst") || IsNumberedFile(name, ".log")) {
      return MakeError(ErrorCode::kDataLoss, Named(data_dir) + ": file CURRENT is missing, but " +
                                                 name + " is there; " + kRestoreAdvice);
    }
    if (error) return tl::unexpected(FromErrno(error.value(), Named(data_dir)));
  }
  return false;
}

Result<std::unique_ptr<OwnerLock>> OwnerLock::Acquire(const std::string& data_dir) {
  const std::string path = data_dir + "/" + kOwnerFile;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) {
    return tl::unexpected(
        WithAdvice(FromErrno(errno, Named(data_dir) + " is not writable (file owner)")));
  }
  std::unique_ptr<OwnerLock> lock(new OwnerLock(-1));
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    const int error_number = errno;
    const std::string holder = ReadPid(file);
    ::close(file);
    if (error_number != EWOULDBLOCK) {
      return tl::unexpected(FromErrno(error_number, Named(data_dir) + ": lock of file owner"));
    }
    return MakeError(ErrorCode::kFailedPrecondition,
                     Named(data_dir) + " is in use by another conductor (" + holder +
                         "); stop that one, or choose another directory");
  }
  lock->file_ = file;
  WritePid(file);
  return lock;
}

OwnerLock::~OwnerLock() {
  if (file_ < 0) return;
  // The file stays: removing it would let two processes lock two files of one name.
  [[maybe_unused]] const int ignored = ::ftruncate(file_, 0);
  ::close(file_);
}

}  // namespace conductor::storage
