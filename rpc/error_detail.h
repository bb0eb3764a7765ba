// Errors on the wire: an Error becomes a status code, a message and the bytes of RichStatus (which
// are those of google.rpc.Status, so that common gRPC tools show them), and comes back whole.
// Pure functions; no gRPC here, because the client processes link none.
#pragma once

#include <string>
#include <string_view>

#include "rpc/conductor.pb.h"
#include "src/result.h"

namespace conductor::rpc {

// A longer error text is cut: status messages travel in a header, and headers have a limit.
inline constexpr std::size_t kErrorMessageBytesMax = 2'048;

std::string SerializeErrorDetail(const Error& error);

// The error of a call that ended with `code`. `detail` are the bytes of grpc-status-details-bin;
// empty or foreign ones leave reason and field empty.
Error ParseErrorDetail(int code, std::string message, std::string_view detail);

void FillFailure(const Error& error, v1::QueryBatchResponse::Failure* failure);
Error ErrorOfFailure(const v1::QueryBatchResponse::Failure& failure);

// `message`, cut at kErrorMessageBytesMax and valid UTF-8.
std::string WireMessage(const Error& error);

}  // namespace conductor::rpc
