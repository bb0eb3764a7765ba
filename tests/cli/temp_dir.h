// A directory of a test's own, gone with the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace conductor::cli {

class TempDir {
 public:
  TempDir() {
    std::string pattern = testing::TempDir() + "conductor_cli_XXXXXX";
    path_ = mkdtemp(pattern.data()) == nullptr ? std::string() : pattern;
    EXPECT_FALSE(path_.empty());
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }

 private:
  std::string path_;
};

}  // namespace conductor::cli
