// TappedLog: an EventLog that remembers every record handed to the log below it, and which
// positions were acknowledged as on disk. So a test knows what must be there after a power cut, and
// what the state was at each position.
//
// It outlives the logs below it: one after the other, of one data directory. Thread-safe as they
// are.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/ports.h"

namespace conductor::durability {

class TappedLog : public EventLog {
 public:
  // The log of the next life; what it lost of the records before is forgotten here too. "" or what
  // is wrong with it: acknowledged records are gone, or it holds what nobody wrote.
  std::string Attach(EventLog& log);

  Result<Seq> Append(std::span<const Record> records, Durability durability) override;
  Status Sync() override;
  Result<Seq> Reopen() override;
  Status DropBelow(Seq first) override { return log_->DropBelow(first); }
  Seq FirstSeq() const override { return log_->FirstSeq(); }
  Seq LastSeq() const override { return log_->LastSeq(); }
  Status Read(Seq from, Seq to,
              const std::function<Status(Seq, const Record&)>& visit) const override {
    return log_->Read(from, to, visit);
  }

  Seq appended() const;
  // The digest of the state that the records up to `seq` make, from the first one on.
  std::string DigestAt(Seq seq) const;

 private:
  EventLog* log_ = nullptr;
  mutable std::mutex mutex_;  // guards everything below
  std::vector<Record> history_;
  std::vector<Record> unclear_;  // of an append that failed: they may be there
  Seq acknowledged_ = 0;         // Invariant: acknowledged_ <= history_.size().
};

}  // namespace conductor::durability
