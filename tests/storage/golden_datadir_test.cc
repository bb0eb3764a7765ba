// The data directories of every released format: each build opens each of them, for ever.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "storage/rocksdb_event_log.h"
#include "tests/storage/golden_records.h"
#include "tests/storage/record_text.h"
#include "tests/storage/temp_dir.h"

namespace conductor::storage {
namespace {

constexpr char kGoldenV1[] = CONDUCTOR_SOURCE_DIR "/tests/golden/datadir_v1";

class GoldenDatadirTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(kGoldenV1, dir_.data_dir(), std::filesystem::copy_options::recursive);
  }
  std::unique_ptr<RocksDbEventLog> Open(bool read_only) {
    auto log = RocksDbEventLog::Open(
        {.data_dir = dir_.data_dir(), .create_if_missing = false, .read_only = read_only});
    EXPECT_TRUE(log) << log.error().message;
    return log ? std::move(*log) : nullptr;
  }
  TempDir dir_;
};

TEST_F(GoldenDatadirTest, V1HasTheRecordsItWasMadeOf) {
  EXPECT_EQ(LogTexts(*Open(false)), RecordTexts(GoldenRecordsV1()));
}

TEST_F(GoldenDatadirTest, V1CanBeReadWithoutWriting) {
  EXPECT_EQ(LogTexts(*Open(true)), RecordTexts(GoldenRecordsV1()));
}

TEST_F(GoldenDatadirTest, V1TakesMoreRecords) {
  std::vector<Record> expected = GoldenRecordsV1();
  {
    const auto log = Open(false);
    const auto last = log->Append(GoldenRecordsV1(), Durability::kSynced);
    ASSERT_TRUE(last) << last.error().message;
  }
  for (const Record& record : GoldenRecordsV1()) expected.push_back(record);
  EXPECT_EQ(LogTexts(*Open(false)), RecordTexts(expected));
}

TEST_F(GoldenDatadirTest, V1HasBothTablesAndAWriteAheadFile) {
  bool table = false;
  bool wal = false;
  for (const auto& entry : std::filesystem::directory_iterator(kGoldenV1)) {
    table = table || entry.path().extension() == ".sst";
    wal = wal || (entry.path().extension() == ".log" && entry.file_size() > 0);
  }
  EXPECT_TRUE(table);
  EXPECT_TRUE(wal);
}

}  // namespace
}  // namespace conductor::storage
