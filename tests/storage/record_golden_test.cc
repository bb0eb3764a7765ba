// The bytes of the worked example: they are on disks, and docs/log_format.md shows them.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "storage/log_format.h"
#include "storage/record_codec.h"
#include "tests/storage/golden_records.h"
#include "tests/storage/record_text.h"

namespace conductor::storage {
namespace {

// As in docs/log_format.md, without the explanations.
constexpr char kWorkedExampleHex[] =
    "c4 01 08 00 94 a2 ba 95 0a 42 1a 40 08 03 10 07 18 80 89 7a 21 11 22 33 44 55 66 77 88 2a "
    "1d 0a 1b 08 01 28 10 42 08 ef cd ab 89 67 45 23 01 52 08 88 77 66 55 44 33 22 11 5a 01 01 "
    "2a 0e 12 0c 08 01 12 08 ef cd ab 89 67 45 23 01";

std::string Hex(const std::string& bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%s%02x", text.empty() ? "" : " ", byte);
    text += digits;
  }
  return text;
}

std::string Unhex(const std::string& text) {
  std::string bytes;
  std::istringstream in(text);
  for (unsigned value; in >> std::hex >> value;) bytes += static_cast<char>(value);
  return bytes;
}

TEST(RecordGoldenTest, WorkedExampleIsWrittenAsTheseBytes) {
  const auto value = EncodeRecord(WorkedExample());
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ(Hex(*value), kWorkedExampleHex);
}

TEST(RecordGoldenTest, TheseBytesAreReadAsTheWorkedExample) {
  const auto record = DecodeRecord(Unhex(kWorkedExampleHex));
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(RecordText(*record), RecordText(WorkedExample()));
}

// Every hexadecimal line of the document's example, joined, is the example.
TEST(RecordGoldenTest, DocumentShowsTheseBytes) {
  std::ifstream file(CONDUCTOR_SOURCE_DIR "/docs/log_format.md");
  ASSERT_TRUE(file) << "docs/log_format.md";
  std::string shown;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) inside = line == "## Worked example";
    const std::size_t bar = line.find('|');
    if (!inside || !line.starts_with("    ") || bar == std::string::npos) continue;
    shown += Unhex(line.substr(0, bar));
  }
  EXPECT_EQ(Hex(shown), kWorkedExampleHex);
}

TEST(RecordGoldenTest, KeysAreBigEndian) {
  const auto key = EncodeSeqKey(0x0102030405060708u);
  EXPECT_EQ(Hex(std::string(key.begin(), key.end())), "01 02 03 04 05 06 07 08");
  EXPECT_EQ(DecodeSeqKey(std::string_view(key.data(), key.size())), 0x0102030405060708u);
  EXPECT_EQ(DecodeSeqKey("1234567"), std::nullopt);
  EXPECT_EQ(DecodeSeqKey("123456789"), std::nullopt);
}

}  // namespace
}  // namespace conductor::storage
