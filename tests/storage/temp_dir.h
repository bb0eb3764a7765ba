// TempDir: a directory of its own for one test, removed with it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace conductor::storage {

class TempDir {
 public:
  TempDir() {
    std::string pattern = ::testing::TempDir() + "conductor_storage_XXXXXX";
    const char* made = ::mkdtemp(pattern.data());
    EXPECT_NE(made, nullptr) << pattern;
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // A name inside that does not exist yet.
  std::string data_dir() const { return path_ + "/data"; }

 private:
  std::string path_;
};

}  // namespace conductor::storage
