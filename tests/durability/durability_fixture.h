// Simulated engines, a node on a disk that fails, and a twin on a log in memory that nobody
// disturbs: in the end both have seen the same frames, so both must have the same facts.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/memory_event_log.h"
#include "tests/durability/conductor_node.h"
#include "tests/model/memory_snapshots.h"
#include "tools/fleet.h"

namespace conductor::durability {

std::uint64_t TestSeed();  // printed; CONDUCTOR_SEED chooses it

class DurabilityTest : public ::testing::Test {
 protected:
  // Engines "e0", "e1", ... with room for so many batches in their replay rings.
  void StartEngines(std::size_t engines, std::size_t ring = 10'000);
  void StartTwin();
  void StartBoth() {
    node_.Start();
    ASSERT_TRUE(IsReady(*node_));
    StartTwin();
  }

  static std::string Name(std::size_t engine) { return "e" + std::to_string(engine); }
  Result<RegisterOutcome> Register(RunningConductor& conductor, std::size_t engine) {
    enginesim::Publisher& publisher = fleet_->publisher(engine);
    return conductor.Register(Name(engine), publisher.endpoint(), publisher.replay_endpoint());
  }
  void MustRegister(RunningConductor& conductor, std::size_t engine);
  void RegisterAtBoth(std::size_t engines);

  // The tokens of a prompt that shares nothing with any other.
  static std::vector<std::int32_t> Tokens(std::size_t prompt);
  // The engine serves the next prompt, which it has not seen. Its tokens.
  std::vector<std::int32_t> Serve(std::size_t engine);
  void ServeAll(int prompts);
  std::uint64_t Published(std::size_t engine) const {
    return fleet_->publisher(engine).stats().next_seq;
  }

  // Everything that was published is applied.
  ::testing::AssertionResult IsUpToDate(RunningConductor& conductor);
  // The node has the twin's facts.
  ::testing::AssertionResult Same();
  ::testing::AssertionResult IsReady(RunningConductor& conductor);

  Awaiter awaiter_;
  std::unique_ptr<enginesim::Fleet> fleet_;
  std::size_t prompts_ = 0;
  ConductorNode node_{awaiter_};

  MovableClock twin_clock_;
  MemoryEventLog twin_log_;
  model::MemorySnapshots twin_snapshots_;
  std::unique_ptr<RunningConductor> twin_;
};

}  // namespace conductor::durability
