// The trailing metadata of an answer: what a caller may trust it for, and why a call failed.
//
//   conductor-log-seq    the log position the answer started from
//   conductor-degraded   "id, id": returned instances that rest on a stream that is not live
//   conductor-degraded-total  how many they are, when the list above was cut
//   conductor-reason, conductor-field   of a failed call
//
// Metadata is printable ASCII and has a size limit; ids are anything. Other bytes, '%' and ','
// are percent-encoded, and a list that would not fit is cut (the body of the answer has all of it).
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"
#include "src/types.h"

namespace conductor::rpc {

// Below the 8 KiB of metadata that every gRPC client accepts by default.
inline constexpr std::size_t kDegradedTrailerBytesMax = 4'096;

std::string EncodeMetadata(std::string_view text);

void AddTrustTrailers(Seq log_seq, const std::vector<std::string>& degraded,
                      grpc::ServerContext* context);

// The status of a failed call; also adds its trailers.
grpc::Status FailCall(const Error& error, grpc::ServerContext* context);

}  // namespace conductor::rpc
