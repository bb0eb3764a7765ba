// WholeDigest behaves as the std::string it stands for, below and above its inline size.
#include "src/whole_digest.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/types.h"

namespace conductor {
namespace {

// Every length up to the log's limit, with bytes on both sides of 0x80 and zeros at the end.
std::vector<std::string> Texts() {
  std::vector<std::string> texts;
  for (std::size_t size = 0; size <= 64; ++size) {
    for (const char last : {'\x00', '\x7f', '\x80', '\xff'}) {
      std::string text(size, '\x42');
      if (!text.empty()) text.back() = last;
      texts.push_back(text);
    }
  }
  return texts;
}

TEST(WholeDigestTest, KeepsAndOrdersBytesAsAString) {
  const std::vector<std::string> texts = Texts();
  for (const std::string& a : texts) {
    const WholeDigest left = a;
    ASSERT_EQ(std::string(left), a);
    ASSERT_EQ(left.empty(), a.empty());
    for (const std::string& b : texts) {
      const WholeDigest right = b;
      ASSERT_EQ(left == right, a == b);
      ASSERT_EQ(left <=> right, a <=> b);
      ASSERT_EQ((BlockName{1, left} < BlockName{1, right}), a < b);
    }
  }
}

TEST(WholeDigestTest, CopiesMovesAndAssignsBetweenAllSizes) {
  const std::vector<std::string> texts = Texts();
  for (const std::string& a : texts) {
    for (const std::string& b : texts) {
      const WholeDigest from = b;
      WholeDigest copied = a;
      copied = from;
      ASSERT_EQ(std::string(copied), b);
      WholeDigest source = b;
      WholeDigest moved = a;
      moved = std::move(source);
      ASSERT_EQ(std::string(moved), b);
      source = a;
      ASSERT_EQ(std::string(source), a);
      source.assign(b);
      ASSERT_EQ(std::string(source), b);
    }
    WholeDigest own = a;
    WholeDigest& alias = own;
    own = alias;
    ASSERT_EQ(std::string(own), a);
    ASSERT_EQ(std::string(WholeDigest(std::move(own))), a);
  }
}

}  // namespace
}  // namespace conductor
