// Names, values and arguments as text: nearest names, log values, tokens, tables, ports.json.
#include "cli/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/ports_file.h"
#include "cli/table.h"
#include "cli/tokens.h"
#include "tests/cli/temp_dir.h"

namespace conductor::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(TextTest, EditDistanceCountsEditsWithoutCase) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("port", "Port"), 0u);
  EXPECT_EQ(EditDistance("port", "prt"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
}

TEST(TextTest, NearestTakesTheFirstOfEquals) {
  EXPECT_EQ(Nearest("lmits", {"auth", "limits", "tls"}), "limits");
  EXPECT_EQ(Nearest("x", {"a", "b"}), "a");
  EXPECT_EQ(Nearest("x", {}), "");
}

TEST(TextTest, LogValueStaysOnOneLine) {
  EXPECT_EQ(LogValue("plain/path-1.json"), "plain/path-1.json");
  EXPECT_EQ(LogValue(""), "\"\"");
  EXPECT_EQ(LogValue("a b=\"c\"\nd"), R"("a b=\"c\"\nd")");
  EXPECT_EQ(LogValue(std::string("a\x01", 2)), "\"a?\"");
}

TEST(TextTest, ReadFileRefusesWhatIsTooLarge) {
  const TempDir directory;
  const std::string path = directory.Write("f", "12345");
  EXPECT_EQ(ReadFile(path, 5).value_or(""), "12345");
  EXPECT_THAT(ReadFile(path, 4).error().message, HasSubstr("at most 4 bytes"));
}

TEST(TokensTest, SeparatorsOfEveryKind) {
  EXPECT_THAT(*ParseTokens("1,2, 3\n4\t5"), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(*ParseTokens("[-1, 2147483647, -2147483648]"),
              ElementsAre(-1, 2147483647, -2147483647 - 1));
  EXPECT_THAT(*ParseTokens(""), IsEmpty());
}

TEST(TokensTest, WrongEntryIsNamedByItsIndex) {
  for (const std::string text : {"1,2147483648", "1,x", "1,2.5", "1,0x2", "1,+2"}) {
    const auto tokens = ParseTokens(text);
    ASSERT_FALSE(tokens.has_value()) << text;
    EXPECT_EQ(tokens.error().index, 1) << text;
    EXPECT_THAT(tokens.error().message, HasSubstr("--tokens[1]: expected a 32-bit integer"));
  }
}

TEST(TokensTest, HashesOfEverySpelling) {
  EXPECT_THAT(*ParseHashes("18446744073709551615 -1 0xffffffffffffffff 0"),
              ElementsAre(~0ull, ~0ull, ~0ull, 0ull));
  EXPECT_FALSE(ParseHashes("18446744073709551616").has_value());
  EXPECT_FALSE(ParseHashes("0x").has_value());
  EXPECT_FALSE(ParseHashes("ff").has_value());
}

TEST(TokensTest, ArgumentComesFromFileOrStdin) {
  const TempDir directory;
  std::istringstream in("7 8");
  EXPECT_EQ(*ReadArgument("-", in), "7 8");
  EXPECT_EQ(*ReadArgument("@" + directory.Write("t", "5,6"), in), "5,6");
  EXPECT_EQ(*ReadArgument("1,2", in), "1,2");
  EXPECT_FALSE(ReadArgument("@/does/not/exist", in).has_value());
}

TEST(TableTest, ColumnsAreAlignedAndNumbersGoRight) {
  Table table({"name", "n"});
  table.AddRow({"a", "100"});
  table.AddRow({"long name", "5"});
  EXPECT_EQ(table.ToText(),
            "name         n\n"
            "a          100\n"
            "long name    5\n");
}

TEST(TableTest, ForeignTextCannotBreakTheLines) {
  Table table({"a", "b"});
  table.AddRow({"x\ny\x1b[31m", ""});
  EXPECT_EQ(table.ToText(), "a         b\nx?y?[31m  -\n");
}

TEST(TableTest, WideCharactersTakeOneColumn) {
  Table table({"a", "b"});
  table.AddRow({"größe", "x"});
  table.AddRow({"12345", "y"});
  EXPECT_EQ(table.ToText(), "a      b\ngröße  x\n12345  y\n");
}

TEST(PortsFileTest, WhatIsWrittenIsRead) {
  const TempDir directory;
  ASSERT_TRUE(WritePortsFile(directory.path(), {4711, "127.0.0.1", 1, 2}).has_value());
  ASSERT_TRUE(WritePortsFile(directory.path(), {4712, "[::]", 3, 4}).has_value());
  const auto ports = ReadPortsFile(directory.path());
  ASSERT_TRUE(ports.has_value());
  EXPECT_EQ(ports->pid, 4712);
  EXPECT_EQ(ports->listen_address, "[::]");
  EXPECT_EQ(ports->http_port, 3);
  EXPECT_EQ(ports->rpc_port, 4);
  RemovePortsFile(directory.path());
  EXPECT_FALSE(ReadPortsFile(directory.path()).has_value());
}

TEST(PortsFileTest, DirectoryThatIsNotThereIsAnError) {
  const auto status = WritePortsFile("/does/not/exist", {});
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().message, HasSubstr("/does/not/exist/ports.json.tmp"));
}

}  // namespace
}  // namespace conductor::cli
