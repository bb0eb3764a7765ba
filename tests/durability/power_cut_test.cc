// Power cuts and kills at random moments of a busy service, under each sync policy, snapshots being
// taken meanwhile: what was acknowledged is there, once and in order; the state is a prefix of
// history; the streams heal from the last durable cursor by replay.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/durability/durability_fixture.h"

namespace conductor::durability {
namespace {

using End = ConductorNode::End;

constexpr int kLives = 8;
constexpr std::size_t kEngines = 8;
constexpr int kStepsMax = 60;
constexpr int kDiskOperationsMax = 120;  // until the cut
constexpr int kPromptsWhileDown = 3;

struct Kind {
  const char* name;
  LogSync policy;
  End end;
};

class ServicePowerCutTest : public DurabilityTest, public ::testing::WithParamInterface<Kind> {
 protected:
  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }

  void Step() {
    const std::uint64_t choice = Below(16);
    if (choice == 0 && attempted_.size() < kEngines) {
      const std::size_t engine = attempted_.size();
      attempted_.push_back(Name(engine));
      MustRegister(*twin_, engine);
      const auto outcome = Register(*node_, engine);
      if (outcome) acknowledged_.push_back(Name(engine));
      return;
    }
    const std::size_t engine = Below(kEngines);
    if (choice == 2) fleet_->engine(engine).Clear();
    const std::uint64_t dropped = choice == 1 ? 1 + Below(3) : 0;
    fleet_->publisher(engine).DropNext(dropped);
    // The one that is not dropped shows that the others are missing.
    for (std::uint64_t i = 0; i <= dropped; ++i) Serve(engine);
  }
  // Until something of the disk's life is the last of this one.
  void LiveUntilTheCut() {
    node_.disk().FailAt(storage::FaultFs::Fault::kPowerCut,
                        static_cast<int>(Below(kDiskOperationsMax)));
    for (int i = 0; i < kStepsMax && node_.disk().Hit().empty(); ++i) Step();
    std::printf("cut at %s\n", node_.disk().Hit().c_str());
  }
  // Who was acknowledged is there once and in order; of the others at most the one under way.
  void ExpectRegistrations() {
    std::vector<std::string> there = node_->Instances();
    if (there.size() > acknowledged_.size()) {
      ASSERT_EQ(there.back(), attempted_.back());
      there.pop_back();
    }
    ASSERT_EQ(there, acknowledged_);
    for (std::size_t engine = 0; engine < attempted_.size(); ++engine) {
      const auto outcome = Register(*node_, engine);
      ASSERT_TRUE(outcome) << outcome.error().message;
      if (engine < acknowledged_.size()) {
        EXPECT_TRUE(outcome->already);
      }
    }
    acknowledged_ = attempted_;
  }

  std::mt19937_64 random_{TestSeed()};
  std::vector<std::string> attempted_, acknowledged_;
};

TEST_P(ServicePowerCutTest, AtRandomMomentsLosesNothingForGood) {
  StartEngines(kEngines);
  node_.options.log_sync = GetParam().policy;
  node_.options.snapshot_interval_events = 10;
  StartBoth();
  for (int life = 0; life < kLives && !HasFatalFailure(); ++life) {
    SCOPED_TRACE("life " + std::to_string(life));
    ASSERT_TRUE(IsReady(*node_));
    ExpectRegistrations();
    ASSERT_TRUE(Same());
    LiveUntilTheCut();
    node_.EndAtOnce(GetParam().end, random_());
    for (int i = 0; i < kPromptsWhileDown; ++i) Serve(Below(kEngines));
    node_.Start();
  }
  ASSERT_TRUE(IsReady(*node_));
  ExpectRegistrations();
  EXPECT_TRUE(Same());
  for (std::size_t engine = 0; engine < acknowledged_.size(); ++engine) {
    EXPECT_EQ(node_->View(Name(engine))->lost_ranges.size(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, ServicePowerCutTest,
                         ::testing::Values(Kind{"Always", LogSync::kAlways, End::kPowerCut},
                                           Kind{"AlwaysTorn", LogSync::kAlways, End::kTornPowerCut},
                                           Kind{"Interval", LogSync::kInterval, End::kPowerCut},
                                           Kind{"IntervalTorn", LogSync::kInterval,
                                                End::kTornPowerCut},
                                           Kind{"Never", LogSync::kNever, End::kPowerCut},
                                           Kind{"NeverTorn", LogSync::kNever, End::kTornPowerCut},
                                           Kind{"Killed", LogSync::kNever, End::kKill}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace conductor::durability
