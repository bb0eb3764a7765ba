#include "rpc/trailers.h"

#include "rpc/error_detail.h"

namespace conductor::rpc {

std::string EncodeMetadata(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7F && c != '%' && c != ',') {
      out.push_back(c);
    } else {
      out.push_back('%');
      out.push_back(kDigits[byte >> 4]);
      out.push_back(kDigits[byte & 15]);
    }
  }
  return out;
}

void AddTrustTrailers(Seq log_seq, const std::vector<std::string>& degraded,
                      grpc::ServerContext* context) {
  context->AddTrailingMetadata("conductor-log-seq", std::to_string(log_seq));
  if (degraded.empty()) return;
  std::string list;
  bool cut = false;
  for (const auto& id : degraded) {
    const std::string encoded = EncodeMetadata(id);
    if (list.size() + encoded.size() + 2 > kDegradedTrailerBytesMax) {
      cut = true;
      break;
    }
    if (!list.empty()) list += ", ";
    list += encoded;
  }
  context->AddTrailingMetadata("conductor-degraded", list);
  if (cut) {
    context->AddTrailingMetadata("conductor-degraded-total", std::to_string(degraded.size()));
  }
}

grpc::Status FailCall(const Error& error, grpc::ServerContext* context) {
  if (!error.reason.empty()) {
    context->AddTrailingMetadata("conductor-reason", EncodeMetadata(error.reason));
  }
  if (!error.field.empty()) {
    context->AddTrailingMetadata("conductor-field", EncodeMetadata(error.field));
  }
  return grpc::Status(static_cast<grpc::StatusCode>(error.code), WireMessage(error),
                      SerializeErrorDetail(error));
}

}  // namespace conductor::rpc
