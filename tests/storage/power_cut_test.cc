// Power cuts at every single operation of a scripted life (scripted_life.h), under each sync
// policy: what was acknowledged is there, once and in order, nothing stands behind a hole, and the
// log and its snapshots reach each other.
#include <gtest/gtest.h>

#include <string>

#include "tests/storage/random_record.h"
#include "tests/storage/scripted_life.h"

namespace conductor::storage {
namespace {

using Policy = ScriptedLife::Policy;

// Living once more after each place costs most of the time and tells little.
constexpr int kWholeLifeEvery = 8;

struct Kind {
  const char* name;
  Policy policy;
  bool torn;  // of what was not synced a random part stays
};

class PowerCutTest : public ::testing::TestWithParam<Kind> {
 protected:
  static bool CutAt(int n, std::uint64_t torn_seed) {
    ScriptedLife life;
    life.set_policy(GetParam().policy);
    life.fs().FailAt(FaultFs::Fault::kPowerCut, n);
    const Status run = life.Run();
    const std::string hit = life.fs().Hit();
    if (hit.empty()) {
      EXPECT_TRUE(run) << run.error().message;
      return false;
    }
    SCOPED_TRACE("cut " + std::to_string(n) + " at " + hit);
    life.fs().CutPower();
    life.Stop();
    if (torn_seed == 0) {
      life.fs().RestorePower();
    } else {
      life.fs().RestorePowerTorn(torn_seed + static_cast<std::uint64_t>(n));
    }
    const Status started = life.Start();
    EXPECT_TRUE(started) << started.error().message;
    EXPECT_EQ(life.Broken(), "");
    if (n % kWholeLifeEvery != 0) return true;
    const Status recovered = life.Recover();
    EXPECT_TRUE(recovered) << recovered.error().message;
    const Status again = life.Run();
    EXPECT_TRUE(again) << again.error().message;
    EXPECT_EQ(life.Broken(), "");
    return true;
  }
  static void CutEverywhere(std::uint64_t torn_seed) {
    const int places = TryEverywhere([torn_seed](int n) { return CutAt(n, torn_seed); });
    std::printf("%s: %d places\n", GetParam().name, places);
    EXPECT_GT(places, 50);
  }
};

TEST_P(PowerCutTest, AnywhereLosesOnlyWhatWasNotSynced) {
  CutEverywhere(GetParam().torn ? TestSeed() | 1 : 0);
}

INSTANTIATE_TEST_SUITE_P(Policies, PowerCutTest,
                         ::testing::Values(Kind{"Always", Policy::kAlways, false},
                                           Kind{"AlwaysTorn", Policy::kAlways, true},
                                           Kind{"Interval", Policy::kInterval, false},
                                           Kind{"IntervalTorn", Policy::kInterval, true},
                                           Kind{"Never", Policy::kNever, false},
                                           Kind{"NeverTorn", Policy::kNever, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace conductor::storage
