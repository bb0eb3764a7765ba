// The HTTP/2 session without a socket: each test is the bytes of a server.
#include "rpc/http2/session.h"

#include <gtest/gtest.h>

namespace conductor::rpc {
namespace {

std::span<const std::uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string MakeFrame(FrameType type, std::uint8_t flags, std::uint32_t stream,
                      const std::string& payload) {
  std::string out;
  AppendFrameHeader(type, flags, stream, payload.size(), &out);
  return out + payload;
}

std::string U32(std::uint32_t value) {
  std::string out;
  AppendU32(value, &out);
  return out;
}

std::string Setting(std::uint16_t id, std::uint32_t value) {
  return std::string{static_cast<char>(id >> 8), static_cast<char>(id)} + U32(value);
}

std::string SettingsFrame(const std::string& payload = "") {
  return MakeFrame(FrameType::kSettings, 0, 0, payload);
}

std::string HeaderBlock(const Headers& headers) {
  std::string block;
  for (const auto& [name, value] : headers) AppendHeader(name, value, &block);
  return block;
}

std::string HeadersFrame(std::uint8_t flags, const Headers& headers, std::uint32_t stream = 1) {
  return MakeFrame(FrameType::kHeaders, flags | kFlagEndHeaders, stream, HeaderBlock(headers));
}

std::string DataFrame(const std::string& data, std::uint8_t flags = 0, std::uint32_t stream = 1) {
  return MakeFrame(FrameType::kData, flags, stream, data);
}

// Takes everything the session wants to send.
std::string Drain(Session* session) {
  std::string out;
  while (!session->Output().empty()) {
    out += session->Output();
    session->Sent(session->Output().size());
  }
  return out;
}

class SessionTest : public ::testing::Test {
 protected:
  void StartCall(const std::string& body = "hi") {
    body_ = body;
    ASSERT_TRUE(session_.Receive(Bytes(SettingsFrame())));
    session_.Start(HeaderBlock({{":method", "POST"}}), Bytes(body_));
    Drain(&session_);
  }
  Status Receive(const std::string& bytes) { return session_.Receive(Bytes(bytes)); }
  void ExpectBroken(const std::string& bytes, const std::string& text) {
    const Status status = Receive(bytes);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(status.error().message.find(text), std::string::npos) << status.error().message;
  }

  Session session_;
  std::string body_;
};

const Headers kOk = {{":status", "200"}, {"content-type", "application/grpc"}};
const Headers kTrailers = {{"grpc-status", "0"}};

TEST_F(SessionTest, OpensWithThePrefaceAndItsSettings) {
  const std::string out = Drain(&session_);
  EXPECT_EQ(out.substr(0, 24), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  EXPECT_EQ(out[24 + 3], static_cast<char>(FrameType::kSettings));
  EXPECT_FALSE(session_.settings_received());
}

TEST_F(SessionTest, CarriesARequestAndItsReply) {
  StartCall();
  ASSERT_TRUE(Receive(HeadersFrame(0, kOk) + DataFrame("ab") + DataFrame("c") +
                      HeadersFrame(kFlagEndStream, kTrailers)));
  ASSERT_TRUE(session_.done());
  const Reply reply = session_.TakeReply();
  EXPECT_EQ(reply.http_status, 200);
  EXPECT_EQ(reply.body, "abc");
  EXPECT_EQ(FindHeader(reply.headers, "grpc-status"), "0");
  EXPECT_TRUE(session_.CanStart());
}

TEST_F(SessionTest, AReplyMayArriveByteByByte) {
  StartCall();
  const std::string reply =
      HeadersFrame(0, kOk) + DataFrame("abc") + HeadersFrame(kFlagEndStream, kTrailers);
  for (std::size_t i = 0; i < reply.size(); ++i) {
    EXPECT_FALSE(session_.done());
    ASSERT_TRUE(Receive(reply.substr(i, 1)));
  }
  EXPECT_EQ(session_.TakeReply().body, "abc");
}

TEST_F(SessionTest, TrailersOnlyIsAReply) {
  StartCall();
  ASSERT_TRUE(Receive(HeadersFrame(kFlagEndStream, {{":status", "200"}, {"grpc-status", "5"}})));
  EXPECT_EQ(FindHeader(session_.TakeReply().headers, "grpc-status"), "5");
}

TEST_F(SessionTest, ASecondRequestUsesTheNextStream) {
  StartCall();
  ASSERT_TRUE(Receive(HeadersFrame(kFlagEndStream, kOk)));
  session_.TakeReply();
  session_.Start(HeaderBlock({{":method", "POST"}}), {});
  const std::string out = Drain(&session_);
  EXPECT_EQ(ReadU32(Bytes(out).subspan(5)), 3u);
  ASSERT_TRUE(Receive(DataFrame("late", 0, 1) + HeadersFrame(kFlagEndStream, kOk, 3)));
  EXPECT_EQ(session_.TakeReply().body, "");
}

TEST_F(SessionTest, PaddingAndPriorityAreRemoved) {
  StartCall();
  const std::string block = HeaderBlock(kOk);
  ASSERT_TRUE(Receive(MakeFrame(FrameType::kHeaders, kFlagEndHeaders | kFlagPadded | kFlagPriority,
                                1, std::string(1, 3) + "ppppp" + block + "xxx") +
                      MakeFrame(FrameType::kData, kFlagPadded | kFlagEndStream, 1,
                                std::string(1, 2) + "abc" + "xx")));
  EXPECT_EQ(session_.TakeReply().body, "abc");
}

TEST_F(SessionTest, AHeaderBlockMayContinue) {
  StartCall();
  const std::string block = HeaderBlock(kOk);
  ASSERT_TRUE(Receive(MakeFrame(FrameType::kHeaders, kFlagEndStream, 1, block.substr(0, 4)) +
                      MakeFrame(FrameType::kContinuation, 0, 1, block.substr(4, 4)) +
                      MakeFrame(FrameType::kContinuation, kFlagEndHeaders, 1, block.substr(8))));
  EXPECT_EQ(session_.TakeReply().http_status, 200);
}

TEST_F(SessionTest, AnInformationalReplyIsNotTheReply) {
  StartCall();
  ASSERT_TRUE(Receive(HeadersFrame(0, {{":status", "100"}}) + HeadersFrame(kFlagEndStream, kOk)));
  EXPECT_EQ(session_.TakeReply().http_status, 200);
}

TEST_F(SessionTest, ALargeBodyWaitsForTheWindow) {
  StartCall(std::string(100'000, 'x'));  // Drain() sent what the default window allows
  EXPECT_TRUE(session_.Output().empty());
  ASSERT_TRUE(Receive(MakeFrame(FrameType::kWindowUpdate, 0, 1, U32(100'000))));
  EXPECT_TRUE(session_.Output().empty()) << "the connection's window is still closed";
  ASSERT_TRUE(Receive(MakeFrame(FrameType::kWindowUpdate, 0, 0, U32(1'000))));
  EXPECT_EQ(Drain(&session_).size(), kFrameHeaderBytes + 1'000);
  ASSERT_TRUE(Receive(MakeFrame(FrameType::kWindowUpdate, 0, 0, U32(1'000'000))));
  EXPECT_EQ(Drain(&session_).size(), 3 * kFrameHeaderBytes + 100'000 - kWindowDefault - 1'000);
}

TEST_F(SessionTest, SettingsChangeTheWindowOfTheOpenStream) {
  StartCall(std::string(70'000, 'x'));
  ASSERT_TRUE(Receive(MakeFrame(FrameType::kWindowUpdate, 0, 0, U32(1'000'000))));
  EXPECT_TRUE(session_.Output().empty());
  ASSERT_TRUE(Receive(SettingsFrame(Setting(4, 1'000'000) + Setting(5, 1 << 20))));
  // The acknowledgement, and the rest in one frame.
  EXPECT_EQ(Drain(&session_).size(), 2 * kFrameHeaderBytes + 70'000 - kWindowDefault);
}

TEST_F(SessionTest, AnEarlyReplyEndsTheConnection) {
  StartCall(std::string(100'000, 'x'));
  ASSERT_TRUE(Receive(HeadersFrame(kFlagEndStream, {{":status", "200"}, {"grpc-status", "8"}})));
  ASSERT_TRUE(session_.done());
  session_.TakeReply();
  EXPECT_TRUE(session_.Output().empty());
  EXPECT_FALSE(session_.CanStart());
}

TEST_F(SessionTest, PingsAreAnswered) {
  StartCall();
  ASSERT_TRUE(Receive(MakeFrame(FrameType::kPing, 0, 0, "12345678")));
  EXPECT_EQ(Drain(&session_), MakeFrame(FrameType::kPing, kFlagAck, 0, "12345678"));
  ASSERT_TRUE(Receive(MakeFrame(FrameType::kPing, kFlagAck, 0, "12345678")));
  EXPECT_EQ(Drain(&session_), "");
}

TEST_F(SessionTest, UnknownFramesAndPriorityAreIgnored) {
  StartCall();
  ASSERT_TRUE(Receive(MakeFrame(static_cast<FrameType>(0x77), 0, 0, "?") +
                      MakeFrame(FrameType::kPriority, 0, 1, "12345")));
}

TEST_F(SessionTest, GoodbyeLetsTheRunningRequestEnd) {
  StartCall();
  ASSERT_TRUE(Receive(MakeFrame(FrameType::kGoAway, 0, 0, U32(1) + U32(0)) +
                      HeadersFrame(kFlagEndStream, kOk)));
  session_.TakeReply();
  EXPECT_FALSE(session_.CanStart());
}

TEST_F(SessionTest, GoodbyeBeforeTheRequestRefusesIt) {
  StartCall();
  ExpectBroken(MakeFrame(FrameType::kGoAway, 0, 0, U32(0) + U32(0)), "going away");
  EXPECT_TRUE(session_.refused());
}

TEST_F(SessionTest, ARefusedStreamMayBeSentAgain) {
  StartCall();
  ExpectBroken(MakeFrame(FrameType::kRstStream, 0, 1, U32(7)), "error 7");
  EXPECT_TRUE(session_.refused());
}

TEST_F(SessionTest, ACancelledStreamMayNot) {
  StartCall();
  ExpectBroken(MakeFrame(FrameType::kRstStream, 0, 1, U32(8)), "error 8");
  EXPECT_FALSE(session_.refused());
}

TEST_F(SessionTest, AnotherProtocolIsBroken) {
  ExpectBroken("HTTP/1.1 400 Bad Request\r\n\r\n", "http2");
}

TEST_F(SessionTest, TheFirstFrameMustBeSettings) {
  ExpectBroken(MakeFrame(FrameType::kPing, 0, 0, "12345678"), "SETTINGS");
}

TEST_F(SessionTest, ViolationsAreBroken) {
  const std::string too_long(kFrameBytesDefault + 1, 'x');
  const struct {
    std::string bytes;
    const char* text;
  } cases[] = {
      {DataFrame(too_long), "frame of"},
      {DataFrame("x"), "DATA before HEADERS"},
      {DataFrame("x", 0, 0), "malformed DATA"},
      {DataFrame("\x05"
                 "ab",
                 kFlagPadded),
       "malformed DATA"},
      {DataFrame("", kFlagPadded), "malformed DATA"},
      {HeadersFrame(0, kOk, 0), "malformed HEADERS"},
      {MakeFrame(FrameType::kHeaders, kFlagEndHeaders | kFlagPriority, 1, "abc"), "malformed"},
      {MakeFrame(FrameType::kHeaders, kFlagEndHeaders, 1, "\x80"), "cannot be decoded"},
      {MakeFrame(FrameType::kHeaders, 0, 1, "a") + MakeFrame(FrameType::kPing, 0, 0, "12345678"),
       "interrupted"},
      {MakeFrame(FrameType::kHeaders, 0, 1, "a") + MakeFrame(FrameType::kContinuation, 0, 1, ""),
       "empty CONTINUATION"},
      {MakeFrame(FrameType::kContinuation, kFlagEndHeaders, 1, "a"), "without HEADERS"},
      {HeadersFrame(0, {{"a", "b"}}), "without a status"},
      {HeadersFrame(0, {{":status", "x"}}), "without a status"},
      {HeadersFrame(0, kOk) + HeadersFrame(0, kTrailers), "do not end"},
      {MakeFrame(FrameType::kPushPromise, 0, 1, "abcd"), "PUSH_PROMISE"},
      {MakeFrame(FrameType::kPing, 0, 0, "1"), "PING"},
      {MakeFrame(FrameType::kRstStream, 0, 1, "1"), "RST_STREAM"},
      {MakeFrame(FrameType::kGoAway, 0, 0, "1234"), "GOAWAY"},
      {MakeFrame(FrameType::kWindowUpdate, 0, 0, "1"), "WINDOW_UPDATE"},
      {MakeFrame(FrameType::kWindowUpdate, 0, 0, U32(0)), "of nothing"},
      {MakeFrame(FrameType::kWindowUpdate, 0, 0, U32(kWindowMax)), "above"},
      {SettingsFrame("12345"), "malformed SETTINGS"},
      {SettingsFrame(Setting(4, 0x80000000)), "initial window"},
      {SettingsFrame(Setting(5, 1)), "frame limit"},
  };
  for (const auto& [bytes, text] : cases) {
    Session session;
    ASSERT_TRUE(session.Receive(Bytes(SettingsFrame())));
    session.Start(HeaderBlock({{":method", "POST"}}), {});
    const Status status = session.Receive(Bytes(bytes));
    ASSERT_FALSE(status) << text;
    EXPECT_NE(status.error().message.find(text), std::string::npos) << status.error().message;
  }
}

TEST_F(SessionTest, AnEndlessHeaderBlockIsBroken) {
  StartCall();
  ASSERT_TRUE(Receive(MakeFrame(FrameType::kHeaders, 0, 1, "a")));
  const std::string more = MakeFrame(FrameType::kContinuation, 0, 1, std::string(16'000, 'a'));
  Status status;
  std::size_t sent = 0;
  for (; status && sent < 2 * kHeaderBlockBytesMax; sent += more.size()) status = Receive(more);
  EXPECT_FALSE(status);
}

TEST_F(SessionTest, TheConnectionWindowIsGivenBack) {
  StartCall();
  ASSERT_TRUE(Receive(HeadersFrame(0, kOk)));
  // Frames of a stream that is not ours count for the connection's window and for nothing else.
  const std::string chunk = DataFrame(std::string(kFrameBytesDefault, 'x'), 0, 99);
  std::string bulk;
  for (int i = 0; i < 64; ++i) bulk += chunk;
  for (std::size_t sent = 0; sent < (std::size_t{1} << 24); sent += 64 * kFrameBytesDefault) {
    ASSERT_TRUE(Receive(bulk));
  }
  EXPECT_EQ(Drain(&session_), MakeFrame(FrameType::kWindowUpdate, 0, 0, U32(1u << 24)));
}

}  // namespace
}  // namespace conductor::rpc
