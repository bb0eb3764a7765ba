#include "storage/rocksdb_event_log.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "storage/checkpoints.h"
#include "storage/data_directory.h"
#include "storage/log_format.h"
#include "storage/log_store.h"
#include "storage/record_codec.h"
#include "storage/rocksdb_options.h"
#include "storage/storage_error.h"
#include "storage/synced_mark.h"
#include "storage/wal_sync_fs.h"

namespace conductor::storage {
namespace {

using ReadLock = std::shared_lock<std::shared_mutex>;
using WriteLock = std::unique_lock<std::shared_mutex>;

std::string RecordName(Seq seq) {
  return "record " + std::to_string(seq);
}

Error WithPrefix(const std::string& prefix, Error error) {
  error.message = prefix + ": " + error.message;
  return error;
}

}  // namespace

RocksDbEventLog::RocksDbEventLog(Options options)
    : options_(std::move(options)),
      base_env_(options_.env != nullptr ? options_.env : rocksdb::Env::Default()),
      wal_syncs_(std::make_shared<WalSyncFs>(base_env_->GetFileSystem())),
      env_(MakeEnvWith(wal_syncs_, base_env_)),
      snapshots_(options_.data_dir, base_env_) {}
RocksDbEventLog::~RocksDbEventLog() = default;

LogStoreOptions RocksDbEventLog::StoreOptions() const {
  return {options_.data_dir, options_.create_if_missing, options_.read_only, env_.get(),
          options_.on_warning};
}

Result<std::unique_ptr<RocksDbEventLog>> RocksDbEventLog::Open(Options options) {
  std::unique_ptr<RocksDbEventLog> log(new RocksDbEventLog(std::move(options)));
  const Options& chosen = log->options_;
  CONDUCTOR_RETURN_IF_ERROR(
      PrepareDataDirectory(chosen.data_dir, chosen.create_if_missing && !chosen.read_only));
  const bool owner = !chosen.read_only || chosen.may_remove;
  if (owner) {
    if (chosen.read_only || !chosen.create_if_missing) {
      // Before the lock file is made: a directory without a log stays as it is.
      CONDUCTOR_ASSIGN_OR_RETURN(const bool present, HasDatabase(chosen.data_dir));
      if (!present) return MakeError(ErrorCode::kNotFound, log->Named() + " holds no log");
    }
    CONDUCTOR_ASSIGN_OR_RETURN(log->owner_, OwnerLock::Acquire(chosen.data_dir));
  }
  CONDUCTOR_RETURN_IF_ERROR(log->OpenStore());
  // Here and not in OpenStore: what grows, or is copied, while the log is reopened stays.
  if (owner) CONDUCTOR_RETURN_IF_ERROR(log->RemoveLeftovers());
  return log;
}

// The caller holds store_mutex_ exclusively, or is Open.
Status RocksDbEventLog::OpenStore() {
  store_.reset();
  // Listed first: a daemon that writes meanwhile cannot make one look ahead of the log.
  CONDUCTOR_ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, snapshots_.List());
  CONDUCTOR_ASSIGN_OR_RETURN(store_, OpenLogStore(StoreOptions()));
  first_.store(store_->report.first, std::memory_order_release);
  last_.store(store_->report.last, std::memory_order_release);
  synced_.store(store_->report.last, std::memory_order_release);
  CONDUCTOR_RETURN_IF_ERROR(GoOnBehind(snapshots));
  if (options_.read_only) return {};
  GiveBackSpace();
  if (synced_mark_ == nullptr) {
    CONDUCTOR_ASSIGN_OR_RETURN(synced_mark_, SyncedMark::Open(options_.data_dir));
  }
  // Recovery has written what it recovered into tables, so all of it is on disk.
  synced_mark_->Reset(store_->report.last);
  return {};
}

Status RocksDbEventLog::CheckWritable() const {
  if (options_.read_only) {
    return MakeError(ErrorCode::kFailedPrecondition, Named() + " is open read-only");
  }
  const std::lock_guard<std::mutex> lock(ended_mutex_);
  if (!ended_) return {};
  return MakeError(ErrorCode::kUnavailable, Named() + ": the log was ended by: " + ended_->message);
}

// The error is the first cause, whoever met it.
tl::unexpected<Error> RocksDbEventLog::End(Error error, bool echo) {
  const std::lock_guard<std::mutex> lock(ended_mutex_);
  if (!ended_ || (ended_is_echo_ && !echo)) {
    ended_ = std::move(error);
    ended_is_echo_ = echo;
  }
  return tl::unexpected(*ended_);
}

tl::unexpected<Error> RocksDbEventLog::End(const rocksdb::Status& status, const std::string& what) {
  return End(FromRocksDb(status, Named() + ": " + what), IsEcho(status));
}

// An append beside a sync may see that the file has failed before the sync can say how. The caller
// holds neither sync_mutex_ nor write_mutex_, and has ended the handle.
tl::unexpected<Error> RocksDbEventLog::EndOfAppend(const rocksdb::Status& status,
                                                   const std::string& what) {
  const std::lock_guard<std::mutex> no_sync_runs(sync_mutex_);
  return End(status, what);
}

Result<Seq> RocksDbEventLog::Append(std::span<const Record> records, Durability durability) {
  const ReadLock lock(store_mutex_);
  CONDUCTOR_RETURN_IF_ERROR(CheckWritable());
  const Seq last = LastSeq();
  rocksdb::WriteBatch batch;
  Seq seq = last;
  for (const Record& record : records) {
    auto value = EncodeRecord(record);
    if (!value) return tl::unexpected(WithPrefix(RecordName(seq + 1), value.error()));
    const auto key = EncodeSeqKey(++seq);
    const rocksdb::Status put =
        batch.Put(store_->log, rocksdb::Slice(key.data(), key.size()), *value);
    if (!put.ok()) return End(put, "batch of " + RecordName(seq));
  }
  const bool sync = durability == Durability::kSynced;
  std::unique_lock<std::mutex> write_lock(write_mutex_);
  CONDUCTOR_RETURN_IF_ERROR(CheckWritable());
  const rocksdb::Status written = store_->db->Write(MakeWriteOptions(sync), &batch);
  if (!written.ok()) {
    const std::string what = "append of " + RecordName(last + 1) + " to " + std::to_string(seq);
    auto ended = End(written, what);  // before the lock is gone: who syncs looks at it
    if (!IsEcho(written)) return ended;
    write_lock.unlock();
    return EndOfAppend(written, what);
  }
  last_.store(seq, std::memory_order_release);
  if (sync) NoteSynced(seq);
  return seq;
}

// What was synced stays so: of two syncs at once the later position counts.
void RocksDbEventLog::NoteSynced(Seq seq) {
  Seq before = synced_.load(std::memory_order_relaxed);
  while (before < seq && !synced_.compare_exchange_weak(before, seq, std::memory_order_release)) {
  }
  synced_mark_->Advance(seq);
}

// Why RocksDB stopped by itself: a flush in the background failed.
rocksdb::Status RocksDbEventLog::StoppedBy() const {
  std::uint64_t errors = 0;
  const bool known =
      store_->db->GetIntProperty(rocksdb::DB::Properties::kBackgroundErrors, &errors);
  if (!known || errors == 0) return rocksdb::Status::OK();
  rocksdb::WriteBatch nothing;
  return store_->db->Write(MakeWriteOptions(false), &nothing);
}

Status RocksDbEventLog::Sync() {
  const ReadLock lock(store_mutex_);
  const std::lock_guard<std::mutex> sync_lock(sync_mutex_);
  return SyncFiles();
}

// The caller holds store_mutex_ and sync_mutex_, so that no other file becomes the current one.
// Writes are kept out until RocksDB has seen that the last one of each file was good (WalSyncFs):
// the current file is the last one that it looks at.
Status RocksDbEventLog::SyncFiles() {
  std::unique_lock<std::mutex> write_lock(write_mutex_);
  CONDUCTOR_RETURN_IF_ERROR(CheckWritable());
  const Seq last = LastSeq();
  const rocksdb::Status stopped = StoppedBy();
  if (!stopped.ok()) return End(stopped, "sync");
  std::unique_ptr<rocksdb::LogFile> file;
  if (store_->db->GetCurrentWalFile(&file).ok()) {
    const std::string name = std::filesystem::path(file->PathName()).filename();
    wal_syncs_->CallAtSync(name, [&] { write_lock.unlock(); });
  }
  const rocksdb::Status synced = store_->db->SyncWAL();
  wal_syncs_->Forget();
  if (!synced.ok()) return End(synced, "sync");
  NoteSynced(last);
  return {};
}

Result<Seq> RocksDbEventLog::Reopen() {
  const WriteLock lock(store_mutex_);
  if (Status opened = OpenStore(); !opened) {
    store_.reset();
    const std::lock_guard<std::mutex> ended_lock(ended_mutex_);
    ended_ = opened.error();  // what hinders now
    ended_is_echo_ = false;
    return tl::unexpected(opened.error());
  }
  const std::lock_guard<std::mutex> ended_lock(ended_mutex_);
  ended_.reset();
  return LastSeq();
}

tl::unexpected<Error> RocksDbEventLog::Forgotten(Seq seq) const {
  return MakeError(ErrorCode::kOutOfRange,
                   RecordName(seq) + ": the log begins at " + std::to_string(FirstSeq()));
}

Status RocksDbEventLog::Read(Seq from, Seq to,
                             const std::function<Status(Seq, const Record&)>& visit) const {
  const ReadLock lock(store_mutex_);
  if (store_ == nullptr) {
    return MakeError(ErrorCode::kUnavailable, Named() + ": the log could not be reopened");
  }
  if (from < FirstSeq()) return Forgotten(from);
  const Seq last = std::min(to, LastSeq());
  if (from > last) return {};
  const auto from_key = EncodeSeqKey(from);
  const std::unique_ptr<rocksdb::Iterator> it(
      store_->db->NewIterator(MakeReadOptions(), store_->log));
  it->Seek(rocksdb::Slice(from_key.data(), from_key.size()));
  for (Seq seq = from; seq <= last; ++seq, it->Next()) {
    if (!it->status().ok()) {
      return tl::unexpected(
          WithAdvice(FromRocksDb(it->status(), Named() + ": read of " + RecordName(seq))));
    }
    const std::optional<Seq> found =
        it->Valid() ? DecodeSeqKey(it->key().ToStringView()) : std::nullopt;
    if (found != seq && seq < FirstSeq()) return Forgotten(seq);  // dropped meanwhile
    if (found != seq) {
      return MakeError(ErrorCode::kDataLoss,
                       Named() + ": " + RecordName(seq) + " is missing, found " +
                           (found ? RecordName(*found) : std::string("none after it")) + "; " +
                           kRestoreAdvice);
    }
    auto record = DecodeRecord(it->value().ToStringView());
    if (!record) {
      return tl::unexpected(
          WithAdvice(WithPrefix(Named() + ": " + RecordName(seq), record.error())));
    }
    CONDUCTOR_RETURN_IF_ERROR(visit(seq, *record));
  }
  return {};
}

RecoveryReport RocksDbEventLog::GetRecoveryReport() const {
  const ReadLock lock(store_mutex_);
  return store_ == nullptr ? RecoveryReport{} : store_->report;
}

}  // namespace conductor::storage
