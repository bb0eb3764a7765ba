// A disk that is full, or broken, seen from the service: it says so, goes on answering, and when
// the disk is well again it goes on by itself, with nothing lost that was acknowledged or that the
// engines still have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/durability/durability_fixture.h"

namespace conductor::durability {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kEngines = 2;
constexpr int kDroppedLive = 20;

enum class Place { kWrite, kSync };

struct Sickness {
  const char* name;
  Place place;
  const char* file;  // a part of its path
  bool full;         // the disk; else an I/O error
};

rocksdb::IOStatus ErrorOf(const Sickness& sickness) {
  return sickness.full ? rocksdb::IOStatus::NoSpace("No space left on device")
                       : rocksdb::IOStatus::IOError("Input/output error");
}

const char* WordsOf(const Sickness& sickness) {
  return sickness.full ? "No space left on device" : "Input/output error";
}

class ServiceSickDiskTest : public DurabilityTest, public ::testing::WithParamInterface<Sickness> {
 protected:
  void FallSick() {
    const Sickness& sickness = GetParam();
    if (sickness.place == Place::kWrite) {
      node_.disk().FailWrites(sickness.file, ErrorOf(sickness));
    } else {
      node_.disk().FailSyncs(sickness.file, ErrorOf(sickness));
    }
  }
  // Something is written of every kind of file: the log, and the tables when what two snapshots
  // hold is dropped from it.
  void WriteEverywhere() {
    for (int i = 0; i < 3; ++i) {
      ServeAll(1);
      // That it works is not promised now.
      static_cast<void>(node_->service().CreateSnapshot());
    }
  }
  ::testing::AssertionResult HasFailed() {
    const bool failed = awaiter_.Await([&] {
      if (node_->service().GetReadiness().phase == "log_failed") return true;
      WriteEverywhere();
      return false;
    });
    if (failed) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << node_->Describe();
  }
  void ExpectSaid() {
    EXPECT_FALSE(node_->service().GetReadiness().ready);
    EXPECT_THAT(node_->Status().log_error, HasSubstr(WordsOf(GetParam())));
    EXPECT_EQ(node_->Metric("log_failed"), 1);
    EXPECT_EQ(node_->Metric("ready"), 0);
    EXPECT_GE(node_->Metric("log_failures_total"), 1);
    const auto refused = Register(*node_, kEngines);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason, "not_ready");
    EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(refused.error().message, HasSubstr(WordsOf(GetParam())));
    const auto snapshot = node_->service().CreateSnapshot();
    ASSERT_FALSE(snapshot);
    EXPECT_EQ(snapshot.error().reason, "not_ready");
  }
};

TEST_P(ServiceSickDiskTest, IsSaidAndHealsByItself) {
  StartEngines(kEngines + 1);
  StartBoth();
  RegisterAtBoth(kEngines);
  ServeAll(3);
  const std::vector<std::int32_t> known = Serve(0);
  ASSERT_TRUE(Same());
  // Not degraded any more: what a stream was asked to replay when it began has come.
  const std::string answer = "e0=12 e1=0 ";
  ASSERT_TRUE(awaiter_.Await([&] { return node_->Ask(known) == answer; })) << node_->Ask(known);

  FallSick();
  ASSERT_TRUE(HasFailed());
  ExpectSaid();
  EXPECT_EQ(node_->Ask(known), answer);
  EXPECT_EQ(node_->Instances(), (std::vector<std::string>{"e0", "e1"}));
  // Ingestion stands still: nothing is visible that the log does not have.
  const Seq applied = node_->Status().log_applied;
  for (std::size_t engine = 0; engine < kEngines; ++engine) {
    fleet_->publisher(engine).DropNext(kDroppedLive);
  }
  ServeAll(kDroppedLive + 5);
  ASSERT_TRUE(IsUpToDate(*twin_));
  EXPECT_EQ(node_->Status().log_applied, applied);
  EXPECT_EQ(node_->service().GetReadiness().phase, "log_failed");

  node_.disk().Heal();
  ASSERT_TRUE(IsReady(*node_));
  EXPECT_TRUE(Same());
  EXPECT_EQ(node_->Metric("log_failed"), 0);
  EXPECT_EQ(node_->Status().log_error, "");
  MustRegister(*node_, kEngines);
  MustRegister(*twin_, kEngines);
  EXPECT_TRUE(node_->service().CreateSnapshot());
  EXPECT_EQ(node_->Status().snapshot_error, "");

  // Acknowledged is acknowledged, also by a disk that had failed before.
  node_.EndAtOnce(ConductorNode::End::kPowerCut);
  node_.Start();
  ASSERT_TRUE(IsReady(*node_));
  EXPECT_EQ(node_->Instances(), (std::vector<std::string>{"e0", "e1", "e2"}));
  EXPECT_TRUE(Same());
}

INSTANTIATE_TEST_SUITE_P(
    Places, ServiceSickDiskTest,
    ::testing::Values(Sickness{"WalWriteFull", Place::kWrite, ".log", true},
                      Sickness{"WalWriteError", Place::kWrite, ".log", false},
                      Sickness{"WalSyncFull", Place::kSync, ".log", true},
                      Sickness{"WalSyncError", Place::kSync, ".log", false},
                      Sickness{"TableWriteFull", Place::kWrite, ".sst", true},
                      Sickness{"TableWriteError", Place::kWrite, ".sst", false},
                      Sickness{"TableSyncError", Place::kSync, ".sst", false},
                      Sickness{"ManifestWriteFull", Place::kWrite, "MANIFEST", true},
                      Sickness{"ManifestWriteError", Place::kWrite, "MANIFEST", false},
                      Sickness{"ManifestSyncError", Place::kSync, "MANIFEST", false},
                      Sickness{"EverythingFull", Place::kWrite, "", true},
                      Sickness{"EverySyncFails", Place::kSync, "", false}),
    [](const auto& info) { return info.param.name; });

class ServiceSickSnapshotTest : public ServiceSickDiskTest {};

TEST_P(ServiceSickSnapshotTest, IsSaidAndStopsNothingElse) {
  StartEngines(kEngines);
  StartBoth();
  RegisterAtBoth(kEngines);
  ServeAll(3);
  ASSERT_TRUE(node_->service().CreateSnapshot());
  const Seq good = node_->Status().snapshot_seq;
  FallSick();
  ServeAll(3);
  ASSERT_TRUE(Same());
  const auto failed = node_->service().CreateSnapshot();
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr(WordsOf(GetParam())));
  EXPECT_THAT(node_->Status().snapshot_error, HasSubstr(WordsOf(GetParam())));
  EXPECT_EQ(node_->Metric("snapshot_failures_total"), 1);
  EXPECT_EQ(node_->Status().snapshot_seq, good);
  EXPECT_TRUE(node_->service().GetReadiness().ready);
  EXPECT_EQ(node_->Metric("log_failed"), 0);
  ServeAll(3);
  EXPECT_TRUE(Same());
  // What it left behind hinders no start.
  node_.EndAtOnce(ConductorNode::End::kKill);
  node_.Start();
  ASSERT_TRUE(IsReady(*node_));
  EXPECT_TRUE(Same());

  node_.disk().Heal();
  ServeAll(1);
  ASSERT_TRUE(Same());
  ASSERT_TRUE(node_->service().CreateSnapshot());
  EXPECT_GT(node_->Status().snapshot_seq, good);
  EXPECT_EQ(node_->Status().snapshot_error, "");
}

INSTANTIATE_TEST_SUITE_P(Places, ServiceSickSnapshotTest,
                         ::testing::Values(Sickness{"WriteFull", Place::kWrite, ".snapshot", true},
                                           Sickness{"WriteError", Place::kWrite, ".snapshot",
                                                    false},
                                           Sickness{"SyncError", Place::kSync, ".snapshot", false}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace conductor::durability
