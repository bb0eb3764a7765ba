// append_forever DIRECTORY: opens the log, then appends records without syncing until it is
// killed. Each position goes to stdout after Append has returned. Record N is Lost{1, N, N}.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "storage/rocksdb_event_log.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto log = conductor::storage::RocksDbEventLog::Open({.data_dir = argv[1]});
  if (!log) {
    std::fprintf(stderr, "%s\n", log.error().message.c_str());
    return 1;
  }
  for (;;) {
    const conductor::Seq next = (*log)->LastSeq() + 1;
    const conductor::Record record{{conductor::Lost{1, next, next}}};
    if (!(*log)->Append({&record, 1}, conductor::Durability::kBuffered)) return 1;
    const std::string line = std::to_string(next) + "\n";
    // A closed pipe ends us too: nobody is left to kill us.
    if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      return 1;
    }
  }
}
