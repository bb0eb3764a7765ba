#include "tests/durability/conductor_node.h"

#include <gtest/gtest.h>

#include <utility>

#include "src/hex.h"
#include "src/service/recover.h"

namespace conductor::durability {

ConductorNode::~ConductorNode() {
  fs_->Heal();
  Stop();
}

void ConductorNode::Start() {
  auto opened = storage::RocksDbEventLog::Open({.data_dir = dir_.data_dir(), .env = env_.get()});
  ASSERT_TRUE(opened) << opened.error().message;
  store_ = std::move(*opened);
  ASSERT_EQ(log_.Attach(*store_), "");
  ExpectPrefix();
  running_ = std::make_unique<RunningConductor>(options, log_, *store_, clock_, awaiter_,
                                                disconnected_drop_ms);
}

void ConductorNode::ExpectPrefix() const {
  const auto recovered = RecoverState(log_, *store_, {});
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(recovered->warnings, std::vector<std::string>{});
  EXPECT_EQ(recovered->seq, log_.LastSeq());
  EXPECT_EQ(Hex128(recovered->state->Digest()), log_.DigestAt(log_.LastSeq()))
      << "records 1 to " << log_.LastSeq() << ", from snapshot " << recovered->snapshot_seq;
}

void ConductorNode::Stop() {
  running_.reset();
  store_.reset();
}

void ConductorNode::EndAtOnce(End end, std::uint64_t seed) {
  fs_->CutPower();  // nothing that the service still does reaches the disk
  Stop();
  switch (end) {
    case End::kKill:
      return fs_->RestoreAfterKill();
    case End::kPowerCut:
      return fs_->RestorePower();
    case End::kTornPowerCut:
      return fs_->RestorePowerTorn(seed);
  }
}

}  // namespace conductor::durability
