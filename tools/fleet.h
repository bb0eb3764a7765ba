// Several simulated engines of one model in one process, with their endpoints laid out.
//
// With a base port P and R ranks, engine e publishes at P + 2*R*e + rank and replays at
// P + 2*R*e + R + rank, so ranges never overlap. Base port 0 takes whatever ports are free. Given
// endpoints (one per engine) replace the layout. The fleet owns the ZMQ context. Thread-safe as
// its engines are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/result.h"
#include "tools/engine_sim.h"

namespace conductor::enginesim {

inline constexpr std::size_t kEnginesMax = 1'024;

struct FleetOptions {
  std::size_t engines = 1;
  std::string host = "127.0.0.1";  // the address that engines bind; "*" for all
  std::uint16_t base_port = 0;
  bool replay = true;
  std::vector<std::string> publish_endpoints;  // empty, or one per engine
  std::vector<std::string> replay_endpoints;   // likewise
  Attach attach = Attach::kAuto;               // of publish_endpoints
  std::string model_name = "my-model";         // only for the description
  EngineOptions engine;                        // its endpoints are set by the layout
};

class Fleet {
 public:
  static Result<std::unique_ptr<Fleet>> Start(const FleetOptions& options);

  std::size_t size() const { return engines_.size(); }
  EngineSim& engine(std::size_t index) { return *engines_[index]; }
  const ZmqContext& context() const { return context_; }
  const FleetOptions& options() const { return options_; }

  // Everything a client needs to register the engines, as one JSON line:
  // {"control":..,"model":..,"block_size":..,"hash_profile":{..},"engines":[{"engine":0,
  //  "name":"engine-0","live":..,"replay":..,"ranks":[{"dp_rank":0,"live":..,"replay":..}]}]}
  std::string Describe(const std::string& control_endpoint);

 private:
  explicit Fleet(const FleetOptions& options) : options_(options) {}

  const FleetOptions options_;
  ZmqContext context_;  // before the engines: they close their sockets first
  std::vector<std::unique_ptr<EngineSim>> engines_;
};

}  // namespace conductor::enginesim
