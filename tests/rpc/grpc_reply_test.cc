// gRPC on top of a reply: messages, statuses, and replies that something else made.
#include "rpc/grpc_reply.h"

#include <gtest/gtest.h>

#include "rpc/error_detail.h"

namespace conductor::rpc {
namespace {

Reply MakeReply(std::string body, Headers headers, int http_status = 200) {
  return Reply{http_status, std::move(headers), std::move(body)};
}

TEST(GrpcReplyTest, AMessageIsTakenOutOfItsPrefix) {
  std::string message = "     hello";
  WritePrefix(&message);
  const auto parsed = ParseGrpcReply(MakeReply(message, {{"grpc-status", "0"}}));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, "hello");
}

TEST(GrpcReplyTest, BadMessagesAreInternal) {
  std::string compressed = "     hello";
  WritePrefix(&compressed);
  compressed[0] = 1;
  std::string longer = "     hello";
  WritePrefix(&longer);
  longer += "!";
  for (const std::string& body : {std::string(), std::string("abc"), compressed, longer}) {
    const auto parsed = ParseGrpcReply(MakeReply(body, {{"grpc-status", "0"}}));
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().code, ErrorCode::kInternal);
  }
}

TEST(GrpcReplyTest, AStatusWithoutDetailKeepsItsMessage) {
  const auto parsed =
      ParseGrpcReply(MakeReply("", {{"grpc-status", "5"}, {"grpc-message", "not%20here%"}}));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(parsed.error().message, "not here%");
  EXPECT_EQ(parsed.error().reason, "");
}

TEST(GrpcReplyTest, RepliesWithoutStatusAreJudgedByHttp) {
  const std::pair<int, ErrorCode> cases[] = {
      {200, ErrorCode::kInternal},        {400, ErrorCode::kInternal},
      {401, ErrorCode::kUnauthenticated}, {403, ErrorCode::kPermissionDenied},
      {404, ErrorCode::kUnimplemented},   {503, ErrorCode::kUnavailable},
  };
  for (const auto& [http_status, code] : cases) {
    const auto parsed = ParseGrpcReply(MakeReply("", {}, http_status));
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().code, code) << http_status;
  }
}

TEST(GrpcReplyTest, StrangeCodesAreInternalAndCancelledIsUnavailable) {
  for (const char* code : {"2", "17", "-1", "x", "99999999999999"}) {
    const auto parsed = ParseGrpcReply(MakeReply("", {{"grpc-status", code}}));
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().code, ErrorCode::kInternal) << code;
  }
  const auto cancelled = ParseGrpcReply(MakeReply("", {{"grpc-status", "1"}}));
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, ErrorCode::kUnavailable);
}

TEST(GrpcReplyTest, Base64WithAndWithoutPadding) {
  EXPECT_EQ(DecodeBase64("aGVsbG8="), "hello");
  EXPECT_EQ(DecodeBase64("aGVsbG8"), "hello");
  EXPECT_EQ(DecodeBase64("+/8"), "\xfb\xff");
  EXPECT_EQ(DecodeBase64(""), "");
  EXPECT_FALSE(DecodeBase64("a"));
  EXPECT_FALSE(DecodeBase64("a*c="));
}

TEST(ErrorDetailTest, AnErrorComesBackWhole) {
  const Error error{ErrorCode::kInvalidArgument, "token_ids: too big", "out_of_range", "token_ids",
                    3};
  const Error back = ParseErrorDetail(3, "token_ids: too big", SerializeErrorDetail(error));
  EXPECT_EQ(back.code, error.code);
  EXPECT_EQ(back.message, error.message);
  EXPECT_EQ(back.reason, error.reason);
  EXPECT_EQ(back.field, error.field);
  EXPECT_EQ(back.index, 3);
}

TEST(ErrorDetailTest, ForeignDetailsAreIgnored) {
  const Error back = ParseErrorDetail(14, "m", "\xff\xff garbage");
  EXPECT_EQ(back.code, ErrorCode::kUnavailable);
  EXPECT_EQ(back.reason, "");
  EXPECT_EQ(back.index, -1);
}

TEST(ErrorDetailTest, LongMessagesAreCutBetweenCharacters) {
  Error error;
  error.message = std::string(kErrorMessageBytesMax - 1, 'x') + "\xC3\xA9";
  EXPECT_EQ(WireMessage(error), std::string(kErrorMessageBytesMax - 1, 'x') + "...");
}

TEST(ErrorDetailTest, MessagesAreAlwaysUtf8) {
  Error error;
  error.message = "bad \xFF";
  EXPECT_EQ(WireMessage(error), "bad \xEF\xBF\xBD");
}

}  // namespace
}  // namespace conductor::rpc
