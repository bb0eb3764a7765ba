// Checkpoints: complete copies of the log below the data directory, checkpoints/<position>.
//
// Tables are linked, not copied, so a checkpoint costs little until the original files are gone.
// Each can be opened as a data directory. WriteCheckpoint: one caller at a time.
#pragma once

#include <string>
#include <vector>

#include "src/ports.h"
#include "storage/log_store.h"

namespace conductor::storage {

// The last position of the copy is in the result. `options` are those `db` was opened with. A
// checkpoint of that position that already exists is returned as it is.
Result<SnapshotInfo> WriteCheckpoint(const LogStoreOptions& options, rocksdb::DB* db);

// Ascending by position. Unfinished ones are not among them.
Result<std::vector<SnapshotInfo>> FindCheckpoints(const std::string& data_dir);

}  // namespace conductor::storage
