// Several simulated engines of one model, or several stores, in one process, with their endpoints
// laid out. A store takes an engine's place: it has one rank and no replay.
//
// With a base port P and R ranks, engine e publishes at P + 2*R*e + rank and replays at
// P + 2*R*e + R + rank, so ranges never overlap. Base port 0 takes whatever ports are free. Given
// endpoints (one per engine) replace the layout. The fleet owns the ZMQ context. Thread-safe as
// its engines are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"
#include "tools/engine_sim.h"
#include "tools/store_sim.h"

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
  PublisherType type = PublisherType::kVllm;   // of all of them; kMooncake: stores
  EngineOptions engine;                        // its endpoints are set by the layout
  StoreOptions store;                          // likewise
  bool show_removed = false;                   // replies to prompts name the evicted blocks
};

class Fleet {
 public:
  static Result<std::unique_ptr<Fleet>> Start(const FleetOptions& options);

  std::size_t size() const { return options_.engines; }
  bool HasStores() const { return options_.type == PublisherType::kMooncake; }
  std::uint32_t ranks() const { return HasStores() ? 1 : options_.engine.dp_ranks; }
  // One of the two, whichever HasStores says.
  EngineSim& engine(std::size_t index) { return *engines_[index]; }
  StoreSim& store(std::size_t index) { return *stores_[index]; }
  Publisher& publisher(std::size_t index, std::uint32_t rank = 0) {
    return HasStores() ? stores_[index]->publisher() : engines_[index]->publisher(rank);
  }
  const ZmqContext& context() const { return context_; }
  const FleetOptions& options() const { return options_; }

  // Everything a client needs to register the engines, as one JSON line:
  // {"control":..,"type":"vLLM","model":..,"block_size":..,"hash_profile":{..},
  //  "engines":[{"engine":0,"name":"engine-0","live":..,"replay":..,
  //              "ranks":[{"dp_rank":0,"live":..,"replay":..}]}]}
  std::string Describe(const std::string& control_endpoint);

 private:
  explicit Fleet(const FleetOptions& options) : options_(options) {}

  std::string_view eraWord() const;

  const FleetOptions options_;
  ZmqContext context_;  // before the engines: they close their sockets first
  std::vector<std::unique_ptr<EngineSim>> engines_;
  std::vector<std::unique_ptr<StoreSim>> stores_;
};

}  // namespace conductor::enginesim
