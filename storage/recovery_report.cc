#include "storage/recovery_report.h"

namespace conductor::storage {

bool HasLoss(const RecoveryReport& report) {
  return report.dropped_bytes != 0 || !report.drops.empty() || report.synced_records_missing != 0 ||
         report.only_in_snapshot != 0;
}

std::string ToLine(const RecoveryReport& report) {
  std::string line = report.created ? "log created" : "log recovered";
  const auto add = [&line](const char* key, std::uint64_t value) {
    line += std::string(" ") + key + "=" + std::to_string(value);
  };
  add("first", report.first);
  add("last", report.last);
  add("wal_files", report.wal_files);
  add("wal_bytes", report.wal_bytes);
  add("dropped_bytes", report.dropped_bytes);
  add("synced_records_missing", report.synced_records_missing);
  if (report.only_in_snapshot != 0) add("only_in_snapshot", report.only_in_snapshot);
  for (const std::string& drop : report.drops) line += " dropped=\"" + drop + "\"";
  return line;
}

}  // namespace conductor::storage
