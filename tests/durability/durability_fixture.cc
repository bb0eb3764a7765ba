#include "tests/durability/durability_fixture.h"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

#include "src/hash/profile.h"

namespace conductor::durability {
namespace {

constexpr std::size_t kPromptBlocks = 3;
constexpr std::size_t kCacheBlocks = 40;  // of an engine: old prompts are evicted

}  // namespace

std::uint64_t TestSeed() {
  const char* given = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("CONDUCTOR_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

void DurabilityTest::StartEngines(std::size_t engines, std::size_t ring) {
  enginesim::FleetOptions options;
  options.engines = engines;
  options.engine.block_size = kBlockSize;
  options.engine.blocks = kCacheBlocks;
  options.engine.profile = *MakeHashProfile("vllm_v1", "sha256_cbor", "0", "low64_be");
  options.engine.publisher.buffer_steps = ring;
  auto started = enginesim::Fleet::Start(options);
  ASSERT_TRUE(started) << started.error().message;
  fleet_ = std::move(*started);
}

void DurabilityTest::StartTwin() {
  twin_ = std::make_unique<RunningConductor>(RunningConductor::QuickOptions(), twin_log_,
                                             twin_snapshots_, twin_clock_, awaiter_);
  ASSERT_TRUE(IsReady(*twin_));
}

void DurabilityTest::MustRegister(RunningConductor& conductor, std::size_t engine) {
  const auto outcome = Register(conductor, engine);
  ASSERT_TRUE(outcome) << outcome.error().message;
}

void DurabilityTest::RegisterAtBoth(std::size_t engines) {
  for (std::size_t engine = 0; engine < engines; ++engine) {
    MustRegister(*node_, engine);
    MustRegister(*twin_, engine);
  }
}

std::vector<std::int32_t> DurabilityTest::Tokens(std::size_t prompt) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < kPromptBlocks * kBlockSize; ++i) {
    tokens.push_back(static_cast<std::int32_t>(prompt * kPromptBlocks * kBlockSize + i));
  }
  return tokens;
}

std::vector<std::int32_t> DurabilityTest::Serve(std::size_t engine) {
  std::vector<std::int32_t> tokens = Tokens(prompts_++);
  const auto outcome = fleet_->engine(engine).Prompt({.tokens = tokens});
  EXPECT_TRUE(outcome) << outcome.error().message;
  return tokens;
}

void DurabilityTest::ServeAll(int prompts) {
  for (int i = 0; i < prompts; ++i) {
    for (std::size_t engine = 0; engine < fleet_->size(); ++engine) Serve(engine);
  }
}

::testing::AssertionResult DurabilityTest::IsUpToDate(RunningConductor& conductor) {
  const bool done = awaiter_.Await([&] {
    for (const ServiceView& view :
         conductor.service().ListServices().value_or(std::vector<ServiceView>{})) {
      const std::uint64_t published =
          Published(std::stoul(view.registration.instance_id.substr(1)));
      if (published != 0 && view.last_seq != published - 1) return false;
    }
    return true;
  });
  if (done) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << conductor.Describe();
}

::testing::AssertionResult DurabilityTest::Same() {
  if (auto done = IsUpToDate(*twin_); !done) return done;
  const bool same =
      awaiter_.Await([&] { return node_->Status().digest == twin_->Status().digest; });
  if (same) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "node " << node_->Describe() << "twin " << twin_->Describe();
}

::testing::AssertionResult DurabilityTest::IsReady(RunningConductor& conductor) {
  if (awaiter_.Await([&] { return conductor.service().GetReadiness().ready; })) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << conductor.Describe();
}

}  // namespace conductor::durability
