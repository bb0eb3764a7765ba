#include "storage/log_retention.h"

#include <rocksdb/convenience.h>
#include <rocksdb/write_batch.h>

#include "storage/log_format.h"
#include "storage/rocksdb_options.h"

namespace conductor::storage {

rocksdb::Status WriteFirst(LogStore& store, Seq first, bool sync) {
  const auto key = EncodeSeqKey(first);
  return store.db->Put(MakeWriteOptions(sync), store.meta, kFirstKey,
                       rocksdb::Slice(key.data(), key.size()));
}

rocksdb::Status RemoveFilesBelow(LogStore& store, Seq first) {
  // Tables begin and end here, so that the next ones hold nothing older; and no write-ahead file
  // is kept for the sake of the meta family's one key.
  rocksdb::FlushOptions flush;
  flush.wait = true;
  flush.allow_write_stall = false;
  rocksdb::Status status = store.db->Flush(flush, {store.log, store.meta});
  if (!status.ok()) return status;
  const auto begin = EncodeSeqKey(0);
  const auto end = EncodeSeqKey(first);
  const rocksdb::Slice begin_key(begin.data(), begin.size());
  const rocksdb::Slice end_key(end.data(), end.size());
  return rocksdb::DeleteFilesInRange(store.db.get(), store.log, &begin_key, &end_key, false);
}

}  // namespace conductor::storage
