// Result<T> and Error: how every function of ours fails.
//
// No exception crosses a function we wrote. A foreign status (RocksDB, gRPC, errno) is converted
// once, in the adapter that meets it, and stops there. The codes are numbered like gRPC's so that
// the RPC border is a cast. `reason` and `field` are the stable words of the HTTP and gRPC
// contract; they are empty for errors that never leave the process.
//
//   Result<Seq> Append(...);
//   auto seq = log.Append(batch);
//   if (!seq) return tl::unexpected(seq.error());
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace conductor {

enum class ErrorCode : int {
  kOk = 0,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInternal;
  // What failed, on what, expected, got: "snapshot 42: body crc 1a2b, expected 3c4d".
  std::string message;
  // Stable word of the contract ("invalid_value", "not_ready", ...); empty inside the process.
  std::string reason;
  // The offending field of a request or configuration, as its user spells it; may be empty.
  std::string field;
  // Index inside an array field, or -1.
  long long index = -1;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> MakeError(ErrorCode code, std::string message) {
  return tl::unexpected(Error{code, std::move(message), "", "", -1});
}

// A request that breaks the contract: INVALID_ARGUMENT / HTTP 400 with its reason and field.
inline tl::unexpected<Error> InvalidField(std::string reason, std::string field,
                                          std::string message, long long index = -1) {
  return tl::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message), std::move(reason),
                              std::move(field), index});
}

}  // namespace conductor

// Returns the error of `expr` (a Status or Result) from the enclosing function.
#define CONDUCTOR_CONCAT_INNER(a, b) a##b
#define CONDUCTOR_CONCAT(a, b) CONDUCTOR_CONCAT_INNER(a, b)
#define CONDUCTOR_RETURN_IF_ERROR(expr)                        \
  do {                                                         \
    auto conductor_status_ = (expr);                           \
    if (!conductor_status_) return tl::unexpected(conductor_status_.error()); \
  } while (false)

// CONDUCTOR_ASSIGN_OR_RETURN(auto value, Compute());
// NOLINTBEGIN(bugprone-macro-parentheses): `lhs` may be a declaration.
#define CONDUCTOR_ASSIGN_OR_RETURN(lhs, expr) \
  CONDUCTOR_ASSIGN_OR_RETURN_IMPL(CONDUCTOR_CONCAT(conductor_result_, __LINE__), lhs, expr)
#define CONDUCTOR_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                    \
  if (!tmp) return tl::unexpected(tmp.error());         \
  lhs = std::move(*tmp)
// NOLINTEND(bugprone-macro-parentheses)
