// What holds for every record that reaches the log: the log takes it, gives it back with the same
// meaning, and both have the same effect. One thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/fact.h"
#include "src/registration.h"
#include "src/state/state_machine.h"

namespace conductor::fuzz {

// The bytes of `record`; the log must take it and give back its meaning.
std::string RequireLogged(const Record& record, Record* read_back = nullptr);
// The same for a registration that a front end accepted.
void RequireLoggable(const Registration& registration);
// And for what a publisher's snapshot says.
void RequireLoggable(const std::string& epoch,
                     const std::vector<std::pair<std::optional<BlockName>, BlockName>>& links);

// One state as it is live, and one as it is rebuilt from the log.
class LivePair {
 public:
  // Logs and applies; the two digests must be equal afterwards. The record's bytes.
  std::string Apply(const Record& record);

 private:
  StateMachine live_;
  StateMachine rebuilt_;
};

}  // namespace conductor::fuzz
