// The service's views as conductorctl shows them: JSON whose shapes are stable (those of the HTTP
// bodies where one exists), and tables for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/json_fields.h"
#include "src/query.h"
#include "src/service.h"

namespace conductor::cli {

Json ToJson(const StatusView& status);
Json ToJson(const std::vector<ServiceView>& services);
Json ToJson(const std::vector<ContextView>& contexts);
Json ToJson(const QueryAnswer& answer);
Json ToJson(const std::vector<SnapshotInfo>& snapshots);
Json ToJson(const SnapshotInfo& snapshot);

std::string ToTable(const StatusView& status);
std::string ToTable(const std::vector<ServiceView>& services);
std::string ToTable(const std::vector<ContextView>& contexts);
std::string ToTable(const QueryAnswer& answer);
std::string ToTable(const std::vector<SnapshotInfo>& snapshots);
// `inspect streams`: what the log says of each stream, rather than what the operator registered.
std::string ToStreamTable(const std::vector<ServiceView>& services);

// "tenant/model (adapter X, block size 16)".
std::string Describe(const ContextKey& key);
// "58.3 %, 5 of 10 records, 7 blocks, 5.25 M blocks/s, 1.0 s left".
std::string DescribeProgress(const Readiness& readiness);
// "1.5 s", "2 min": for people.
std::string DescribeMs(std::int64_t ms);

}  // namespace conductor::cli
