// Checkpoints: complete copies of log and snapshots below the data directory,
// checkpoints/<position>-<when it was made>. Each has a name of its own, so that whoever removes
// one removes nobody else's.
//
// Tables and snapshots are linked, not copied, so a checkpoint costs little until the original
// files are gone. Each can be opened as a data directory. What writes
// or deletes here: one caller at a time, while nothing is dropped or removed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/ports.h"
#include "storage/log_store.h"
#include "storage/snapshot_files.h"

namespace conductor::storage {

// The last position of the copy is in the result. `options` are those `db` was opened with. After
// an error there may be an unfinished one.
Result<SnapshotInfo> WriteCheckpoint(const LogStoreOptions& options, rocksdb::DB* db,
                                     const SnapshotFiles& snapshots);

// Ascending by position, then by age, the oldest first. Unfinished ones are not among them.
Result<std::vector<SnapshotInfo>> FindCheckpoints(const std::string& data_dir);

// kNotFound: `path` is none of them.
Status DeleteCheckpoint(const std::string& data_dir, const std::string& path);

// Those made at or before that moment, which nobody is copying any more; they are in the result.
Result<std::vector<SnapshotInfo>> DeleteCheckpointsUpTo(const std::string& data_dir,
                                                        std::int64_t unix_ms);

// What a crash left half made or half removed.
Status RemoveUnfinishedCheckpoints(const std::string& data_dir);

}  // namespace conductor::storage
