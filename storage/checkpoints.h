// Checkpoints: complete copies of log and snapshots below the data directory,
// checkpoints/<position>.
//
// Tables and snapshots are linked, not copied, so a checkpoint costs little until the original
// files are gone. Each can be opened as a data directory. WriteCheckpoint and DeleteCheckpoint: one
// caller at a time, while nothing is dropped or removed.
#pragma once

#include <string>
#include <vector>

#include "src/ports.h"
#include "storage/log_store.h"
#include "storage/snapshot_files.h"

namespace conductor::storage {

// The last position of the copy is in the result. `options` are those `db` was opened with. A
// checkpoint of that position that already exists is returned as it is.
Result<SnapshotInfo> WriteCheckpoint(const LogStoreOptions& options, rocksdb::DB* db,
                                     const SnapshotFiles& snapshots);

// Ascending by position. Unfinished ones are not among them.
Result<std::vector<SnapshotInfo>> FindCheckpoints(const std::string& data_dir);

// kNotFound: `path` is none of them.
Status DeleteCheckpoint(const std::string& data_dir, const std::string& path);

// What a crash left half made or half removed.
Status RemoveUnfinishedCheckpoints(const std::string& data_dir);

}  // namespace conductor::storage
