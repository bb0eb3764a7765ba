// From a body's bytes to the arguments of Service: only types and ranges are judged here, the rest
// is the service's business. Errors carry the contract's reason, field and index. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http/body_format.h"
#include "src/limits.h"
#include "src/query.h"
#include "src/registration.h"
#include "src/result.h"

namespace conductor::http {

// Owns what a PromptQuery or HashQuery borrows.
struct QueryBody {
  ContextKey context;
  std::vector<std::int32_t> token_ids;
  std::vector<std::uint64_t> hashes;
  std::string cache_salt;
  std::vector<ExtraKeys> extra_keys;
  QueryOptions options;

  PromptQuery AsPromptQuery() const;
  HashQuery AsHashQuery() const;
};

enum class QueryKind { kByTokens, kByHash };

Result<QueryBody> ParseQuery(std::string_view body, BodyFormat format, QueryKind kind,
                             const Limits& limits);
Result<RegistrationRequest> ParseRegistration(std::string_view body, BodyFormat format);
Result<ServiceKey> ParseUnregistration(std::string_view body, BodyFormat format);

}  // namespace conductor::http
