// A service on a log in a directory of its own, subscribed to one publisher of this process over
// TCP on loopback.
#pragma once

#include <memory>
#include <string>

#include "bench/messages.h"
#include "bench/service_rig.h"
#include "tools/publisher.h"

namespace conductor::bench {

// The members end in reverse order.
struct StreamRig {
  std::unique_ptr<ScratchDirectory> scratch;
  std::unique_ptr<enginesim::ZmqContext> context;
  std::unique_ptr<enginesim::Publisher> publisher;
  std::unique_ptr<ServiceRig> service;
};

// `directory`: where the data directory is made.
Result<StreamRig> StartStreamRig(const std::string& directory);

// Everything arrived, was verified and answers whole.
Result<std::uint64_t> CheckStream(const PromptSource& source, std::uint64_t first_prompt,
                                  const Messages& messages, ServiceRig& rig);

}  // namespace conductor::bench
