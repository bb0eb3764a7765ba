#include "storage/checkpoints.h"

#include <rocksdb/env.h>
#include <rocksdb/utilities/checkpoint.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <tuple>

#include "storage/env_files.h"
#include "storage/log_format.h"
#include "storage/storage_error.h"

namespace conductor::storage {
namespace {

namespace fs = std::filesystem;

// Where a checkpoint grows; RocksDB adds a directory of that name with ".tmp". And where one goes
// before it is removed, so that no half of it is taken for a checkpoint.
constexpr char kGrowing[] = "growing";
constexpr char kGrowingInRocksDb[] = "growing.tmp";
constexpr char kLeaving[] = "leaving";

std::string DirectoryOf(const std::string& data_dir) {
  return data_dir + "/" + kCheckpointsDirectory;
}

tl::unexpected<Error> Failed(const std::error_code& error, const std::string& what) {
  return tl::unexpected(FromErrno(error.value(), what));
}

std::uint64_t BytesBelow(const std::string& path) {
  std::uint64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator entry(path, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code size_error;
    if (!entry->is_regular_file(size_error)) continue;
    const std::uintmax_t size = entry->file_size(size_error);
    if (!size_error) bytes += size;
  }
  return bytes;
}

// The name of a checkpoint's directory: SEQ-N. N is when it was made, in microseconds since 1970,
// so that a name is never given twice, not even after its checkpoint is gone: a late removal must
// not hit another one. Earlier releases called it SEQ; that is one of the beginning of time.
struct Name {
  Seq seq = 0;
  std::uint64_t made_us = 0;

  std::string Text() const { return std::to_string(seq) + "-" + std::to_string(made_us); }
  std::int64_t made_unix_ms() const { return static_cast<std::int64_t>(made_us / 1'000); }
};

std::optional<Name> ParseName(const std::string& text) {
  Name name;
  const char* const end = text.data() + text.size();
  auto parsed = std::from_chars(text.data(), end, name.seq);
  if (parsed.ec != std::errc()) return std::nullopt;
  if (parsed.ptr == end) return name;
  if (*parsed.ptr != '-') return std::nullopt;
  parsed = std::from_chars(parsed.ptr + 1, end, name.made_us);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return name;
}

SnapshotInfo Describe(const Name& name, const std::string& path) {
  SnapshotInfo info;
  info.seq = name.seq;
  info.path = path;
  info.bytes = BytesBelow(path);
  info.created_unix_ms = name.made_unix_ms();
  return info;
}

// Also when two are made within a microsecond.
Name UnusedName(rocksdb::Env* env, const std::string& directory, Seq seq) {
  Name name{seq, env->NowMicros()};
  std::error_code error;
  while (fs::exists(directory + "/" + name.Text(), error)) ++name.made_us;
  return name;
}

// Only the copy itself knows where it ends: records may have been appended while it was made.
Result<Seq> LastSeqOf(LogStoreOptions options, const std::string& path) {
  options.data_dir = path;
  options.read_only = true;
  CONDUCTOR_ASSIGN_OR_RETURN(const std::unique_ptr<LogStore> store, OpenLogStore(options));
  return store->report.last;
}

Status Remove(const std::string& data_dir, const std::string& path) {
  CONDUCTOR_RETURN_IF_ERROR(RemoveUnfinishedCheckpoints(data_dir));
  std::error_code error;
  fs::rename(path, DirectoryOf(data_dir) + "/" + kLeaving, error);
  if (error) return Failed(error, "removal of checkpoint " + path);
  return RemoveUnfinishedCheckpoints(data_dir);
}

}  // namespace

Status RemoveUnfinishedCheckpoints(const std::string& data_dir) {
  for (const char* name : {kGrowing, kGrowingInRocksDb, kLeaving}) {
    const std::string path = DirectoryOf(data_dir) + "/" + name;
    std::error_code error;
    fs::remove_all(path, error);
    if (error) return Failed(error, "removal of unfinished checkpoint " + path);
  }
  return {};
}

Result<SnapshotInfo> WriteCheckpoint(const LogStoreOptions& options, rocksdb::DB* db,
                                     const SnapshotFiles& snapshots) {
  rocksdb::Env* env = options.env != nullptr ? options.env : rocksdb::Env::Default();
  const std::string directory = DirectoryOf(options.data_dir);
  const std::string growing = directory + "/" + kGrowing;
  std::error_code error;
  if (fs::create_directory(directory, error)) {
    CONDUCTOR_RETURN_IF_ERROR(SyncDirectory(env, options.data_dir));
  }
  if (error) return Failed(error, "directory " + directory + " could not be created");
  CONDUCTOR_RETURN_IF_ERROR(RemoveUnfinishedCheckpoints(options.data_dir));

  rocksdb::Checkpoint* raw = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(db, &raw);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(raw);
  // 0: flush first, always, so that the copy needs no write-ahead files.
  if (status.ok()) status = checkpoint->CreateCheckpoint(growing, 0);
  if (!status.ok()) return tl::unexpected(FromRocksDb(status, "checkpoint in " + directory));

  CONDUCTOR_ASSIGN_OR_RETURN(const Seq last, LastSeqOf(options, growing));
  CONDUCTOR_RETURN_IF_ERROR(snapshots.LinkInto(growing, last));
  CONDUCTOR_RETURN_IF_ERROR(SyncDirectory(env, growing));
  const Name name = UnusedName(env, directory, last);
  const std::string path = directory + "/" + name.Text();
  status = env->RenameFile(growing, path);
  if (!status.ok()) return tl::unexpected(FromRocksDb(status, "checkpoint " + path));
  CONDUCTOR_RETURN_IF_ERROR(SyncDirectory(env, directory));
  return Describe(name, path);
}

Result<std::vector<SnapshotInfo>> FindCheckpoints(const std::string& data_dir) {
  std::vector<SnapshotInfo> found;
  const std::string directory = DirectoryOf(data_dir);
  std::error_code error;
  if (!fs::exists(directory, error)) return found;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string text = entry->path().filename().string();
    if (const auto name = ParseName(text)) found.push_back(Describe(*name, directory + "/" + text));
  }
  if (error) return Failed(error, "directory " + directory);
  std::sort(found.begin(), found.end(), [](const SnapshotInfo& a, const SnapshotInfo& b) {
    return std::tie(a.seq, a.created_unix_ms, a.path) < std::tie(b.seq, b.created_unix_ms, b.path);
  });
  return found;
}

Status DeleteCheckpoint(const std::string& data_dir, const std::string& path) {
  CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> found, FindCheckpoints(data_dir));
  const bool known = std::any_of(found.begin(), found.end(),
                                 [&](const SnapshotInfo& info) { return info.path == path; });
  if (!known) return MakeError(ErrorCode::kNotFound, path + " is no checkpoint of this log");
  return Remove(data_dir, path);
}

Result<std::vector<SnapshotInfo>> DeleteCheckpointsUpTo(const std::string& data_dir,
                                                        std::int64_t unix_ms) {
  CONDUCTOR_ASSIGN_OR_RETURN(std::vector<SnapshotInfo> found, FindCheckpoints(data_dir));
  std::erase_if(found, [&](const SnapshotInfo& each) { return each.created_unix_ms > unix_ms; });
  for (const SnapshotInfo& each : found) {
    CONDUCTOR_RETURN_IF_ERROR(Remove(data_dir, each.path));
  }
  return found;
}

}  // namespace conductor::storage
