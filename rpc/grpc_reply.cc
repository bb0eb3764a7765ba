#include "rpc/grpc_reply.h"

#include <charconv>
#include <cstdint>
#include <utility>

#include "rpc/channel.h"
#include "rpc/error_detail.h"
#include "rpc/http2/frame.h"

namespace conductor::rpc {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

int Base64Value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

// The table of gRPC for replies that something in between made.
ErrorCode CodeOfHttpStatus(int http_status) {
  switch (http_status) {
    case 400:
      return ErrorCode::kInternal;
    case 401:
      return ErrorCode::kUnauthenticated;
    case 403:
      return ErrorCode::kPermissionDenied;
    case 404:
      return ErrorCode::kUnimplemented;
    case 429:
    case 502:
    case 503:
    case 504:
      return ErrorCode::kUnavailable;
    default:
      return ErrorCode::kInternal;
  }
}

Result<std::string> TakeMessage(std::string body) {
  constexpr std::size_t kPrefix = Channel::kPrefixBytes;
  if (body.size() < kPrefix) {
    return MakeError(ErrorCode::kInternal, "grpc: a reply without a message");
  }
  if (body[0] != 0) {
    return MakeError(ErrorCode::kInternal, "grpc: a compressed message, which was not asked for");
  }
  const std::uint32_t length =
      ReadU32({reinterpret_cast<const std::uint8_t*>(body.data()) + 1, kPrefix - 1});
  if (body.size() != kPrefix + length) {
    return MakeError(ErrorCode::kInternal, "grpc: expected a message of " + std::to_string(length) +
                                               " bytes, got " +
                                               std::to_string(body.size() - kPrefix));
  }
  body.erase(0, kPrefix);
  return body;
}

}  // namespace

void WritePrefix(std::string* request) {
  const std::size_t length = request->size() - Channel::kPrefixBytes;
  (*request)[0] = 0;
  for (int i = 0; i < 4; ++i) {
    (*request)[1 + i] = static_cast<char>(length >> (8 * (3 - i)));
  }
}

Result<std::string> ParseGrpcReply(Reply reply) {
  const std::string_view status = FindHeader(reply.headers, "grpc-status");
  if (status.empty()) {
    return MakeError(CodeOfHttpStatus(reply.http_status),
                     "expected a gRPC reply, got HTTP status " + std::to_string(reply.http_status));
  }
  int code = -1;
  const char* end = status.data() + status.size();
  if (std::from_chars(status.data(), end, code).ptr != end) code = -1;
  if (code == 0) return TakeMessage(std::move(reply.body));
  const auto detail = DecodeBase64(FindHeader(reply.headers, "grpc-status-details-bin"));
  return tl::unexpected(ParseErrorDetail(
      code, DecodePercent(FindHeader(reply.headers, "grpc-message")), detail.value_or("")));
}

std::string DecodePercent(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexValue(text[i + 1]) >= 0 &&
        HexValue(text[i + 2]) >= 0) {
      out.push_back(static_cast<char>(HexValue(text[i + 1]) * 16 + HexValue(text[i + 2])));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    const int value = Base64Value(c);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<char>(bits >> count));
    }
  }
  return out;
}

}  // namespace conductor::rpc
