// A whole simulated world of one seed: a few publishers, the channels between, one Conductor, and
// what happens to them. Checked while it runs: the live digest equals that of the log replayed from
// its first record, with other cleanups, and that of every snapshot with the log behind it. Checked
// at the end, after everything has healed: what Conductor believes of every publisher against the
// truth.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/model_node.h"

namespace conductor::simulation {

struct Conditions {
  bool replay = true;
  bool honest_replies = true;
  std::size_t ring_max = 1'000'000;
  std::uint64_t drop_percent = 10;
  // Of one step, in thousandths; per publisher where it is about one.
  std::uint64_t restart_permille = 3, same_work_percent = 30;
  std::uint64_t bounce_permille = 5, register_permille = 3;
  std::uint64_t crash_permille = 4, disk_permille = 4;
  std::uint64_t snapshot_permille = 300, damage_permille = 2;
  // Breaks and is back before anything is read; and of all reconnects, those behind which frames of
  // the old connection are still to come.
  std::uint64_t reconnect_permille = 4, late_percent = 70;
  bool drop_on_lost_events = false;
  std::int64_t disconnected_drop_ms = 0;

  bool NothingIsLost() const { return replay && honest_replies && ring_max >= 1'000'000; }
};

class World {
 public:
  World(std::uint64_t seed, const Conditions& conditions);
  // Stops at the first failed expectation.
  void Run(int steps);

  // What has happened and what was checked: a run in which nothing happens shows nothing.
  struct Tally {
    std::uint64_t crashes = 0, rebuilds = 0, restarts = 0, lives = 0, numbers_lost = 0;
    std::uint64_t frames = 0, digests = 0, exact = 0, blocks_believed = 0;
    std::uint64_t snapshots = 0, snapshots_failed = 0, snapshots_damaged = 0, images_checked = 0;
    std::uint64_t late = 0;  // reconnects with frames of the old connection still to come
    void Add(const Tally& other);
    bool operator==(const Tally&) const = default;
  };
  const Tally& tally() const { return tally_; }
  // After Run: of the state, and every record that is applied, as text.
  std::string Digest() const;
  std::vector<std::string> Records() const;

 private:
  struct Site {
    std::unique_ptr<ModelPublisher> publisher;
    Registration registration;
  };

  // world.cc
  void Step();
  void StepSite(Site& site);
  void StepNode();
  void Crash();
  void BreakDisk();
  void StepSnapshot();
  void Connect(Site& site);
  void Disconnect(Site& site);
  void RestartPublisher(Site& site);
  void Reconnect(Site& site);
  void Toggle(Site& site);
  void Settle();
  const StreamFacts* FactsOf(const Site& site) const;
  void CheckImages(const std::string& live);
  Sum128 DigestOfLog(std::uint64_t stop_at, std::uint64_t cleanup_budget) const;
  void CheckDigests();
  void Count();
  void CheckBelief(const Site& site);
  // How well Conductor has to know what a publisher holds.
  enum class Knowledge {
    kExact,        // all of it, and nothing else
    kNothingGone,  // nothing that is not there now; something may be missing
    kNothingNew,   // nothing that was never there
  };
  bool IsRecognised(const Site& site) const;
  Knowledge RequiredKnowledge(const Site& site, const StreamFacts& facts) const;
  void CheckPrompt(const Site& site, const ModelEngine::Served& served, Knowledge knowledge);
  TierCounts Believed(const Site& site, const Prompt& prompt) const;
  std::string Where() const;

  const std::uint64_t seed_;
  const Conditions conditions_;
  Random random_;
  PublisherFaults faults_;
  const PromptPool pool_;
  std::vector<Site> sites_;
  ModelNode::Network network_;
  std::unique_ptr<ModelNode> node_;
  std::int64_t now_ms_ = 0;
  int step_ = 0;
  Tally tally_;
};

}  // namespace conductor::simulation
