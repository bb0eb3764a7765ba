// Where a request ends, and what is refused before anything is buffered.
#include "http/request_framing.h"

#include <gtest/gtest.h>

#include <string>

namespace conductor::http {
namespace {

using State = RequestFraming::State;

constexpr FramingLimits kSmall{.header_bytes_max = 512, .body_bytes_max = 1'000};

// Feeds byte by byte: every split of the input is one of these states.
RequestFraming FedSlowly(const std::string& bytes) {
  RequestFraming framing(kSmall);
  for (const char c : bytes) {
    if (framing.Finished()) break;
    EXPECT_EQ(framing.Feed(std::string_view(&c, 1)), 1u);
  }
  return framing;
}

RequestFraming Fed(const std::string& bytes) {
  RequestFraming framing(kSmall);
  framing.Feed(bytes);
  return framing;
}

TEST(RequestFramingTest, HeaderWithoutBodyIsComplete) {
  auto framing = FedSlowly("GET /services?detail=1 HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(framing.state(), State::kDone);
  EXPECT_EQ(framing.path(), "/services");
  EXPECT_EQ(framing.header(), "GET /services?detail=1 HTTP/1.1\r\nhost: a\r\n\r\n");
}

TEST(RequestFramingTest, BlankLinesBeforeARequestAreSkipped) {
  EXPECT_EQ(Fed("\r\n\r\nGET / HTTP/1.1\r\n\r\n").state(), State::kDone);
}

TEST(RequestFramingTest, BareLineFeedsEndLines) {
  auto framing = FedSlowly("GET / HTTP/1.1\nHost: a\n\n");
  ASSERT_EQ(framing.state(), State::kDone);
  EXPECT_EQ(framing.header(), "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
}

TEST(RequestFramingTest, BodyOfContentLengthIsTaken) {
  auto framing = FedSlowly("POST /query HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
  ASSERT_EQ(framing.state(), State::kDone);
  EXPECT_EQ(framing.TakeBody(), "hello");
}

TEST(RequestFramingTest, BytesOfTheNextRequestAreNotTaken) {
  const std::string first = "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab";
  RequestFraming framing(kSmall);
  EXPECT_EQ(framing.Feed(first + "GET / HTTP/1.1\r\n\r\n"), first.size());
  EXPECT_EQ(framing.state(), State::kDone);
  framing.Reset();
  EXPECT_EQ(framing.state(), State::kHeader);
  EXPECT_FALSE(framing.Started());
}

TEST(RequestFramingTest, ChunksAreJoined) {
  auto framing = FedSlowly(
      "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "3;name=x\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n");
  ASSERT_EQ(framing.state(), State::kDone);
  EXPECT_EQ(framing.TakeBody(), "abc0123456789");
}

TEST(RequestFramingTest, ContentLengthAboveTheLimitIsRefusedBeforeTheBody) {
  auto framing = Fed("POST / HTTP/1.1\r\nContent-Length: 10000000000\r\n\r\n");
  ASSERT_EQ(framing.state(), State::kRefused);
  EXPECT_EQ(framing.status(), 413);
  EXPECT_EQ(framing.error().reason, "too_large");
}

TEST(RequestFramingTest, ContentLengthBeyond64BitsIsTooLarge) {
  auto framing = Fed("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n");
  EXPECT_EQ(framing.status(), 413);
}

TEST(RequestFramingTest, ChunkAboveTheLimitIsRefusedBeforeItsData) {
  auto framing = Fed("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n");
  ASSERT_EQ(framing.state(), State::kRefused);
  EXPECT_EQ(framing.status(), 413);
}

TEST(RequestFramingTest, ChunksAboveTheLimitTogetherAreRefused) {
  std::string bytes = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 2; ++i) bytes += "1F4\r\n" + std::string(500, 'x') + "\r\n";
  ASSERT_FALSE(Fed(bytes).Finished());
  auto framing = Fed(bytes + "1\r\nx\r\n");
  EXPECT_EQ(framing.status(), 413);
}

TEST(RequestFramingTest, HeaderAtTheLimitPassesAndAboveItIsRefused) {
  const std::string start = "GET / HTTP/1.1\r\nX: ";
  const std::string exact = start + std::string(512 - start.size() - 4, 'x') + "\r\n\r\n";
  EXPECT_EQ(Fed(exact).state(), State::kDone);
  auto framing = Fed(start + std::string(512 - start.size() - 3, 'x') + "\r\n\r\n");
  ASSERT_EQ(framing.state(), State::kRefused);
  EXPECT_EQ(framing.status(), 431);
  EXPECT_EQ(framing.error().reason, "too_large");
}

TEST(RequestFramingTest, LineWithoutEndIsRefusedAtTheHeaderLimit) {
  RequestFraming framing(kSmall);
  const std::string endless(10'000, 'x');
  EXPECT_LE(framing.Feed(endless), 513u);
  EXPECT_EQ(framing.status(), 431);
}

TEST(RequestFramingTest, ChunkSizeLineWithoutEndIsRefused) {
  auto framing =
      Fed("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(10'000, 'x'));
  EXPECT_EQ(framing.state(), State::kRefused);
}

TEST(RequestFramingTest, EndlessTrailersAreRefused) {
  std::string bytes = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
  for (int i = 0; i < 1'000; ++i) bytes += "Trailer: x\r\n";
  EXPECT_EQ(Fed(bytes).state(), State::kRefused);
}

TEST(RequestFramingTest, OnlyHeadersOfUseReachTheLibrary) {
  auto framing =
      Fed("GET / HTTP/1.1\r\nRange: bytes=0-1\r\nAccept-Encoding: gzip\r\nExpect: 100-continue\r\n"
          "Accept: application/json\r\nConnection: Keep-Alive, Close\r\n\r\n");
  ASSERT_EQ(framing.state(), State::kDone);
  EXPECT_EQ(framing.header(),
            "GET / HTTP/1.1\r\naccept: application/json\r\nconnection: close\r\n\r\n");
}

TEST(RequestFramingTest, ExpectContinueIsSeenOnceTheHeaderIsComplete) {
  auto framing = Fed("POST / HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n");
  EXPECT_TRUE(framing.TakeExpectContinue());
  EXPECT_FALSE(framing.TakeExpectContinue());
}

class RefusedHeaderTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RefusedHeaderTest, IsRefusedWith400) {
  auto framing = Fed("POST / HTTP/1.1\r\n" + std::string(GetParam()) + "\r\n\r\n");
  ASSERT_EQ(framing.state(), State::kRefused) << GetParam();
  EXPECT_EQ(framing.status(), 400);
}

INSTANTIATE_TEST_SUITE_P(All, RefusedHeaderTest,
                         ::testing::Values("Content-Length: 1\r\nContent-Length: 2",
                                           "Content-Length: 1\r\nTransfer-Encoding: chunked",
                                           "Content-Length: -1", "Content-Length: 1x",
                                           "Content-Length: +1", "Content-Length:",
                                           "Content-Length: 1, 2", "Transfer-Encoding: gzip",
                                           "Transfer-Encoding: gzip, chunked", "no colon here",
                                           "Name : value", ": value", "A: b\r\n folded"));

TEST(RequestFramingTest, CompressedBodyIsRefusedWith415) {
  auto framing = Fed("POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(framing.status(), 415);
  EXPECT_EQ(framing.error().reason, "unsupported_content_type");
}

TEST(RequestFramingTest, WrongChunkSizesAreRefused) {
  const std::string start = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* size : {"", "x", "-1", "1 1", "0x10"}) {
    auto framing = Fed(start + size + "\r\n");
    EXPECT_EQ(framing.state(), State::kRefused) << size;
    EXPECT_EQ(framing.status(), 400) << size;
  }
  EXPECT_EQ(Fed(start + "1\r\nab\r\n").status(), 400);
}

}  // namespace
}  // namespace conductor::http
