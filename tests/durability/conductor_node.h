// ConductorNode: a conductor on a data directory of its own, on a disk that fails on demand, that
// is started, stopped, killed and loses its power. It checks the log at each start.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "storage/rocksdb_event_log.h"
#include "tests/durability/running_conductor.h"
#include "tests/durability/tapped_log.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/temp_dir.h"

namespace conductor::durability {

class ConductorNode {
 public:
  explicit ConductorNode(Awaiter& awaiter) : awaiter_(awaiter) {}
  ~ConductorNode();

  ServiceOptions options = RunningConductor::QuickOptions();  // of the next start
  std::int64_t disconnected_drop_ms = 0;

  // Opens what is there. Expects that every acknowledged record is, and that log and snapshots make
  // exactly the state that the records up to the log's end made before.
  void Start();
  // As on SIGTERM.
  void Stop();
  enum class End { kKill, kPowerCut, kTornPowerCut };
  // At once. `seed`: of what a torn cut leaves.
  void EndAtOnce(End end, std::uint64_t seed = 0);

  bool running() const { return running_ != nullptr; }
  RunningConductor& operator*() { return *running_; }
  RunningConductor* operator->() { return running_.get(); }
  storage::FaultFs& disk() { return *fs_; }
  const TappedLog& log() const { return log_; }
  MovableClock& clock() { return clock_; }
  std::string data_dir() const { return dir_.data_dir(); }

 private:
  void ExpectPrefix() const;

  Awaiter& awaiter_;
  storage::TempDir dir_;
  const std::shared_ptr<storage::FaultFs> fs_ = std::make_shared<storage::FaultFs>();
  const std::unique_ptr<rocksdb::Env> env_ = storage::MakeFaultEnv(fs_);
  MovableClock clock_;
  std::unique_ptr<storage::RocksDbEventLog> store_;
  TappedLog log_;
  std::unique_ptr<RunningConductor> running_;
};

}  // namespace conductor::durability
