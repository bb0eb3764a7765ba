// The mark of what is known to be on disk.
#include "storage/synced_mark.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/storage/temp_dir.h"

namespace conductor::storage {
namespace {

class SyncedMarkTest : public ::testing::Test {
 protected:
  std::string file() const { return dir_.path() + "/synced"; }
  std::string Content() const {
    std::ostringstream text;
    text << std::ifstream(file()).rdbuf();
    return text.str();
  }
  TempDir dir_;
};

TEST_F(SyncedMarkTest, NothingIsKnownWithoutTheFile) {
  EXPECT_EQ(SyncedMark::Read(dir_.path()), std::nullopt);
}

TEST_F(SyncedMarkTest, RemembersTheHighestPosition) {
  const auto mark = SyncedMark::Open(dir_.path());
  ASSERT_TRUE(mark);
  (*mark)->Advance(7);
  (*mark)->Advance(5);
  EXPECT_EQ(SyncedMark::Read(dir_.path()), 7u);
  EXPECT_EQ(Content(), "00000000000000000007 fef4904d\n");
}

TEST_F(SyncedMarkTest, ResetGoesBack) {
  const auto mark = SyncedMark::Open(dir_.path());
  ASSERT_TRUE(mark);
  (*mark)->Advance(~Seq{0});
  EXPECT_EQ(SyncedMark::Read(dir_.path()), ~Seq{0});
  (*mark)->Reset(3);
  EXPECT_EQ(SyncedMark::Read(dir_.path()), 3u);
}

TEST_F(SyncedMarkTest, DamagedFileTellsNothing) {
  {
    const auto mark = SyncedMark::Open(dir_.path());
    ASSERT_TRUE(mark);
    (*mark)->Advance(123'456);
  }
  const std::string content = Content();
  for (std::size_t i = 0; i < content.size(); ++i) {
    std::string damaged = content;
    damaged[i] = '9';
    if (damaged == content) continue;
    std::ofstream(file()) << damaged;
    EXPECT_EQ(SyncedMark::Read(dir_.path()), std::nullopt) << "byte " << i;
  }
  std::ofstream(file()) << content.substr(1);
  EXPECT_EQ(SyncedMark::Read(dir_.path()), std::nullopt);
}

}  // namespace
}  // namespace conductor::storage
