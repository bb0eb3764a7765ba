// TempDir: a directory of its own for one test, removed with it.
//
// In memory (/dev/shm) where there is one: a real sync costs up to seconds on a busy machine and
// proves nothing here, because power cuts are simulated above the file system (fault_fs.h).
// TEST_TMPDIR overrides.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace conductor::storage {

class TempDir {
 public:
  TempDir() {
    const bool memory = std::getenv("TEST_TMPDIR") == nullptr && ::access("/dev/shm", W_OK) == 0;
    std::string pattern =
        (memory ? std::string("/dev/shm/") : ::testing::TempDir()) + "conductor_storage_XXXXXX";
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
