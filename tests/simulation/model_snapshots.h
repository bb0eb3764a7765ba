// The node's snapshots, driven by hand: begun, encoded a few blocks at a time between records,
// written, and counted only when the log is synced. Two are kept, and the log behind the older one.
// What is being taken dies with the process; what is kept does not, but may be damaged.
#pragma once

#include <memory>

#include "src/memory_event_log.h"
#include "src/service/log_writer.h"
#include "src/state/image_cut.h"
#include "tests/model/memory_snapshots.h"

namespace conductor::simulation {

class ModelSnapshots {
 public:
  // Some work for a snapshot of the state after record `seq`; a new one when there is none.
  void Step(StateMachine& state, Seq seq, std::size_t blocks, LogWriter& writer,
            MemoryEventLog& log);
  // The state goes, with its process or to be rebuilt.
  void GiveUp();
  bool taking() const { return cut_ != nullptr; }

  model::MemorySnapshots& store() { return store_; }
  const model::MemorySnapshots& store() const { return store_; }
  std::uint64_t made() const { return made_; }
  std::uint64_t failed() const { return failed_; }

 private:
  bool Finish(LogWriter& writer, MemoryEventLog& log);

  model::MemorySnapshots store_;
  std::unique_ptr<ImageEncoder> encoder_;
  std::unique_ptr<ImageFile> file_;
  std::unique_ptr<ImageCut> cut_;
  Seq seq_ = 0;
  std::uint64_t made_ = 0, failed_ = 0;
};

}  // namespace conductor::simulation
