#include "src/hash/sha256.h"

#include <gtest/gtest.h>

namespace conductor {
namespace {

TEST(Sha256Test, HasThePublishedDigests) {
  EXPECT_EQ(HexDigest(Sha256({})),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexDigest(Sha256(BytesOf("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HexDigest(Sha256(BytesOf(std::string(1000000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PartsAreHashedAsOne) {
  EXPECT_EQ(Sha256Concat({BytesOf("a"), BytesOf(""), BytesOf("bc")}), Sha256(BytesOf("abc")));
  EXPECT_EQ(Sha256Concat({}), Sha256({}));
}

TEST(HexDigestTest, ParsesWhatItPrints) {
  const Digest digest = Sha256(BytesOf("abc"));
  EXPECT_EQ(ParseHexDigest(HexDigest(digest)).value(), digest);
  EXPECT_EQ(ParseHexDigest(std::string(64, 'F')).value(),
            ParseHexDigest(std::string(64, 'f')).value());
}

TEST(HexDigestTest, RefusesOtherLengthsAndDigits) {
  for (const std::string& text :
       {std::string(), std::string(63, '0'), std::string(65, '0'), std::string(63, '0') + "g",
        "0x" + std::string(62, '0'), " " + std::string(63, '0')}) {
    const auto digest = ParseHexDigest(text);
    ASSERT_FALSE(digest.has_value()) << text;
    EXPECT_EQ(digest.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace conductor
