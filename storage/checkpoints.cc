#include "storage/checkpoints.h"

#include <rocksdb/env.h>
#include <rocksdb/utilities/checkpoint.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "storage/log_format.h"
#include "storage/storage_error.h"

namespace conductor::storage {
namespace {

namespace fs = std::filesystem;

// Where a checkpoint grows; RocksDB adds a directory of that name with ".tmp".
constexpr char kGrowing[] = "growing";

std::string DirectoryOf(const std::string& data_dir) {
  return data_dir + "/" + kCheckpointsDirectory;
}

tl::unexpected<Error> Failed(const std::error_code& error, const std::string& what) {
  return tl::unexpected(FromErrno(error.value(), what));
}

std::uint64_t BytesBelow(const std::string& path) {
  std::uint64_t bytes = 0;
  std::error_code error;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code size_error;
    const std::uintmax_t size = entry->file_size(size_error);
    if (!size_error) bytes += size;
  }
  return bytes;
}

std::optional<Seq> ParseSeq(const std::string& name) {
  Seq seq = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), seq);
  if (parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) return std::nullopt;
  return seq;
}

Status SyncDirectory(rocksdb::Env* env, const std::string& path) {
  std::unique_ptr<rocksdb::Directory> directory;
  rocksdb::Status status = env->NewDirectory(path, &directory);
  if (status.ok()) status = directory->Fsync();
  if (!status.ok()) return tl::unexpected(FromRocksDb(status, "sync of directory " + path));
  return {};
}

Status RemoveLeftovers(const std::string& growing) {
  for (const std::string& path : {growing, growing + ".tmp"}) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) return Failed(error, "removal of unfinished checkpoint " + path);
  }
  return {};
}

// Only the copy itself knows where it ends: records may have been appended while it was made.
Result<Seq> LastSeqOf(LogStoreOptions options, const std::string& path) {
  options.data_dir = path;
  options.read_only = true;
  CONDUCTOR_ASSIGN_OR_RETURN(const std::unique_ptr<LogStore> store, OpenLogStore(options));
  return store->report.last;
}

}  // namespace

Result<SnapshotInfo> WriteCheckpoint(const LogStoreOptions& options, rocksdb::DB* db) {
  rocksdb::Env* env = options.env != nullptr ? options.env : rocksdb::Env::Default();
  const std::string directory = DirectoryOf(options.data_dir);
  const std::string growing = directory + "/" + kGrowing;
  std::error_code error;
  if (fs::create_directory(directory, error)) {
    CONDUCTOR_RETURN_IF_ERROR(SyncDirectory(env, options.data_dir));
  }
  if (error) return Failed(error, "directory " + directory + " could not be created");
  CONDUCTOR_RETURN_IF_ERROR(RemoveLeftovers(growing));

  rocksdb::Checkpoint* raw = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(db, &raw);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(raw);
  // 0: flush first, always, so that the copy needs no write-ahead files.
  if (status.ok()) status = checkpoint->CreateCheckpoint(growing, 0);
  if (!status.ok()) return tl::unexpected(FromRocksDb(status, "checkpoint in " + directory));

  CONDUCTOR_ASSIGN_OR_RETURN(const Seq last, LastSeqOf(options, growing));
  const std::string path = directory + "/" + std::to_string(last);
  if (fs::exists(path, error)) {
    CONDUCTOR_RETURN_IF_ERROR(RemoveLeftovers(growing));
  } else {
    fs::rename(growing, path, error);
    if (error) return Failed(error, "checkpoint " + path);
    CONDUCTOR_RETURN_IF_ERROR(SyncDirectory(env, directory));
  }
  return SnapshotInfo{last, BytesBelow(path), path};
}

Result<std::vector<SnapshotInfo>> FindCheckpoints(const std::string& data_dir) {
  std::vector<SnapshotInfo> found;
  const std::string directory = DirectoryOf(data_dir);
  std::error_code error;
  if (!fs::exists(directory, error)) return found;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::optional<Seq> seq = ParseSeq(name);
    if (!seq) continue;
    const std::string path = directory + "/" + name;
    found.push_back({*seq, BytesBelow(path), path});
  }
  if (error) return Failed(error, "directory " + directory);
  std::sort(found.begin(), found.end(),
            [](const SnapshotInfo& a, const SnapshotInfo& b) { return a.seq < b.seq; });
  return found;
}

}  // namespace conductor::storage
