#include "fuzz/seed_files.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "fuzz/target.h"

namespace conductor::fuzz {

bool WriteSeeds(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const std::vector<std::string> seeds = Seeds();
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream file(directory + "/seed-" + std::to_string(i), std::ios::binary);
    file << seeds[i];
    if (!file.flush()) {
      std::fprintf(stderr, "%s: cannot write seed %zu\n", directory.c_str(), i);
      return false;
    }
  }
  return true;
}

}  // namespace conductor::fuzz
