// docs/durability.md names a test for every promise; each of them exists.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace conductor::durability {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string AllTests() {
  std::string text;
  for (const auto& entry : fs::recursive_directory_iterator(CONDUCTOR_SOURCE_DIR "/tests")) {
    const std::string extension = entry.path().extension();
    if (extension == ".cc" || extension == ".py") text += ReadFile(entry.path());
  }
  return text;
}

TEST(DurabilityPageTest, NamesTestsThatExist) {
  const std::string page = ReadFile(CONDUCTOR_SOURCE_DIR "/docs/durability.md");
  const std::string tests = AllTests();
  const std::regex name("`(?:(\\w+Test)\\.(\\w+)|(test_\\w+))`");
  int names = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), name), end; it != end; ++it, ++names) {
    const std::string found = (*it)[3].matched ? "def " + (*it)[3].str() + "("
                                               : "(" + (*it)[1].str() + ", " + (*it)[2].str() + ")";
    EXPECT_NE(tests.find(found), std::string::npos) << (*it)[0];
  }
  EXPECT_GT(names, 20);
}

}  // namespace
}  // namespace conductor::durability
