// conductorctl as a function, and a small data directory for it to look at.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/ctl.h"
#include "storage/rocksdb_event_log.h"

namespace conductor::cli {

struct Outcome {
  ExitCode code = ExitCode::kOk;
  std::string out, err;
};

inline Outcome RunArguments(std::vector<std::string> arguments,
                            const std::string& stdin_text = "") {
  std::vector<const char*> argv = {"conductorctl"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::istringstream in(stdin_text);
  std::ostringstream out, err;
  const ExitCode code = RunCtl(static_cast<int>(argv.size()), argv.data(), {in, out, err});
  return {code, out.str(), err.str()};
}

// A registration, stream 1.
inline Record RegistrationRecord() {
  Registration registration;
  registration.instance_id = "vllm-0";
  registration.endpoint = "tcp://127.0.0.1:5557";
  registration.model_name = "m";
  registration.block_size = 4;
  return {{Registered{registration, UnverifiedBlocks::kContent}}};
}

// A frame of that stream which stores one block.
inline Record FrameRecord(std::uint64_t number, std::uint64_t name) {
  Stored stored;
  stored.block_length = 4;
  stored.extra_keys_on_wire = true;
  stored.blocks = {{{name, ""}, name * 9, HashCheck::kEqual}};
  Frame frame;
  frame.stream = 1;
  frame.number = number;
  frame.events = {stored};
  return {{frame}};
}

// A log with one registration, which holds one block of name 11.
inline void WriteLog(const std::string& data_dir) {
  storage::RocksDbEventLogOptions options;
  options.data_dir = data_dir;
  auto log = storage::RocksDbEventLog::Open(std::move(options));
  ASSERT_TRUE(log.has_value()) << log.error().message;
  const std::vector<Record> records = {RegistrationRecord(), FrameRecord(0, 11)};
  ASSERT_TRUE((*log)->Append(records, Durability::kSynced).has_value());
}

}  // namespace conductor::cli
