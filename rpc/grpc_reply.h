// What makes an HTTP/2 reply a gRPC one: the five-byte prefix of a message, the status in the
// trailers, and what a reply without them means. Pure functions on bytes from the network.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rpc/http2/session.h"
#include "src/result.h"

namespace conductor::rpc {

// Fills the first five bytes of `request`: not compressed, the length of the rest.
void WritePrefix(std::string* request);

// The bare message of a successful call, or the status as an Error.
Result<std::string> ParseGrpcReply(Reply reply);

// "a%20b" -> "a b". A '%' that introduces nothing stands for itself.
std::string DecodePercent(std::string_view text);
// With or without padding; nothing when malformed.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace conductor::rpc
