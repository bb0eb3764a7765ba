#include "src/hash/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace conductor {
namespace {

TEST(Utf8Test, AcceptsTheEndsOfEveryRange) {
  for (const std::string_view text :
       {std::string_view(""), std::string_view("\0", 1), std::string_view("\x7f"),
        std::string_view("\xc2\x80"), std::string_view("\xdf\xbf"),
        std::string_view("\xe0\xa0\x80"), std::string_view("\xed\x9f\xbf"),
        std::string_view("\xee\x80\x80"), std::string_view("\xef\xbf\xbf"),
        std::string_view("\xf0\x90\x80\x80"), std::string_view("\xf4\x8f\xbf\xbf"),
        std::string_view("a\xe6\xa8\xa1z")}) {
    EXPECT_TRUE(IsValidUtf8(text)) << text;
  }
}

TEST(Utf8Test, RefusesWhatPythonCannotEncode) {
  for (const std::string_view text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2z", "\xe0\x9f\xbf", "\xe6\xa8",
        "\xe6\xa8z", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "ok\xfe"}) {
    EXPECT_FALSE(IsValidUtf8(text)) << text;
  }
}

}  // namespace
}  // namespace conductor
