// RecoveryReport: what opening the log found and what it had to give up. The daemon prints it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/types.h"

namespace conductor::storage {

struct RecoveryReport {
  bool created = false;  // the log did not exist before
  Seq first = 1;         // first > last: the log is empty
  Seq last = 0;
  // The write-ahead files that were replayed.
  std::uint64_t wal_files = 0;
  std::uint64_t wal_bytes = 0;
  // The torn end: how much of it RocksDB could not use, and its words, one line for each place.
  std::uint64_t dropped_bytes = 0;
  std::vector<std::string> drops;
  // Records that had been synced and are gone, because a file is shorter than it was.
  std::uint64_t synced_records_missing = 0;
  // Records that are gone, but whose meaning a snapshot holds: the log goes on behind it.
  std::uint64_t only_in_snapshot = 0;
};

// Whether anything is not as it was left: bytes dropped at a torn end, records that are gone, or
// only in a snapshot. Such an opening is a warning.
bool HasLoss(const RecoveryReport& report);
// One line of key=value, for the log of the daemon.
std::string ToLine(const RecoveryReport& report);

}  // namespace conductor::storage
