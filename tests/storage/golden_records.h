// The records in tests/golden/datadir_v1, and the worked example of docs/log_format.md.
//
// Frozen: data directories of this content exist. A new format gets a function of its own.
#pragma once

#include <vector>

#include "src/fact.h"

namespace conductor::storage {

// Every kind of fact and event; the first kGoldenTableRecords of them lie in tables, the others in
// the write-ahead file.
inline constexpr std::size_t kGoldenTableRecords = 7;
std::vector<Record> GoldenRecordsV1();

// One frame: block 0x0123456789abcdef stored at the root by stream 3, then removed again.
Record WorkedExample();

}  // namespace conductor::storage
