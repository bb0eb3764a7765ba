// Content negotiation, and the two readers as streams of events.
#include "http/body_format.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "http/answer_writer.h"
#include "tests/http/recorder.h"

namespace conductor::http {
namespace {

std::string JsonEvents(const std::string& body) {
  Recorder recorder;
  const auto status = ReadJson(body, recorder);
  return status ? recorder.text : status.error().reason;
}

std::string MsgpackEvents(const std::string& body) {
  Recorder recorder;
  const auto status = ReadMsgpack(body, recorder);
  return status ? recorder.text : status.error().reason;
}

std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text.push_back(static_cast<char>(byte));
  return text;
}

TEST(ContentTypeTest, FormatsAndTheirSpellings) {
  for (const char* type : {"", "application/json", "Application/JSON; charset=utf-8",
                           "application/x-www-form-urlencoded"}) {
    ASSERT_TRUE(ParseContentType(type)) << type;
    EXPECT_EQ(*ParseContentType(type), BodyFormat::kJson) << type;
  }
  for (const char* type : {"application/msgpack", "application/x-msgpack"}) {
    ASSERT_TRUE(ParseContentType(type)) << type;
    EXPECT_EQ(*ParseContentType(type), BodyFormat::kMsgpack) << type;
  }
  for (const char* type : {"text/html", "multipart/form-data", "application/xml"}) {
    ASSERT_FALSE(ParseContentType(type)) << type;
    EXPECT_EQ(ParseContentType(type).error().reason, "unsupported_content_type") << type;
  }
}

TEST(AcceptTest, PrefersByWeightThenOrder) {
  EXPECT_EQ(ParseAccept("*/*"), std::nullopt);
  EXPECT_EQ(ParseAccept("text/html, */*;q=0.8"), std::nullopt);
  EXPECT_EQ(ParseAccept("application/json"), BodyFormat::kJson);
  EXPECT_EQ(ParseAccept("application/json;q=0.1, application/msgpack;q=0.9"), BodyFormat::kMsgpack);
  EXPECT_EQ(ParseAccept("application/json, application/msgpack"), BodyFormat::kJson);
  EXPECT_EQ(ParseAccept("application/json;q=0"), std::nullopt);
}

TEST(BodyReaderTest, BothFormatsGiveTheSameEvents) {
  const auto json = nlohmann::json::parse(
      R"({"a":[1,-2,true,null,1.5,"x"],"b":{"c":18446744073709551615},"d":[],"e":{}})");
  const auto packed = nlohmann::json::to_msgpack(json);
  const std::string expected =
      "{ k:a [ 1 -2 true null float t:x ] k:b { k:c 18446744073709551615 } k:d [ ] k:e { } }";
  EXPECT_EQ(JsonEvents(json.dump()), expected);
  EXPECT_EQ(MsgpackEvents({packed.begin(), packed.end()}), expected);
}

TEST(JsonReaderTest, IntegersAreExactAndBeyond64BitsAreHuge) {
  EXPECT_EQ(JsonEvents("[9007199254740993,-9223372036854775808]"),
            "[ 9007199254740993 -9223372036854775808 ]");
  EXPECT_EQ(JsonEvents("[18446744073709551616,-9223372036854775809]"), "[ huge huge ]");
  EXPECT_EQ(JsonEvents("[1e3,1.0]"), "[ float float ]");
}

TEST(JsonReaderTest, MalformedBodiesAreInvalidJson) {
  for (const char* body : {"", "{", "{\"a\":}", "[1,]", "{} {}", "nul", "[01]", "{\"a\":1,}",
                           "\xff", "[\"\xc3(\"]", "{'a':1}", "[1e999]", "\"\\ud800\""}) {
    EXPECT_EQ(JsonEvents(body), "invalid_json") << body;
  }
  EXPECT_EQ(JsonEvents(std::string(100'000, '[')), "invalid_json");
}

TEST(JsonReaderTest, ErrorTextsDoNotRepeatTheBody) {
  Recorder recorder;
  const auto status = ReadJson(R"({"cache_salt":"very secret)", recorder);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message.find("secret"), std::string::npos);
}

TEST(MsgpackReaderTest, BytesAndExtensions) {
  EXPECT_EQ(MsgpackEvents(Bytes({0xc4, 2, 1, 2})), "b:2");
  EXPECT_EQ(MsgpackEvents(Bytes({0xd4, 1, 2})), "ext");
  EXPECT_EQ(MsgpackEvents(Bytes({0xca, 0, 0, 0, 0})), "float");
}

TEST(MsgpackReaderTest, MalformedBodiesAreInvalidMsgpack) {
  EXPECT_EQ(MsgpackEvents(""), "invalid_msgpack");
  EXPECT_EQ(MsgpackEvents(Bytes({0xc1})), "invalid_msgpack");
  EXPECT_EQ(MsgpackEvents(Bytes({0x81, 0xa1, 'a'})), "invalid_msgpack");      // no value
  EXPECT_EQ(MsgpackEvents(Bytes({0x81, 1, 2})), "invalid_msgpack");           // integer key
  EXPECT_EQ(MsgpackEvents(Bytes({0x80, 0x80})), "invalid_msgpack");           // trailing
  EXPECT_EQ(MsgpackEvents(Bytes({0xa1, 0xff})), "invalid_msgpack");           // no UTF-8
  EXPECT_EQ(MsgpackEvents(std::string(100'000, '\x91')), "invalid_msgpack");  // depth
  EXPECT_EQ(MsgpackEvents(Bytes({0xdd, 255, 255, 255, 255})), "invalid_msgpack");
  EXPECT_EQ(MsgpackEvents(Bytes({0xdf, 255, 255, 255, 255})), "invalid_msgpack");
  EXPECT_EQ(MsgpackEvents(Bytes({0xc6, 255, 255, 255, 255})), "invalid_msgpack");
  EXPECT_EQ(MsgpackEvents(Bytes({0xdb, 0x7f, 255, 255, 255, 'x'})), "invalid_msgpack");
}

TEST(AnswerWriterTest, WritesOneDocumentInBothFormats) {
  const auto write = [](BodyFormat format) {
    AnswerWriter writer(format);
    writer.BeginObject(4);
    writer.Key("a").BeginArray(3);
    writer.Unsigned(18'446'744'073'709'551'615u);
    writer.Signed(-5);
    writer.Bool(true);
    writer.EndArray();
    writer.Key("b").BeginObject(0);
    writer.EndObject();
    writer.Key("c").Text("quote \" back \\ line \n bell \x07 \xc3\xa9");
    writer.Key("d").Null();
    writer.EndObject();
    return std::move(writer).Take();
  };
  const std::string json = write(BodyFormat::kJson);
  EXPECT_EQ(json,
            "{\"a\":[18446744073709551615,-5,true],\"b\":{},"
            "\"c\":\"quote \\\" back \\\\ line \\n bell \\u0007 \xc3\xa9\",\"d\":null}");
  EXPECT_EQ(nlohmann::json::from_msgpack(write(BodyFormat::kMsgpack)), nlohmann::json::parse(json));
}

TEST(AnswerWriterTest, TextThatIsNoUtf8DoesNotBreakTheDocument) {
  AnswerWriter writer(BodyFormat::kJson);
  writer.Text(
      "a\xff"
      "b");
  EXPECT_EQ(std::move(writer).Take(), "\"a?b\"");
}

}  // namespace
}  // namespace conductor::http
