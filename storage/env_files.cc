#include "storage/env_files.h"

#include <memory>

#include "storage/storage_error.h"

namespace conductor::storage {
namespace {

constexpr std::size_t kCopyBytes = 1u << 20;

rocksdb::Status Copy(rocksdb::Env* env, const std::string& from, const std::string& to) {
  std::unique_ptr<rocksdb::SequentialFile> source;
  std::unique_ptr<rocksdb::WritableFile> target;
  rocksdb::Status status = env->NewSequentialFile(from, &source, MakeEnvOptions());
  if (status.ok()) status = env->NewWritableFile(to, &target, MakeEnvOptions());
  const std::unique_ptr<char[]> buffer(new char[kCopyBytes]);
  while (status.ok()) {
    rocksdb::Slice bytes;
    status = source->Read(kCopyBytes, &bytes, buffer.get());
    if (!status.ok() || bytes.empty()) break;
    status = target->Append(bytes);
  }
  if (status.ok()) status = target->Sync();
  if (status.ok()) status = target->Close();
  return status;
}

}  // namespace

rocksdb::EnvOptions MakeEnvOptions() {
  rocksdb::EnvOptions options;
  options.use_mmap_reads = false;
  options.use_mmap_writes = false;
  options.use_direct_reads = false;
  options.use_direct_writes = false;
  return options;
}

Status SyncDirectory(rocksdb::Env* env, const std::string& path) {
  std::unique_ptr<rocksdb::Directory> directory;
  rocksdb::Status status = env->NewDirectory(path, &directory);
  if (status.ok()) status = directory->Fsync();
  if (!status.ok()) return tl::unexpected(FromRocksDb(status, "sync of directory " + path));
  return {};
}

Status EnsureDirectory(rocksdb::Env* env, const std::string& parent, const std::string& path) {
  if (env->FileExists(path).ok()) return {};
  const rocksdb::Status made = env->CreateDirIfMissing(path);
  if (!made.ok()) {
    return tl::unexpected(FromRocksDb(made, "directory " + path + " could not be created"));
  }
  return SyncDirectory(env, parent);
}

Result<std::vector<std::string>> NamesIn(rocksdb::Env* env, const std::string& directory) {
  std::vector<std::string> names;
  const rocksdb::Status listed = env->GetChildren(directory, &names);
  if (listed.IsNotFound() || listed.IsPathNotFound()) return std::vector<std::string>{};
  if (!listed.ok()) return tl::unexpected(FromRocksDb(listed, "directory " + directory));
  return names;
}

Status LinkOrCopy(rocksdb::Env* env, const std::string& from, const std::string& to) {
  rocksdb::Status status = env->LinkFile(from, to);
  if (status.IsNotSupported()) status = Copy(env, from, to);
  if (!status.ok()) return tl::unexpected(FromRocksDb(status, "copy of " + from + " to " + to));
  return {};
}

}  // namespace conductor::storage
