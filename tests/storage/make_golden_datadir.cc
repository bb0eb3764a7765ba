// make_golden_datadir DIRECTORY: writes a data directory with the golden records of this format.
//
// Run once for each format version, when it is released; the result goes to tests/golden and stays
// for ever. The first records end up in a table (reopening writes what was recovered into one), the
// others in the write-ahead file, so that the golden directory has both.
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "storage/log_format.h"
#include "storage/rocksdb_event_log.h"
#include "tests/storage/golden_records.h"

namespace conductor::storage {
namespace {

Status AppendAll(const std::string& directory, std::span<const Record> records) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto log, RocksDbEventLog::Open({.data_dir = directory}));
  for (const Record& record : records) {
    CONDUCTOR_RETURN_IF_ERROR(log->Append({&record, 1}, Durability::kSynced));
  }
  return {};
}

Status Make(const std::string& directory) {
  const std::vector<Record> records = GoldenRecordsV1();
  const std::span<const Record> all(records);
  CONDUCTOR_RETURN_IF_ERROR(AppendAll(directory, all.first(kGoldenTableRecords)));
  CONDUCTOR_RETURN_IF_ERROR(AppendAll(directory, all.subspan(kGoldenTableRecords)));
  std::filesystem::remove(directory + "/" + kOwnerFile);
  std::filesystem::remove(directory + "/LOCK");
  return {};
}

}  // namespace
}  // namespace conductor::storage

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_golden_datadir DIRECTORY (which must not exist)\n");
    return 2;
  }
  if (std::filesystem::exists(argv[1])) {
    std::fprintf(stderr, "make_golden_datadir: %s exists\n", argv[1]);
    return 2;
  }
  const conductor::Status made = conductor::storage::Make(argv[1]);
  if (!made) std::fprintf(stderr, "make_golden_datadir: %s\n", made.error().message.c_str());
  return made ? 0 : 1;
}
