#include "storage/log_store.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "storage/data_directory.h"
#include "storage/env_files.h"
#include "storage/log_format.h"
#include "storage/log_retention.h"
#include "storage/rocksdb_options.h"
#include "storage/storage_error.h"
#include "storage/synced_mark.h"
#include "storage/warning_logger.h"

namespace conductor::storage {
namespace {

// A running daemon may delete a file between our listing it and our opening it.
constexpr int kReadOnlyAttemptsMax = 5;

constexpr std::size_t kSectorBytes = 512;

using Families = std::vector<std::string>;

std::string Named(const LogStoreOptions& options) {
  return "data directory " + options.data_dir;
}

tl::unexpected<Error> Foreign(const LogStoreOptions& options, const std::string& found) {
  return MakeError(ErrorCode::kFailedPrecondition,
                   Named(options) + ": a RocksDB database that is no conductor log (" + found +
                       "); choose another directory");
}

std::string Join(const Families& families) {
  std::string text;
  for (const std::string& family : families) text += (text.empty() ? "" : ", ") + family;
  return text;
}

bool Contains(const Families& families, const char* family) {
  return std::find(families.begin(), families.end(), family) != families.end();
}

rocksdb::ColumnFamilyHandle* FindHandle(const LogStore& store, const char* family) {
  for (rocksdb::ColumnFamilyHandle* handle : store.handles) {
    if (handle->GetName() == family) return handle;
  }
  return nullptr;
}

void AddWalSizes(const LogStoreOptions& options, RecoveryReport* report) {
  rocksdb::Env* env = options.env != nullptr ? options.env : rocksdb::Env::Default();
  std::vector<std::string> names;
  if (!env->GetChildren(options.data_dir, &names).ok()) return;
  for (const std::string& name : names) {
    std::uint64_t bytes = 0;
    if (!name.ends_with(".log")) continue;
    if (!env->GetFileSize(options.data_dir + "/" + name, &bytes).ok()) continue;
    ++report->wal_files;
    report->wal_bytes += bytes;
  }
}

// Opens RocksDB and nothing more. The drops of its recovery go to `drops`.
Result<std::unique_ptr<LogStore>> OpenDatabase(const LogStoreOptions& options,
                                               const Families& families, bool read_only,
                                               bool create, std::vector<WalDrop>* drops) {
  const auto logger = std::make_shared<WarningLogger>(options.on_warning);
  rocksdb::DBOptions db_options = MakeDbOptions(options.env, logger);
  db_options.create_if_missing = create;
  db_options.create_missing_column_families = create;
  const rocksdb::ColumnFamilyOptions family_options = MakeFamilyOptions();
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  descriptors.reserve(families.size());
  for (const std::string& family : families) descriptors.emplace_back(family, family_options);

  auto store = std::make_unique<LogStore>();
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      read_only
          ? rocksdb::DB::OpenForReadOnly(db_options, options.data_dir, descriptors, &store->handles,
                                         &db)
          : rocksdb::DB::Open(db_options, options.data_dir, descriptors, &store->handles, &db);
  if (!opened.ok()) return tl::unexpected(FromRocksDb(opened, Named(options)));
  store->db.reset(db);
  store->log = FindHandle(*store, kLogFamily);
  store->meta = FindHandle(*store, kMetaFamily);
  if (drops != nullptr) *drops = logger->TakeDrops();
  return store;
}

Result<Families> ListFamilies(const LogStoreOptions& options) {
  Families families;
  const rocksdb::DBOptions db_options =
      MakeDbOptions(options.env, std::make_shared<WarningLogger>(options.on_warning));
  const rocksdb::Status listed =
      rocksdb::DB::ListColumnFamilies(db_options, options.data_dir, &families);
  if (!listed.ok()) return tl::unexpected(FromRocksDb(listed, Named(options)));
  return families;
}

Result<std::optional<std::string>> GetMeta(const LogStoreOptions& options, const LogStore& store,
                                           const char* key) {
  if (store.meta == nullptr) return std::nullopt;
  std::string value;
  const rocksdb::Status got = store.db->Get(MakeReadOptions(), store.meta, key, &value);
  if (got.IsNotFound()) return std::nullopt;
  if (!got.ok()) {
    return tl::unexpected(FromRocksDb(got, Named(options) + ": read of meta key " + key));
  }
  return value;
}

Result<bool> IsEmpty(const LogStoreOptions& options, const LogStore& store) {
  for (rocksdb::ColumnFamilyHandle* handle : store.handles) {
    const std::unique_ptr<rocksdb::Iterator> it(store.db->NewIterator(MakeReadOptions(), handle));
    it->SeekToFirst();
    if (it->Valid()) return false;
    if (!it->status().ok()) return tl::unexpected(FromRocksDb(it->status(), Named(options)));
  }
  return true;
}

enum class Finding { kOurs, kUnfinished };  // kUnfinished: killed while it was being created

Result<Finding> JudgeFormat(const LogStoreOptions& options, const LogStore& store,
                            const Families& families) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto format, GetMeta(options, store, kFormatKey));
  if (!format) {
    CONDUCTOR_ASSIGN_OR_RETURN(const bool empty, IsEmpty(options, store));
    const bool only_ours = std::all_of(families.begin(), families.end(), [](const auto& family) {
      return family == rocksdb::kDefaultColumnFamilyName || family == kLogFamily ||
             family == kMetaFamily;
    });
    if (empty && only_ours) return Finding::kUnfinished;
    return Foreign(options, "column families: " + Join(families));
  }
  if (*format != kFormatV1) {
    if (!format->starts_with(kFormatPrefix)) return Foreign(options, "format: " + *format);
    return MakeError(ErrorCode::kFailedPrecondition, Named(options) + ": format '" + *format +
                                                         "', this build reads '" + kFormatV1 +
                                                         "'; start the release that wrote it");
  }
  if (!Contains(families, kLogFamily) || families.size() != 3) {
    return MakeError(ErrorCode::kDataLoss, Named(options) + ": column families " + Join(families) +
                                               ", expected default, log, meta");
  }
  return Finding::kOurs;
}

Status FindPositions(const LogStoreOptions& options, LogStore* store) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto first, GetMeta(options, *store, kFirstKey));
  const std::optional<Seq> first_seq = DecodeSeqKey(first.value_or(""));
  if (!first_seq || *first_seq == 0) {
    return MakeError(ErrorCode::kDataLoss, Named(options) + ": meta key first is unreadable");
  }
  store->report.first = *first_seq;
  store->report.last = *first_seq - 1;
  const std::unique_ptr<rocksdb::Iterator> it(
      store->db->NewIterator(MakeReadOptions(), store->log));
  it->SeekToLast();
  if (!it->status().ok()) {
    return tl::unexpected(
        FromRocksDb(it->status(), Named(options) + ": search of the last record"));
  }
  if (!it->Valid()) return {};
  const std::optional<Seq> last = DecodeSeqKey(it->key().ToStringView());
  if (!last || *last == 0) {
    return MakeError(ErrorCode::kDataLoss,
                     Named(options) + ": key " + it->key().ToString(true) + " is no log position");
  }
  // Records before the first one were dropped; some are there until their file is removed.
  if (*last < *first_seq) return {};
  store->report.last = *last;
  return {};
}

// Tables of the log and what the write-ahead files brought follow each other. (Inside a table a
// hole is found when it is read.) Otherwise a table is missing that a damaged manifest forgot: it
// may still lie there, and opening for writing would remove it.
Status CheckTablesMeet(const LogStoreOptions& options, const LogStore& store) {
  const RecoveryReport& report = store.report;
  std::vector<rocksdb::LiveFileMetaData> tables;
  store.db->GetLiveFilesMetaData(&tables);
  std::erase_if(tables, [](const auto& table) { return table.column_family_name != kLogFamily; });
  std::sort(tables.begin(), tables.end(),
            [](const auto& a, const auto& b) { return a.smallestkey < b.smallestkey; });
  Seq next = report.first;
  for (const rocksdb::LiveFileMetaData& table : tables) {
    if (DecodeSeqKey(table.smallestkey).value_or(0) > next) break;
    next = std::max(next, DecodeSeqKey(table.largestkey).value_or(0) + 1);
  }
  if (next > report.last) return {};
  const auto key = EncodeSeqKey(next);
  const rocksdb::Slice expected(key.data(), key.size());
  const std::unique_ptr<rocksdb::Iterator> it(store.db->NewIterator(MakeReadOptions(), store.log));
  it->Seek(expected);
  if (it->Valid() && it->key() == expected) return {};
  const std::string what = Named(options) + ": record " + std::to_string(next);
  if (!it->status().ok()) return tl::unexpected(FromRocksDb(it->status(), what));
  return MakeError(ErrorCode::kDataLoss, what + " is missing, although later ones are there");
}

// Whether a drop only says that the file ends too early: the trace of a kill or a power cut.
bool IsTornEnd(const WalDrop& drop) {
  for (const char* words :
       {"truncated header", "truncated record body", "error reading trailing"}) {
    if (drop.reason.find(words) != std::string::npos) return true;
  }
  return false;
}

// A power cut can leave the last sector of a file as zeros; damage in the middle does not.
bool EndsInZeros(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::array<char, kSectorBytes> sector;
  if (!file || file.tellg() < static_cast<std::streamoff>(sector.size())) return false;
  file.seekg(-static_cast<std::streamoff>(sector.size()), std::ios::end);
  if (!file.read(sector.data(), sector.size())) return false;
  return std::all_of(sector.begin(), sector.end(), [](char byte) { return byte == 0; });
}

// A table in the directory that is none of the database's; "": there is none.
Result<std::string> FindUnknownTable(const LogStoreOptions& options, const LogStore& store) {
  rocksdb::Env* env = options.env != nullptr ? options.env : rocksdb::Env::Default();
  CONDUCTOR_ASSIGN_OR_RETURN(const auto names, NamesIn(env, options.data_dir));
  std::vector<rocksdb::LiveFileMetaData> tables;
  store.db->GetLiveFilesMetaData(&tables);
  for (const std::string& name : names) {
    if (!name.ends_with(".sst")) continue;
    const bool known = std::any_of(tables.begin(), tables.end(),
                                   [&](const auto& table) { return table.name == "/" + name; });
    if (!known) return name;
  }
  return std::string();
}

// Compares what was recovered with what was known to be on disk. What nobody was promised may be
// gone, and so may the end of a file that somebody cut; damage with promised records behind it is
// an error.
Status JudgeLoss(const LogStoreOptions& options, const std::vector<WalDrop>& drops,
                 std::optional<Seq> synced, LogStore& store) {
  RecoveryReport* report = &store.report;
  for (const WalDrop& drop : drops) {
    report->dropped_bytes += drop.bytes;
    report->drops.push_back(drop.file + ": " + std::to_string(drop.bytes) +
                            " bytes: " + drop.reason);
  }
  if (!synced || *synced <= report->last) return {};
  report->synced_records_missing = *synced - report->last;
  const auto refuse = [&](const std::string& why) {
    return MakeError(ErrorCode::kDataLoss,
                     Named(options) + ": " + why + ": the log ends at record " +
                         std::to_string(report->last) + ", expected " + std::to_string(*synced) +
                         "; to go on without them remove the file " + kSyncedFile + ", or " +
                         kRestoreAdvice);
  };
  if (report->wal_files == 0) return refuse("its write-ahead files are gone");
  // The records are in a table that a damaged manifest does not name; going on would remove it.
  CONDUCTOR_ASSIGN_OR_RETURN(const std::string table, FindUnknownTable(options, store));
  if (!table.empty()) return refuse("the manifest does not know the table " + table);
  const auto damage = std::find_if_not(drops.begin(), drops.end(), [&](const WalDrop& drop) {
    return IsTornEnd(drop) || EndsInZeros(options.data_dir + "/" + drop.file);
  });
  if (damage == drops.end()) return {};
  return refuse("file " + damage->file + " is damaged (" + damage->reason + ")");
}

// The first, read-only look. A `store` without db: there is nothing yet, or an unfinished creation.
Result<std::unique_ptr<LogStore>> Inspect(const LogStoreOptions& options) {
  CONDUCTOR_ASSIGN_OR_RETURN(const bool present, HasDatabase(options.data_dir));
  if (!present) return std::make_unique<LogStore>();
  // Read before the log, so that a daemon that writes meanwhile cannot make it look too new.
  const std::optional<Seq> synced = SyncedMark::Read(options.data_dir);
  CONDUCTOR_ASSIGN_OR_RETURN(const Families families, ListFamilies(options));
  std::vector<WalDrop> drops;
  auto opened = OpenDatabase(options, families, true, false, &drops);
  if (!opened) {
    if (Contains(families, kLogFamily) && Contains(families, kMetaFamily)) return opened;
    // A damaged manifest forgets its families; our own file says whose it is.
    if (std::filesystem::exists(options.data_dir + "/" + kSyncedFile)) return opened;
    return Foreign(options, opened.error().message);
  }
  std::unique_ptr<LogStore> store = std::move(*opened);
  CONDUCTOR_ASSIGN_OR_RETURN(const Finding finding, JudgeFormat(options, *store, families));
  if (finding == Finding::kUnfinished) return std::make_unique<LogStore>();
  CONDUCTOR_RETURN_IF_ERROR(FindPositions(options, store.get()));
  CONDUCTOR_RETURN_IF_ERROR(CheckTablesMeet(options, *store));
  AddWalSizes(options, &store->report);
  CONDUCTOR_RETURN_IF_ERROR(JudgeLoss(options, drops, synced, *store));
  return store;
}

// A database is there (HasDatabase said so), so a file that is not found is one of its own.
Error AsDamage(Error error) {
  if (error.code == ErrorCode::kNotFound) error.code = ErrorCode::kDataLoss;
  return WithAdvice(std::move(error));
}

Result<std::unique_ptr<LogStore>> InspectWithRetry(const LogStoreOptions& options) {
  auto store = Inspect(options);
  for (int attempt = 1; attempt < kReadOnlyAttemptsMax && options.read_only && !store; ++attempt) {
    const ErrorCode code = store.error().code;
    if (code != ErrorCode::kNotFound && code != ErrorCode::kUnavailable) break;
    store = Inspect(options);
  }
  if (!store) return tl::unexpected(AsDamage(store.error()));
  return store;
}

Result<std::unique_ptr<LogStore>> OpenForWriting(const LogStoreOptions& options,
                                                 const Families& families, bool create) {
  auto store = OpenDatabase(options, families, false, create, nullptr);
  if (!store) return tl::unexpected(WithAdvice(store.error()));
  return store;
}

// What recovery read is in tables now, but RocksDB keeps a torn write-ahead file until the next
// flush, does not look for it then, and makes no checkpoint beside one. So a key is written again
// and flushed; and allowing deletions looks for all that can go.
Status ForgetRecoveredWals(const LogStoreOptions& options, LogStore* store) {
  rocksdb::Status done = WriteFirst(*store, store->report.first, /*sync=*/true);
  if (done.ok()) done = store->db->Flush(rocksdb::FlushOptions(), store->meta);
  if (done.ok()) done = store->db->DisableFileDeletions();
  if (done.ok()) done = store->db->EnableFileDeletions(/*force=*/false);
  if (!done.ok()) {
    return tl::unexpected(FromRocksDb(done, Named(options) + ": end of the recovery"));
  }
  return {};
}

Status WriteFormat(const LogStoreOptions& options, LogStore* store) {
  rocksdb::ColumnFamilyHandle* const meta = store->meta;
  const auto first = EncodeSeqKey(1);
  rocksdb::WriteBatch batch;
  rocksdb::Status written = batch.Put(meta, kFormatKey, kFormatV1);
  if (written.ok()) {
    written = batch.Put(meta, kFirstKey, rocksdb::Slice(first.data(), first.size()));
  }
  if (written.ok()) written = store->db->Write(MakeWriteOptions(true), &batch);
  // Flushed at once: otherwise these two keys would hold the first write-ahead file for ever.
  if (written.ok()) written = store->db->Flush(rocksdb::FlushOptions(), meta);
  if (!written.ok()) {
    return tl::unexpected(FromRocksDb(written, Named(options) + ": write of the format"));
  }
  return {};
}

// A directory that says what was on disk in it is no place for a new log.
Status CheckNothingWasLost(const LogStoreOptions& options) {
  const Seq synced = SyncedMark::Read(options.data_dir).value_or(0);
  if (synced == 0) return {};
  return MakeError(ErrorCode::kDataLoss,
                   Named(options) + ": the log is gone, expected one up to record " +
                       std::to_string(synced) + "; to go on without it remove the file " +
                       kSyncedFile + ", or " + kRestoreAdvice);
}

}  // namespace

LogStore::~LogStore() {
  if (db == nullptr) return;
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    // The only failure is an unknown handle, which these are not.
    db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  // An error while closing changes nothing: what counts was written before.
  db->Close().PermitUncheckedError();
}

Result<std::unique_ptr<LogStore>> OpenLogStore(const LogStoreOptions& options) {
  CONDUCTOR_ASSIGN_OR_RETURN(std::unique_ptr<LogStore> found, InspectWithRetry(options));
  const bool create = found->db == nullptr;
  if (create && (options.read_only || !options.create_if_missing)) {
    return MakeError(ErrorCode::kNotFound, Named(options) + " holds no log");
  }
  if (options.read_only) return found;
  if (create) CONDUCTOR_RETURN_IF_ERROR(CheckNothingWasLost(options));

  RecoveryReport report = std::move(found->report);
  found.reset();
  const Families families = {rocksdb::kDefaultColumnFamilyName, kLogFamily, kMetaFamily};
  CONDUCTOR_ASSIGN_OR_RETURN(std::unique_ptr<LogStore> store,
                             OpenForWriting(options, families, create));
  if (create) CONDUCTOR_RETURN_IF_ERROR(WriteFormat(options, store.get()));
  CONDUCTOR_RETURN_IF_ERROR(FindPositions(options, store.get()));
  if (!create) CONDUCTOR_RETURN_IF_ERROR(ForgetRecoveredWals(options, store.get()));
  report.first = store->report.first;
  report.last = store->report.last;
  report.created = create;
  store->report = std::move(report);
  return store;
}

}  // namespace conductor::storage
