// The one table from our errors to HTTP: status and reason word.
#pragma once

#include <string_view>

#include "src/result.h"

namespace conductor::http {

struct HttpFailure {
  int status = 500;
  std::string_view reason;  // the contract's word, also when the error carried none
};

HttpFailure FailureOf(const Error& error);

// "Not Found"; for the status line.
std::string_view StatusText(int status);

}  // namespace conductor::http
