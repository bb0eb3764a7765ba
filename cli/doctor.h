// Doctor: why are there no hits? Reads what the service says of itself and names what is wrong in
// words an operator can act on. Every code below is stable; the texts are for people. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/query.h"
#include "src/service.h"

namespace conductor::cli {

enum class Severity : std::uint8_t {
  kInfo,     // worth knowing, costs no hits
  kWarning,  // may cost some hits
  kProblem,  // costs hits, or will
};
std::string_view ToString(Severity severity);

struct Finding {
  Severity severity = Severity::kInfo;
  std::string code;     // "block_size_mismatch"
  std::string subject;  // "vllm-0|default|0" or a context; empty: the service
  std::string text;
};

// A query that should have found something.
struct Probe {
  ContextKey context;
  bool block_size_given = false;
  std::optional<std::uint64_t> token_count;  // none: only the context was asked about
  std::optional<QueryAnswer> answer;         // with detail; none when there are no tokens
};

struct DoctorInput {
  StatusView status;
  std::vector<ServiceView> services;
  std::vector<ContextView> contexts;
  std::optional<Probe> probe;
};

// The worst first.
std::vector<Finding> Diagnose(const DoctorInput& input);

}  // namespace conductor::cli
