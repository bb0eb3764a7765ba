// A copy is complete and has its name, or nothing of it is left.
#include "cli/copy_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "cli/text.h"
#include "tests/cli/temp_dir.h"

namespace conductor::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CopyDirectoryTest : public testing::Test {
 protected:
  CopyDirectoryTest() {
    fs::create_directories(from_ + "/images");
    fs::create_directories(from_ + "/owner/inside");
    for (const char* name : {"/a", "/images/7", "/images/owner"}) {
      std::ofstream(from_ + name) << "text of " << name;
    }
  }
  static std::set<std::string> Names(const std::string& path) {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      names.insert(entry.path().lexically_relative(path).string());
    }
    return names;
  }
  bool NothingIsLeft() const { return !fs::exists(to_) && !fs::exists(to_ + ".unfinished"); }

  TempDir directory_;
  const std::string from_ = directory_.Path("from"), to_ = directory_.Path("to");
};

TEST_F(CopyDirectoryTest, CopiesAllButWhatIsLeftOutAtTheTop) {
  CopyOptions options;
  options.leave_out = {"owner"};
  const Status copied = CopyDirectory(from_, to_ + "/", options);
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_EQ(Names(to_), (std::set<std::string>{"a", "images", "images/7", "images/owner"}));
  EXPECT_EQ(*ReadFile(to_ + "/images/7", 100), "text of /images/7");
  EXPECT_FALSE(fs::exists(to_ + ".unfinished"));
}

TEST_F(CopyDirectoryTest, AnEmptyTargetIsTaken) {
  fs::create_directory(to_);
  EXPECT_TRUE(CopyDirectory(from_, to_));
  EXPECT_EQ(Names(to_), Names(from_));
}

TEST_F(CopyDirectoryTest, ATargetWithContentIsRefused) {
  fs::create_directory(to_);
  std::ofstream(to_ + "/mine") << "here";
  const Status copied = CopyDirectory(from_, to_);
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_THAT(copied.error().message, HasSubstr("not an empty directory"));
  EXPECT_EQ(Names(to_), std::set<std::string>{"mine"});
}

TEST_F(CopyDirectoryTest, WhatDoesNotPassTheCheckIsUndone) {
  CopyOptions options;
  options.check = [&](const std::string& copy) -> Status {
    EXPECT_EQ(Names(copy), Names(from_));
    return MakeError(ErrorCode::kDataLoss, "damaged");
  };
  const Status copied = CopyDirectory(from_, to_, options);
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, ErrorCode::kDataLoss);
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(CopyDirectoryTest, AnInterruptedCopyIsUndone) {
  CopyOptions options;
  int asked = 0;
  options.interrupted = [&] { return ++asked == 3; };
  const Status copied = CopyDirectory(from_, to_, options);
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, ErrorCode::kAborted);
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(CopyDirectoryTest, ASourceThatIsNotThereIsNamed) {
  const Status copied = CopyDirectory(directory_.Path("none"), to_);
  ASSERT_FALSE(copied);
  EXPECT_THAT(copied.error().message, HasSubstr(directory_.Path("none")));
  EXPECT_TRUE(NothingIsLeft());
}

}  // namespace
}  // namespace conductor::cli
