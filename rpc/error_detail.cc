#include "rpc/error_detail.h"

#include <algorithm>
#include <utility>

#include "rpc/convert.h"

namespace conductor::rpc {
namespace {

constexpr char kDetailType[] = "type.googleapis.com/conductor.v1.ErrorDetail";

void FillDetail(const Error& error, v1::ErrorDetail* detail) {
  detail->set_reason(error.reason);
  detail->set_field(WireText(error.field));
  if (error.index >= 0) detail->set_index(error.index);
}

void TakeDetail(const v1::ErrorDetail& detail, Error* error) {
  error->reason = detail.reason();
  error->field = detail.field();
  if (detail.has_index()) error->index = detail.index();
}

ErrorCode CodeOf(int code) {
  switch (code) {
    case 1:  // CANCELLED: the peer gave up; nothing of ours says so.
      return ErrorCode::kUnavailable;
    case 2:  // UNKNOWN
      return ErrorCode::kInternal;
    default:
      return code >= 0 && code <= 16 ? static_cast<ErrorCode>(code) : ErrorCode::kInternal;
  }
}

}  // namespace

std::string WireMessage(const Error& error) {
  if (error.message.size() <= kErrorMessageBytesMax) return WireText(error.message);
  std::size_t end = kErrorMessageBytesMax;
  // Not inside a UTF-8 sequence.
  while (end > 0 && (static_cast<unsigned char>(error.message[end]) & 0xC0) == 0x80) --end;
  return WireText(error.message.substr(0, end)) + "...";
}

std::string SerializeErrorDetail(const Error& error) {
  v1::ErrorDetail detail;
  FillDetail(error, &detail);
  v1::RichStatus status;
  status.set_code(static_cast<int>(error.code));
  status.set_message(WireMessage(error));
  auto* any = status.add_details();
  any->set_type_url(kDetailType);
  detail.SerializeToString(any->mutable_value());
  return status.SerializeAsString();
}

Error ParseErrorDetail(int code, std::string message, std::string_view detail) {
  Error error{CodeOf(code), std::move(message), "", "", -1};
  v1::RichStatus status;
  if (!status.ParseFromArray(detail.data(), static_cast<int>(detail.size()))) return error;
  for (const auto& any : status.details()) {
    v1::ErrorDetail ours;
    if (any.type_url() == kDetailType && ours.ParseFromString(any.value())) {
      TakeDetail(ours, &error);
    }
  }
  return error;
}

void FillFailure(const Error& error, v1::QueryBatchResponse::Failure* failure) {
  failure->set_code(static_cast<int>(error.code));
  failure->set_message(WireMessage(error));
  FillDetail(error, failure->mutable_detail());
}

Error ErrorOfFailure(const v1::QueryBatchResponse::Failure& failure) {
  Error error{CodeOf(failure.code()), failure.message(), "", "", -1};
  TakeDetail(failure.detail(), &error);
  return error;
}

}  // namespace conductor::rpc
