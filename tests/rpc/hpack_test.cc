// The header compression against the examples of RFC 7541, appendix C, and against damage.
#include "rpc/http2/hpack.h"

#include <gtest/gtest.h>

#include "rpc/http2/huffman.h"

namespace conductor::rpc {
namespace {

std::string FromHex(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

std::span<const std::uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string Decoded(HpackDecoder* decoder, std::string_view hex) {
  const std::string block = FromHex(hex);
  Headers headers;
  if (!decoder->Decode(Bytes(block), &headers)) return "malformed";
  std::string out;
  for (const auto& [name, value] : headers) out += name + "=" + value + ";";
  return out;
}

std::string Huffman(std::string_view hex) {
  const std::string coded = FromHex(hex);
  std::string text;
  return DecodeHuffman(Bytes(coded), &text) ? text : "malformed";
}

TEST(HuffmanTest, DecodesTheExamplesOfTheRfc) {
  EXPECT_EQ(Huffman("f1e3c2e5f23a6ba0ab90f4ff"), "www.example.com");
  EXPECT_EQ(Huffman("a8eb10649cbf"), "no-cache");
  EXPECT_EQ(Huffman("9d29ad171863c78f0b97c8e9ae82ae43d3"), "https://www.example.com");
  EXPECT_EQ(
      Huffman("94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee"
              "5b1063d5007"),
      "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1");
}

TEST(HuffmanTest, EmptyIsEmpty) {
  EXPECT_EQ(Huffman(""), "");
}

TEST(HuffmanTest, PaddingThatIsNotOnesIsMalformed) {
  EXPECT_EQ(Huffman("a8eb10649cb0"), "malformed");
}

TEST(HuffmanTest, AWholeByteOfPaddingIsMalformed) {
  EXPECT_EQ(Huffman("ff"), "malformed");
}

TEST(HuffmanTest, TheEndMarkInsideTheTextIsMalformed) {
  EXPECT_EQ(Huffman("ffffffff"), "malformed");
}

TEST(HpackTest, DecodesRequestsWithTheDynamicTable) {  // C.4
  HpackDecoder decoder;
  EXPECT_EQ(Decoded(&decoder, "828684418cf1e3c2e5f23a6ba0ab90f4ff"),
            ":method=GET;:scheme=http;:path=/;:authority=www.example.com;");
  EXPECT_EQ(Decoded(&decoder, "828684be5886a8eb10649cbf"),
            ":method=GET;:scheme=http;:path=/;:authority=www.example.com;cache-control=no-cache;");
  EXPECT_EQ(Decoded(&decoder, "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf"),
            ":method=GET;:scheme=https;:path=/index.html;:authority=www.example.com;"
            "custom-key=custom-value;");
}

TEST(HpackTest, ASmallerTableEvictsTheOldest) {
  HpackDecoder decoder;
  EXPECT_EQ(Decoded(&decoder, "400161016240016301640"), "a=b;c=d;");
  EXPECT_EQ(Decoded(&decoder, "bf"), "a=b;");
  EXPECT_EQ(Decoded(&decoder, "3f03be"), "c=d;");  // 34 bytes: room for one entry
  EXPECT_EQ(Decoded(&decoder, "bf"), "malformed");
}

TEST(HpackTest, AnEntryLargerThanTheTableEmptiesIt) {
  HpackDecoder decoder;
  EXPECT_EQ(Decoded(&decoder, "4001610162"), "a=b;");
  EXPECT_EQ(Decoded(&decoder,
                    "3f03"
                    "40016104"
                    "62626262"),
            "a=bbbb;");
  EXPECT_EQ(Decoded(&decoder, "be"), "malformed");
}

TEST(HpackTest, NeverIndexedLiteralsAreRead) {  // C.2.3
  HpackDecoder decoder;
  EXPECT_EQ(Decoded(&decoder, "100870617373776f726406736563726574"), "password=secret;");
}

TEST(HpackTest, OurOwnHeadersAreReadBack) {
  std::string block;
  AppendHeader("grpc-timeout", "3000m", &block);
  AppendHeader("long", std::string(300, 'x'), &block);
  HpackDecoder decoder;
  Headers headers;
  ASSERT_TRUE(decoder.Decode(Bytes(block), &headers));
  EXPECT_EQ(FindHeader(headers, "grpc-timeout"), "3000m");
  EXPECT_EQ(FindHeader(headers, "long"), std::string(300, 'x'));
  EXPECT_EQ(FindHeader(headers, "absent"), "");
}

TEST(HpackTest, DamageIsMalformed) {
  for (const char* hex : {
           "80",                    // index 0
           "be",                    // an entry that is not there
           "ffffffffffffffffff7f",  // an index without end
           "7f",                    // an integer that is cut off
           "40",                    // a literal without a name
           "400161",                // ... without a value
           "40056162",              // a string longer than the block
           "3fe21f",                // a table above the limit
           "0081ff0161",            // Huffman padding as a name
       }) {
    HpackDecoder decoder;
    EXPECT_EQ(Decoded(&decoder, hex), "malformed") << hex;
  }
}

TEST(HpackTest, ASmallBlockCannotGrowWithoutBound) {
  std::string block =
      "\x40\x01"
      "a"
      "\x7f\x80\x1e";  // a value of 3,967 bytes, kept
  block.append(3'967, 'v');
  block.append(1'000, '\xbe');
  HpackDecoder decoder;
  Headers headers;
  EXPECT_FALSE(decoder.Decode(Bytes(block), &headers));
}

}  // namespace
}  // namespace conductor::rpc
