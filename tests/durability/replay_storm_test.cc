// A restart of ours with a thousand publishers: all are asked what was missed, each once, and never
// more at a time than limits.replays_concurrent_max.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "tests/durability/durability_fixture.h"
#include "tests/durability/storm_server.h"

namespace conductor::durability {
namespace {

constexpr std::size_t kPublishers = 1'000;
constexpr std::size_t kDescriptorsPerPublisher = 8;  // of both sides, rounded up

std::size_t HowManyFit() {
  rlimit limit{};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  return std::min<std::size_t>(kPublishers, limit.rlim_max / kDescriptorsPerPublisher);
}

class ReplayStormTest : public DurabilityTest {
 protected:
  // Every stream has asked and applied that number.
  ::testing::AssertionResult AllAt(std::uint64_t number, std::size_t streams,
                                   const StormServer& server) {
    if (!awaiter_.Await([&] { return server.requests() >= streams; })) {
      return ::testing::AssertionFailure() << server.requests() << " of " << streams << " asked";
    }
    std::size_t there = 0;
    const bool all = awaiter_.Await([&] {
      there = 0;
      for (const ServiceView& view :
           node_->service().ListServices().value_or(std::vector<ServiceView>{})) {
        if (view.last_seq == number) ++there;
      }
      return there == streams;
    });
    if (all) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << there << " of " << streams << " are at " << number;
  }
};

TEST_F(ReplayStormTest, IsBoundedAndAsksEachOnce) {
  const std::size_t publishers = HowManyFit();
  const std::size_t together = node_.options.limits.replays_concurrent_max;
  ASSERT_GT(publishers, 3 * together);
  std::printf("%zu publishers, %zu at once\n", publishers, together);
  StormServer server;
  for (std::uint64_t number = 0; number < 3; ++number) server.Append(number);
  node_.Start();
  ASSERT_TRUE(IsReady(*node_));
  for (std::size_t i = 0; i < publishers; ++i) {
    const auto outcome =
        node_->Register("p" + std::to_string(i), server.Endpoint(i), server.ReplayEndpoint(i));
    ASSERT_TRUE(outcome) << outcome.error().message;
  }
  ASSERT_TRUE(AllAt(2, publishers, server));
  EXPECT_LE(server.open_max(), together);

  node_.EndAtOnce(ConductorNode::End::kKill);
  server.Append(3);
  server.ExpectStorm(publishers, together);
  node_.Start();
  ASSERT_TRUE(AllAt(3, publishers, server));
  EXPECT_EQ(server.open_max(), together);
  EXPECT_EQ(server.requests(), publishers);
  EXPECT_TRUE(IsReady(*node_));
}

}  // namespace
}  // namespace conductor::durability
