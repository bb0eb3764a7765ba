// The damage table (docs/damage.md): a row is one kind of damage to a data directory, and what the
// next opening makes of it. A refusal leaves every byte as it was found, each time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "storage/log_format.h"
#include "storage/rocksdb_event_log.h"
#include "storage/snapshot_reader.h"
#include "storage/storage_error.h"
#include "tests/storage/temp_dir.h"
#include "tests/storage/test_image.h"

namespace conductor::storage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// The directory that is damaged: records 21 to 60 (those before were dropped), of which 51 to 60
// are in the write-ahead file only; all are synced. Snapshots at 20 and 40.
constexpr Seq kFirst = 21, kInTables = 50, kLast = 60, kOlderSnapshot = 20, kNewerSnapshot = 40;

// So long that a table has several blocks.
Record Numbered(Seq seq) {
  Frame frame;
  frame.stream = 1;
  frame.number = seq;
  frame.events.push_back(Removed{Tier::kDevice, std::vector<BlockName>(500, BlockName{~seq, ""})});
  return {{Lost{1, seq, seq}, frame}};
}

void AppendTo(EventLog& log, Seq last) {
  for (Seq seq = log.LastSeq() + 1; seq <= last; ++seq) {
    ASSERT_TRUE(log.Append(std::vector<Record>{Numbered(seq)}, Durability::kSynced));
  }
}

void WriteSnapshot(SnapshotStore& store, Seq seq) {
  const auto encoder = store.NewEncoder();
  const auto file = store.CreateImage(seq);
  ASSERT_TRUE(file);
  ASSERT_TRUE(SmallImage(seq).Play(*encoder));
  ASSERT_TRUE((*file)->Append(encoder->Take()));
  ASSERT_TRUE((*file)->Finish());
}

Status ReadAll(const EventLog& log) {
  Seq next = log.FirstSeq();
  CONDUCTOR_RETURN_IF_ERROR(
      log.Read(log.FirstSeq(), log.LastSeq(), [&](Seq seq, const Record& record) -> Status {
        EXPECT_EQ(seq, next++);
        EXPECT_EQ(std::get<Lost>(record.facts.at(0)).from, seq);
        return {};
      }));
  EXPECT_EQ(next, log.LastSeq() + 1);
  return {};
}

// The directory, and what may be done to it.
class Directory {
 public:
  Directory() {
    auto log = RocksDbEventLog::Open({.data_dir = path()});
    EXPECT_TRUE(log) << log.error().message;
    AppendTo(**log, kNewerSnapshot);
    WriteSnapshot(**log, kOlderSnapshot);
    WriteSnapshot(**log, kNewerSnapshot);
    EXPECT_TRUE((*log)->DropBelow(kFirst));
    AppendTo(**log, kInTables);
    EXPECT_TRUE((*log)->Reopen());  // what it recovers it writes into tables
    AppendTo(**log, kLast);
  }
  std::string path() const { return dir_.data_dir(); }
  std::string parent() const { return dir_.path(); }
  std::string File(const std::string& name) const { return path() + "/" + name; }
  static std::string Snapshot(Seq seq) {
    return "snapshots/000000000000000000" + std::to_string(seq) + ".snapshot";
  }
  // The newest file whose name ends (or begins) so; of tables the largest, which has the records.
  std::string Find(const std::string& part) const {
    std::string found;
    for (const auto& entry : fs::directory_iterator(path())) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with(part) && !name.starts_with(part)) continue;
      if (found.empty() ||
          (part == ".sst" ? fs::file_size(entry.path()) > fs::file_size(File(found))
                          : name > found)) {
        found = name;
      }
    }
    EXPECT_FALSE(found.empty()) << part;
    return found;
  }
  void Remove(const std::string& name) { ASSERT_TRUE(fs::remove(File(name))) << name; }
  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(File(name), std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(File(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // At this share of the file.
  void Flip(const std::string& name, double where) {
    std::string bytes = Read(name);
    const auto at = static_cast<std::size_t>(where * static_cast<double>(bytes.size() - 1));
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    Write(name, bytes);
  }
  void Cut(const std::string& name, std::uint64_t bytes) {
    fs::resize_file(File(name), fs::file_size(File(name)) - bytes);
  }
  void KeepOnly(const std::set<std::string>& names) {
    for (const auto& entry : fs::directory_iterator(path())) {
      if (!names.contains(entry.path().filename().string())) fs::remove_all(entry.path());
    }
  }
  // With RocksDB alone.
  void Edit(const std::function<void(rocksdb::DB*, rocksdb::ColumnFamilyHandle* log,
                                     rocksdb::ColumnFamilyHandle* meta)>& edit) {
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const char* name : {"default", kLogFamily, kMetaFamily}) {
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    }
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(rocksdb::DBOptions(), path(), families, &handles, &raw).ok());
    const std::unique_ptr<rocksdb::DB> db(raw);
    edit(raw, handles[1], handles[2]);
    for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
  }
  // Every file but the lock's, with its bytes.
  std::map<std::string, std::string> Contents() const {
    std::map<std::string, std::string> contents;
    if (!fs::is_directory(path())) return contents;
    for (const auto& entry : fs::recursive_directory_iterator(path())) {
      if (!entry.is_regular_file()) continue;
      const std::string name = fs::relative(entry.path(), path()).string();
      if (name != kOwnerFile) contents[name] = Read(name);
    }
    return contents;
  }
  void Restore(const std::map<std::string, std::string>& contents) {
    KeepOnly({kOwnerFile});
    fs::create_directories(File("snapshots"));
    for (const auto& [name, bytes] : contents) Write(name, bytes);
  }

 private:
  TempDir dir_;
};

enum class Outcome { kWhole, kShorter, kOnlySnapshot, kRefused, kReadRefused, kSnapshotRefused };

struct Row {
  const char* name;  // the docs' name of it
  std::function<void(Directory&)> damage;
  Outcome outcome;
  // kShorter, kOnlySnapshot: the last record. Refusals: the code, and words of the message.
  Seq last = kLast;
  ErrorCode code = ErrorCode::kDataLoss;
  const char* words = "";
  const char* advice = "restore a checkpoint";
};

using Rows = std::vector<Row>;
using D = Directory;

Rows WalRows() {
  return {
      {"wal_missing", [](D& d) { d.Remove(d.Find(".log")); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, "write-ahead files are gone: the log ends at record 50, expected 60"},
      {"wal_torn", [](D& d) { d.Cut(d.Find(".log"), 7); }, Outcome::kShorter, kLast - 1},
      {"wal_truncated", [](D& d) { d.Write(d.Find(".log"), ""); }, Outcome::kShorter, kInTables},
      {"wal_zeros_at_the_end",
       [](D& d) { d.Write(d.Find(".log"), d.Read(d.Find(".log")) + std::string(4096, '\0')); },
       Outcome::kWhole},
      {"wal_bit_flipped", [](D& d) { d.Flip(d.Find(".log"), 0.5); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, ".log is damaged (Corruption: "},
  };
}

Rows TableRows() {
  return {
      {"table_missing", [](D& d) { d.Remove(d.Find(".sst")); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, "No such file or directory"},
      {"table_truncated", [](D& d) { d.Cut(d.Find(".sst"), 100); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, ".sst"},
      {"table_empty", [](D& d) { d.Write(d.Find(".sst"), ""); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, ".sst"},
      {"table_bit_flipped", [](D& d) { d.Flip(d.Find(".sst"), 0.7); }, Outcome::kReadRefused, 0,
       ErrorCode::kDataLoss, "Corruption: block checksum mismatch"},
      {"table_footer_bit_flipped", [](D& d) { d.Flip(d.Find(".sst"), 1.0); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, ".sst"},
  };
}

Rows ManifestRows() {
  return {
      {"manifest_missing", [](D& d) { d.Remove(d.Find("MANIFEST")); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, "MANIFEST"},
      {"manifest_truncated", [](D& d) { d.Cut(d.Find("MANIFEST"), 200); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, ""},
      {"manifest_empty", [](D& d) { d.Write(d.Find("MANIFEST"), ""); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, ""},
      {"manifest_bit_flipped", [](D& d) { d.Flip(d.Find("MANIFEST"), 0.5); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, "Corruption: "},
      {"current_missing", [](D& d) { d.Remove("CURRENT"); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, "file CURRENT is missing, but "},
      {"current_garbage", [](D& d) { d.Write("CURRENT", "garbage"); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, "Corruption: CURRENT file "},
      {"current_truncated", [](D& d) { d.Cut("CURRENT", 5); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, "Corruption: CURRENT file "},
      {"current_empty", [](D& d) { d.Write("CURRENT", ""); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, "Corruption: CURRENT file "},
      {"current_bit_flipped", [](D& d) { d.Flip("CURRENT", 0.5); }, Outcome::kRefused, 0,
       ErrorCode::kDataLoss, "CURRENT"},
      {"current_names_no_file", [](D& d) { d.Write("CURRENT", "MANIFEST-999999\n"); },
       Outcome::kRefused, 0, ErrorCode::kDataLoss, "MANIFEST-999999"},
      {"options_missing", [](D& d) { d.Remove(d.Find("OPTIONS")); }, Outcome::kWhole},
  };
}

Rows OwnFileRows() {
  return {
      {"synced_missing", [](D& d) { d.Remove("synced"); }, Outcome::kWhole},
      {"synced_garbage", [](D& d) { d.Write("synced", "garbage"); }, Outcome::kWhole},
      {"owner_missing", [](D& d) { d.Remove("owner"); }, Outcome::kWhole},
      {"record_hole",
       [](D& d) {
         d.Edit([](rocksdb::DB* db, auto* log, auto*) {
           const auto key = EncodeSeqKey(45);
           ASSERT_TRUE(
               db->Delete(rocksdb::WriteOptions(), log, rocksdb::Slice(key.data(), key.size()))
                   .ok());
         });
       },
       Outcome::kReadRefused, 0, ErrorCode::kDataLoss, "record 45 is missing"},
      {"record_damaged",
       [](D& d) {
         d.Edit([](rocksdb::DB* db, auto* log, auto*) {
           const auto key = EncodeSeqKey(45);
           ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), log, rocksdb::Slice(key.data(), key.size()),
                               "damage")
                           .ok());
         });
       },
       Outcome::kReadRefused, 0, ErrorCode::kDataLoss, "record 45: "},
      {"first_damaged",
       [](D& d) {
         d.Edit([](rocksdb::DB* db, auto*, auto* meta) {
           ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), meta, kFirstKey, "x").ok());
         });
       },
       Outcome::kRefused, 0, ErrorCode::kDataLoss, "meta key first is unreadable"},
      {"log_gone",
       [](D& d) {
         d.KeepOnly({"snapshots", "synced"});
       },
       Outcome::kRefused, 0, ErrorCode::kDataLoss, "the log is gone, expected one up to record 60"},
      {"log_gone_given_up", [](D& d) { d.KeepOnly({"snapshots"}); }, Outcome::kOnlySnapshot,
       kNewerSnapshot},
  };
}

Rows IdentityRows() {
  return {
      {"newer_log_format",
       [](D& d) {
         d.Edit([](rocksdb::DB* db, auto*, auto* meta) {
           ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), meta, kFormatKey, "conductor log v2").ok());
         });
       },
       Outcome::kRefused, 0, ErrorCode::kFailedPrecondition,
       "format 'conductor log v2', this build reads 'conductor log v1'",
       "start the release that wrote it"},
      {"foreign_database",
       [](D& d) {
         fs::remove_all(d.path());
         rocksdb::Options options;
         options.create_if_missing = true;
         rocksdb::DB* raw = nullptr;
         ASSERT_TRUE(rocksdb::DB::Open(options, d.path(), &raw).ok());
         ASSERT_TRUE(raw->Put(rocksdb::WriteOptions(), "their", "key").ok());
         delete raw;
       },
       Outcome::kRefused, 0, ErrorCode::kFailedPrecondition, "that is no conductor log",
       "choose another directory"},
      {"file_in_its_place",
       [](D& d) {
         fs::remove_all(d.path());
         std::ofstream(d.path()) << "x";
       },
       Outcome::kRefused, 0, ErrorCode::kFailedPrecondition, "a file is there",
       "choose another path"},
  };
}

Rows SnapshotRows() {
  return {
      {"snapshots_missing", [](D& d) { fs::remove_all(d.File("snapshots")); }, Outcome::kWhole},
      {"snapshot_end_damaged", [](D& d) { d.Cut(D::Snapshot(kNewerSnapshot), 1); },
       Outcome::kSnapshotRefused, 0, ErrorCode::kDataLoss, "offset "},
      {"snapshot_bit_flipped", [](D& d) { d.Flip(D::Snapshot(kNewerSnapshot), 0.5); },
       Outcome::kSnapshotRefused, 0, ErrorCode::kDataLoss, "offset 32: checksum "},
      {"snapshot_of_another_position",
       [](D& d) { d.Write(D::Snapshot(kNewerSnapshot), d.Read(D::Snapshot(kOlderSnapshot))); },
       Outcome::kSnapshotRefused, 0, ErrorCode::kDataLoss, "position 20, expected 40"},
      {"snapshot_unfinished", [](D& d) { d.Write("snapshots/x.snapshot.growing", "half"); },
       Outcome::kWhole},
      {"checkpoint_unfinished",
       [](D& d) {
         fs::create_directories(d.File("checkpoints/growing.tmp"));
         d.Write("checkpoints/growing.tmp/half", "x");
       },
       Outcome::kWhole},
  };
}

Rows AllRows() {
  Rows rows = {{"nothing", [](D&) {}, Outcome::kWhole}};
  for (const auto& some :
       {WalRows(), TableRows(), ManifestRows(), OwnFileRows(), IdentityRows(), SnapshotRows()}) {
    rows.insert(rows.end(), some.begin(), some.end());
  }
  return rows;
}

class DamageTest : public ::testing::TestWithParam<Row> {
 protected:
  Result<std::unique_ptr<RocksDbEventLog>> Open() {
    return RocksDbEventLog::Open({.data_dir = directory_.path()});
  }
  static void ExpectNamed(const Error& error) {
    EXPECT_EQ(error.code, GetParam().code) << error.message;
    EXPECT_THAT(error.message, HasSubstr(GetParam().words));
    // A damaged snapshot refuses nothing: another one is taken.
    if (GetParam().outcome != Outcome::kSnapshotRefused) {
      EXPECT_THAT(error.message, HasSubstr(GetParam().advice));
    }
  }
  void ExpectRefused() {
    const auto before = directory_.Contents();
    for (int attempt = 0; attempt < 2; ++attempt) {
      const auto log = Open();
      ASSERT_FALSE(log);
      ExpectNamed(log.error());
      EXPECT_THAT(log.error().message, HasSubstr("data directory " + directory_.path()));
      EXPECT_EQ(directory_.Contents(), before);
    }
  }
  // Good, and still so after something was added and it was opened once more.
  void ExpectGood(Seq first, Seq last) {
    auto log = Open();
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_EQ((*log)->FirstSeq(), first);
    EXPECT_EQ((*log)->LastSeq(), last);
    const RecoveryReport report = (*log)->GetRecoveryReport();
    EXPECT_EQ(report.synced_records_missing,
              GetParam().outcome == Outcome::kShorter ? kLast - last : 0u);
    if (last != kLast) {
      EXPECT_TRUE(HasLoss(report));
    }
    Status read = ReadAll(**log);
    EXPECT_TRUE(read) << read.error().message;
    AppendTo(**log, last + 3);
    log->reset();
    log = Open();
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_EQ((*log)->LastSeq(), last + 3);
    read = ReadAll(**log);
    EXPECT_TRUE(read) << read.error().message;
    for (const auto& [name, bytes] : directory_.Contents()) {
      EXPECT_FALSE(name.find("growing") != std::string::npos) << name;
    }
  }
  void ExpectReadRefused() {
    const auto log = Open();
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_EQ((*log)->LastSeq(), kLast);
    const Status read = ReadAll(**log);
    ASSERT_FALSE(read);
    ExpectNamed(read.error());
  }
  void ExpectSnapshotRefused() {
    ASSERT_NO_FATAL_FAILURE(ExpectGood(kFirst, kLast));
    auto log = Open();
    ASSERT_TRUE(log) << log.error().message;
    NullVisitor checks;
    const Status newer = (*log)->ReadSnapshot(kNewerSnapshot, checks);
    ASSERT_FALSE(newer);
    ExpectNamed(newer.error());
    const Status older = (*log)->ReadSnapshot(kOlderSnapshot, checks);
    EXPECT_TRUE(older) << older.error().message;
  }

  Directory directory_;
};

TEST_P(DamageTest, HasTheOutcomeOfTheTable) {
  GetParam().damage(directory_);
  switch (GetParam().outcome) {
    case Outcome::kWhole:
    case Outcome::kShorter:
      return ExpectGood(kFirst, GetParam().last);
    case Outcome::kOnlySnapshot:
      return ExpectGood(GetParam().last + 1, GetParam().last);
    case Outcome::kRefused:
      return ExpectRefused();
    case Outcome::kReadRefused:
      return ExpectReadRefused();
    case Outcome::kSnapshotRefused:
      return ExpectSnapshotRefused();
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, DamageTest, ::testing::ValuesIn(AllRows()),
                         [](const auto& info) { return std::string(info.param.name); });

// The rows of docs/damage.md are these, in this order, and those below that need more than a file.
TEST(DamageTableTest, IsTheOneInTheDocuments) {
  std::vector<std::string> documented, tested;
  std::ifstream file(CONDUCTOR_SOURCE_DIR "/docs/damage.md");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    documented.push_back(line.substr(3, line.find('`', 3) - 3));
  }
  for (const Row& row : AllRows()) {
    if (std::string(row.name) != "nothing") tested.emplace_back(row.name);
  }
  for (const char* name : {"in_use", "wrong_owner", "read_only_directory", "not_readable"}) {
    tested.emplace_back(name);
  }
  EXPECT_EQ(documented, tested);
}

TEST(DamageTableTest, InUse) {
  Directory directory;
  const auto first = RocksDbEventLog::Open({.data_dir = directory.path()});
  ASSERT_TRUE(first);
  const auto second = RocksDbEventLog::Open({.data_dir = directory.path()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(second.error().message, HasSubstr("is in use by another conductor (pid "));
  EXPECT_THAT(second.error().message, HasSubstr("stop that one, or choose another directory"));
}

// This thread as nobody, if it may be root: what root may do proves nothing about rights.
class AsNobody {
 public:
  static constexpr uid_t kNobody = 65534;
  AsNobody() { Become(kNobody); }
  ~AsNobody() { Become(0); }

 private:
  void Become(uid_t uid) {
    if (root_) {
      EXPECT_EQ(::syscall(SYS_setresuid, -1, uid, -1), 0);
    }
  }
  const bool root_ = ::getuid() == 0;
};

// Refused for writing with these words, and readable.
void ExpectNotWritable(const Directory& directory, const std::string& words) {
  const auto before = directory.Contents();
  {
    const AsNobody nobody;
    const auto log = RocksDbEventLog::Open({.data_dir = directory.path()});
    ASSERT_FALSE(log);
    EXPECT_EQ(log.error().code, ErrorCode::kPermissionDenied) << log.error().message;
    EXPECT_THAT(log.error().message, HasSubstr("data directory " + directory.path()));
    EXPECT_THAT(log.error().message, HasSubstr(words));
    EXPECT_THAT(log.error().message, HasSubstr(kRightsAdvice));
    const auto reader = RocksDbEventLog::Open({.data_dir = directory.path(), .read_only = true});
    EXPECT_TRUE(reader) << reader.error().message;
  }
  EXPECT_EQ(directory.Contents(), before);
}

TEST(DamageTableTest, WrongOwner) {
  Directory directory;
  ASSERT_EQ(::chmod(directory.parent().c_str(), 0755), 0);
  // Who is not root has no files of another owner, but the same rights to these.
  ASSERT_EQ(::chmod(directory.File("owner").c_str(), 0444), 0);
  ExpectNotWritable(directory, "is not writable (file owner): Permission denied");
}

// Its files are the user's own, and so is the lock.
TEST(DamageTableTest, ReadOnlyDirectory) {
  Directory directory;
  ASSERT_EQ(::chmod(directory.parent().c_str(), 0755), 0);
  if (::getuid() == 0) {
    ASSERT_EQ(::chown(directory.path().c_str(), AsNobody::kNobody, -1), 0);
    for (const auto& entry : fs::recursive_directory_iterator(directory.path())) {
      ASSERT_EQ(::chown(entry.path().c_str(), AsNobody::kNobody, -1), 0);
    }
  }
  ASSERT_EQ(::chmod(directory.path().c_str(), 0555), 0);
  ExpectNotWritable(directory, "Permission denied");
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
}

TEST(DamageTableTest, NotReadable) {
  Directory directory;
  ASSERT_EQ(::chmod(directory.parent().c_str(), 0000), 0);
  {
    const AsNobody nobody;
    const auto log = RocksDbEventLog::Open({.data_dir = directory.path(), .read_only = true});
    ASSERT_FALSE(log);
    EXPECT_EQ(log.error().code, ErrorCode::kPermissionDenied) << log.error().message;
    EXPECT_THAT(log.error().message, HasSubstr("Permission denied"));
    EXPECT_THAT(log.error().message, HasSubstr(kRightsAdvice));
  }
  ASSERT_EQ(::chmod(directory.parent().c_str(), 0700), 0);
}

// Not one row but all of them: wherever the manifest is cut or changed, the log is whole or
// refused.
TEST(DamageTableTest, NoPlaceOfTheManifestHidesRecords) {
  Directory directory;
  const std::string manifest = directory.Find("MANIFEST");
  const std::string good = directory.Read(manifest);
  const auto files = directory.Contents();
  for (std::size_t at = 0; at < good.size(); at += 13) {
    for (const bool cut : {true, false}) {
      std::string bytes = cut ? good.substr(0, at) : good;
      if (!cut) bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
      directory.Write(manifest, bytes);
      auto log = RocksDbEventLog::Open({.data_dir = directory.path()});
      if (!log) {
        ASSERT_EQ(log.error().code, ErrorCode::kDataLoss) << log.error().message;
        continue;
      }
      SCOPED_TRACE((cut ? "cut at " : "changed at ") + std::to_string(at));
      ASSERT_EQ((*log)->LastSeq(), kLast);
      const Status read = ReadAll(**log);
      ASSERT_TRUE(read) << read.error().message;
      log->reset();
      directory.Restore(files);
    }
  }
}

// The same of CURRENT, bit by bit: another name of a manifest must not be another log.
TEST(DamageTableTest, NoPlaceOfCurrentHidesRecords) {
  Directory directory;
  const std::string good = directory.Read("CURRENT");
  const auto files = directory.Contents();
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    for (const bool cut : {true, false}) {
      if (cut && bit % 8 != 0) continue;
      std::string bytes = cut ? good.substr(0, bit / 8) : good;
      if (!cut) bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      directory.Write("CURRENT", bytes);
      SCOPED_TRACE((cut ? "cut at bit " : "changed bit ") + std::to_string(bit));
      auto log = RocksDbEventLog::Open({.data_dir = directory.path()});
      if (!log) {
        ASSERT_EQ(log.error().code, ErrorCode::kDataLoss) << log.error().message;
        ASSERT_THAT(log.error().message, HasSubstr(kRestoreAdvice));
        continue;
      }
      ASSERT_EQ((*log)->LastSeq(), kLast);
      const Status read = ReadAll(**log);
      ASSERT_TRUE(read) << read.error().message;
      log->reset();
      directory.Restore(files);
    }
  }
}

}  // namespace
}  // namespace conductor::storage
