// The bodies of the contract, written from what Service answers. Shapes are exact: what `detail`
// adds comes only with detail. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "http/body_format.h"
#include "src/query.h"
#include "src/result.h"
#include "src/service.h"

namespace conductor::http {

struct BuildInfo {
  std::string version, commit;
  std::map<std::string, std::uint32_t> formats;  // name -> version of a format on disk
};

std::string WriteQueryAnswer(const QueryAnswer& answer, bool detail, BodyFormat format);
std::string WriteRegistered(const RegisterOutcome& outcome, BodyFormat format);
std::string WriteUnregistered(const std::string& removed, BodyFormat format);
std::string WriteServices(const std::vector<ServiceView>& services, bool detail, BodyFormat format);
std::string WriteGlobalView(const std::vector<ContextView>& contexts, BodyFormat format);
std::string WriteReadiness(const Readiness& readiness, BodyFormat format);
// What the page shows of log and snapshots; where the data lies is not among it.
std::string WriteStatus(const StatusView& status, BodyFormat format);
std::string WriteHealth(BodyFormat format);
std::string WriteVersion(const BuildInfo& build, BodyFormat format);
std::string WriteError(const Error& error, BodyFormat format);

// The value of Conductor-Degraded: "id, id". Bytes that a header cannot carry, and the comma and
// percent sign, are percent-encoded.
std::string DegradedHeader(const std::vector<std::string>& instances);

}  // namespace conductor::http
