// The few operations on whole files and directories that our own files in the data directory need,
// through a rocksdb::Env. Pure functions, any thread.
#pragma once

#include <rocksdb/env.h>

#include <string>
#include <vector>

#include "src/result.h"

namespace conductor::storage {

// Without memory-mapped writes: each write is made before Append returns.
rocksdb::EnvOptions MakeEnvOptions();

// A new or changed name survives a power cut only when its directory is synced.
Status SyncDirectory(rocksdb::Env* env, const std::string& path);
// Makes it, when it is not there, below a directory that is.
Status EnsureDirectory(rocksdb::Env* env, const std::string& parent, const std::string& path);
// Nothing when there is no such directory.
Result<std::vector<std::string>> NamesIn(rocksdb::Env* env, const std::string& directory);
// A hard link, or a synced copy where the file system has none.
Status LinkOrCopy(rocksdb::Env* env, const std::string& from, const std::string& to);

}  // namespace conductor::storage
