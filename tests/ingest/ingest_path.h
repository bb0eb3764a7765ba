// The path of a frame without its threads and sockets: payload -> translator -> queue -> log writer
// over RocksDB -> state, and the record read back as a restart would; what each step allocates.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "replay/digest_cache.h"
#include "replay/translator.h"
#include "src/service/apply_queue.h"
#include "src/service/log_writer.h"
#include "src/state/state_machine.h"
#include "storage/rocksdb_event_log.h"

namespace conductor::ingest_test {

// Calls of operator new, by step.
struct StepCounts {
  std::size_t translate = 0;  // decode, judge, hash, fingerprint
  std::size_t log = 0;        // queue, encode, append, keep
  std::size_t read = 0;       // encode and decode again
  std::size_t apply = 0;
  std::size_t record_bytes = 0;  // of the log's record
};

class IngestPath : public DigestSource {
 public:
  explicit IngestPath(Registration registration);
  ~IngestPath() override;

  StepCounts Take(std::string payload);
  const StreamFacts& stream() const { return *state_.FindStream(1); }

  std::optional<Digest> FindDigest(StreamId, const std::string&, const BlockName&) const override {
    return std::nullopt;
  }

 private:
  std::filesystem::path directory_;
  std::unique_ptr<storage::RocksDbEventLog> log_;
  ApplyQueue queue_{Limits{}};
  std::unique_ptr<LogWriter> writer_;
  StateMachine state_;
  DigestCache cache_;
  std::unique_ptr<Translator> translator_;
  std::uint64_t number_ = 0;
};

}  // namespace conductor::ingest_test
