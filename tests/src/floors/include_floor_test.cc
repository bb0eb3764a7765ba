// Includes point down: this reads every include line of the tree and fails when a floor is broken,
// or when a foreign library is met outside the one folder it belongs to.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Include {
  std::string file;    // from the root of the tree
  std::string folder;  // its first part
  std::string target;  // what is included
  bool quoted = false;
};

std::vector<Include> ReadIncludes() {
  static const std::regex kLine(R"(^\s*#\s*include\s*(["<])([^">]+)[">])");
  const fs::path root = CONDUCTOR_SOURCE_DIR;
  std::vector<Include> includes;
  for (const std::string folder :
       {"src", "storage", "replay", "rpc", "http", "cli", "python", "tools", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        std::smatch match;
        if (std::regex_search(line, match, kLine)) {
          includes.push_back(
              {fs::relative(entry.path(), root), folder, match[2], match[1] == "\""});
        }
      }
    }
  }
  return includes;
}

// Folders of ours that a folder may include, besides itself.
const std::map<std::string, std::set<std::string>> kBelow = {
    {"src", {}},
    {"storage", {"src"}},
    {"replay", {"src"}},
    {"rpc", {"src"}},
    {"http", {"src", "replay"}},
    {"cli", {"src", "storage", "replay", "rpc", "http"}},
    {"python", {"src", "rpc"}},
    {"tools", {"src", "replay"}},
    {"bench", {"src", "storage", "replay", "rpc", "http", "tools"}},
};

TEST(IncludeFloorTest, OurIncludesPointDownOnly) {
  const auto includes = ReadIncludes();
  ASSERT_GT(includes.size(), 200u) << "the tree was not found";
  for (const Include& include : includes) {
    const std::string target = include.target.substr(0, include.target.find('/'));
    if (kBelow.count(target) == 0 || target == include.folder) continue;
    EXPECT_TRUE(kBelow.at(include.folder).count(target) != 0)
        << include.file << " includes " << include.target;
  }
}

TEST(IncludeFloorTest, HttpTakesOnlyTheWireFormatFromReplay) {
  for (const Include& include : ReadIncludes()) {
    if ((include.folder == "http" || include.folder == "tools") &&
        include.target.rfind("replay/", 0) == 0) {
      EXPECT_EQ(include.target.rfind("replay/wire/", 0), 0u)
          << include.file << " includes " << include.target;
    }
  }
}

TEST(IncludeFloorTest, ForeignLibrariesStayInTheirFolder) {
  const std::vector<std::pair<std::string, std::set<std::string>>> homes = {
      {"rocksdb/", {"storage"}},
      {"zmq", {"replay", "tools"}},
      {"grpc", {"rpc", "bench"}},
      {"httplib.h", {"http", "bench"}},
      {"CLI/", {"cli", "tools", "bench"}},
      {"pybind11/", {"python"}},
      {"google/protobuf", {"rpc", "storage"}},
      {"nlohmann/", {"http", "cli", "tools", "bench"}},
      {"simdjson.h", {"http"}},
      {"prometheus/", {"http"}},
      {"spdlog/", {"cli"}},
      {"msgpack", {}},
  };
  for (const Include& include : ReadIncludes()) {
    if (include.quoted && include.target.rfind("replay/wire/", 0) == 0) continue;
    for (const auto& [prefix, folders] : homes) {
      if (include.target.rfind(prefix, 0) != 0) continue;
      EXPECT_TRUE(folders.count(include.folder) != 0)
          << include.file << " includes <" << include.target << ">";
    }
  }
}

TEST(IncludeFloorTest, TheDomainUsesNoClockAndNoRandomness) {
  const fs::path root = CONDUCTOR_SOURCE_DIR;
  static const std::regex kBanned(
      R"(std::random_device|std::mt19937|\brand\(|system_clock|high_resolution_clock|std::hash<)");
  for (const auto& entry : fs::recursive_directory_iterator(root / "src")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      EXPECT_FALSE(std::regex_search(line, kBanned))
          << fs::relative(entry.path(), root) << ": " << line;
    }
  }
}

}  // namespace
