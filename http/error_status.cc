#include "http/error_status.h"

namespace conductor::http {

namespace {

struct CodeRow {
  ErrorCode code;
  int status;
  std::string_view reason;
};

constexpr CodeRow kCodes[] = {
    {ErrorCode::kInvalidArgument, 400, "invalid_value"},
    {ErrorCode::kDeadlineExceeded, 503, "not_ready"},
    {ErrorCode::kNotFound, 404, "not_found"},
    {ErrorCode::kAlreadyExists, 400, "invalid_registration"},
    {ErrorCode::kPermissionDenied, 403, "forbidden"},
    {ErrorCode::kResourceExhausted, 413, "too_large"},
    {ErrorCode::kFailedPrecondition, 400, "invalid_registration"},
    {ErrorCode::kAborted, 503, "not_ready"},
    {ErrorCode::kOutOfRange, 400, "out_of_range"},
    {ErrorCode::kUnimplemented, 400, "unsupported"},
    {ErrorCode::kInternal, 500, "internal"},
    {ErrorCode::kUnavailable, 503, "not_ready"},
    {ErrorCode::kDataLoss, 500, "internal"},
    {ErrorCode::kUnauthenticated, 401, "unauthenticated"},
};

struct ReasonRow {
  std::string_view reason;
  int status;
};

// Reasons whose status is not that of their code.
constexpr ReasonRow kReasons[] = {
    {"unsupported_content_type", 415},
    {"method_not_allowed", 405},
    {"too_large", 413},
};

}  // namespace

HttpFailure FailureOf(const Error& error) {
  HttpFailure failure{500, "internal"};
  for (const CodeRow& row : kCodes) {
    if (row.code == error.code) failure = {row.status, row.reason};
  }
  if (!error.reason.empty()) failure.reason = error.reason;
  for (const ReasonRow& row : kReasons) {
    if (row.reason == failure.reason) failure.status = row.status;
  }
  return failure;
}

std::string_view StatusText(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Payload Too Large";
    case 415:
      return "Unsupported Media Type";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return status < 500 ? "Error" : "Internal Server Error";
  }
}

}  // namespace conductor::http
