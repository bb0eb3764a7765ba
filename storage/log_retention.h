// Where a log begins, and the space of what lies before. Functions on an open, writable store; any
// thread, one at a time.
#pragma once

#include "src/result.h"
#include "src/types.h"
#include "storage/log_store.h"

namespace conductor::storage {

// `sync`: it is on disk when this returns. The log begins at `first`, whatever lies before.
rocksdb::Status WriteFirst(LogStore& store, Seq first, bool sync);

// Removes whole files that hold nothing from `first` on. What they said is not looked for again, so
// this may be left out, fail half-way, or be done at the next start.
rocksdb::Status RemoveFilesBelow(LogStore& store, Seq first);

}  // namespace conductor::storage
