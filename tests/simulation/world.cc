#include "tests/simulation/world.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/check.h"
#include "src/hex.h"
#include "src/index/walk.h"
#include "src/state/image_loader.h"

namespace conductor::simulation {
namespace {

NodeOptions AnyOptions(Random& random, const Conditions& conditions) {
  NodeOptions options;
  options.tracker.drop_on_lost_events = conditions.drop_on_lost_events;
  options.tracker.disconnected_drop_ms = conditions.disconnected_drop_ms;
  constexpr LogSync kPolicies[] = {LogSync::kAlways, LogSync::kInterval, LogSync::kNever};
  options.log_sync = kPolicies[random.Below(3)];
  options.queue_items_max = 1 + random.Below(20);
  return options;
}

Error DiskError() {
  return {ErrorCode::kUnavailable, "the disk is full", "", "", -1};
}

}  // namespace

World::World(std::uint64_t seed, const Conditions& conditions)
    : seed_(seed),
      conditions_(conditions),
      random_(seed),
      faults_{conditions.honest_replies, conditions.drop_percent},
      pool_(random_) {
  const std::uint64_t count = 2 + random_.Below(3);
  for (std::uint64_t i = 0; i < count; ++i) {
    EngineTraits traits = EngineTraits::Any(random_);
    Registration registration;
    // Some are ranks of one engine.
    const bool rank = i > 0 && random_.Percent(30);
    registration.instance_id =
        rank ? sites_.back().registration.instance_id : "engine-" + std::to_string(i);
    registration.dp_rank = rank ? sites_.back().registration.dp_rank + 1 : 0;
    traits.dp_rank = registration.dp_rank;
    registration.type = PublisherType::kVllm;
    registration.model_name = "model";
    registration.block_size = kBlockSize;
    registration.hash_profile = ModelEngine::RegisteredProfile();
    registration.endpoint = "inproc://live-" + std::to_string(i);
    if (conditions.replay) registration.replay_endpoint = "inproc://replay-" + std::to_string(i);
    auto publisher =
        std::make_unique<ModelPublisher>(registration.endpoint, traits, pool_, conditions.ring_max);
    network_[registration.endpoint] = publisher.get();
    sites_.push_back({std::move(publisher), registration});
  }
  node_ = std::make_unique<ModelNode>(AnyOptions(random_, conditions_));
  node_->Boot(network_, now_ms_);
  for (const Site& site : sites_) {
    if (random_.Percent(70)) node_->Register(site.registration, network_, now_ms_);
  }
}

void World::Run(int steps) {
  for (; step_ < steps && !::testing::Test::HasFailure(); ++step_) Step();
  faults_ = {true, 0};
  Settle();
  // One more shows a loss at the very end.
  for (Site& site : sites_) site.publisher->Publish(random_, faults_);
  Settle();
  if (::testing::Test::HasFailure()) return;
  CheckDigests();
  for (const Site& site : sites_) CheckBelief(site);
  Count();
}

void World::Tally::Add(const Tally& other) {
  crashes += other.crashes;
  rebuilds += other.rebuilds;
  restarts += other.restarts;
  lives += other.lives;
  numbers_lost += other.numbers_lost;
  frames += other.frames;
  digests += other.digests;
  late += other.late;
  exact += other.exact;
  blocks_believed += other.blocks_believed;
  snapshots += other.snapshots;
  snapshots_failed += other.snapshots_failed;
  snapshots_damaged += other.snapshots_damaged;
  images_checked += other.images_checked;
}

void World::Count() {
  tally_.rebuilds = node_->rebuilds();
  tally_.snapshots = node_->snapshots().made();
  tally_.snapshots_failed = node_->snapshots().failed();
  tally_.blocks_believed = node_->state().index().blocks();
  for (const Site& site : sites_) tally_.restarts += site.publisher->restarts();
  for (const auto& [id, facts] : node_->state().streams()) {
    tally_.lives += facts.epoch_changes;
    tally_.numbers_lost += facts.numbers_lost;
    tally_.frames += facts.frames;
  }
}

std::string World::Digest() const {
  return Hex128(node_->state().Digest());
}

std::vector<std::string> World::Records() const {
  std::vector<std::string> lines;
  Seq seq = 0;
  for (const Record& record : node_->history()) {
    for (std::string& line : RenderRecord(++seq, record)) lines.push_back(std::move(line));
  }
  return lines;
}

std::string World::Where() const {
  return "CONDUCTOR_SEED=" + std::to_string(seed_) + " step " + std::to_string(step_) + " record " +
         std::to_string(node_->applied());
}

const StreamFacts* World::FactsOf(const Site& site) const {
  return node_->up() ? node_->state().FindStream(site.registration.Key()) : nullptr;
}

// --- what happens --------------------------------------------------------------------------------

void World::Step() {
  StepNode();
  for (Site& site : sites_) StepSite(site);
  now_ms_ += static_cast<std::int64_t>(random_.Below(40));
}

void World::StepNode() {
  if (!node_->up()) {
    if (random_.Permille(100)) {
      node_->Boot(network_, now_ms_);
      CheckDigests();
    }
    return;
  }
  if (random_.Permille(conditions_.crash_permille)) return Crash();
  if (random_.Permille(conditions_.disk_permille)) BreakDisk();
  if (random_.Permille(300)) node_->Sync();
  StepSnapshot();
  if (random_.Permille(600)) node_->Commit(1 + random_.Below(4), network_, now_ms_);
  if (random_.Permille(3)) CheckDigests();
}

void World::Crash() {
  CheckDigests();
  ++tally_.crashes;
  node_->Crash(/*lose_unsynced=*/random_.Percent(50));
}

// Begun at any moment, taken a few blocks at a time; its disk may fail, and what is kept may rot.
void World::StepSnapshot() {
  ModelSnapshots& snapshots = node_->snapshots();
  if (snapshots.taking() || random_.Permille(60)) {
    if (random_.Permille(conditions_.disk_permille)) {
      snapshots.store().FailNext(DiskError(), /*finish=*/random_.Percent(50));
    }
    if (random_.Permille(conditions_.snapshot_permille)) node_->StepSnapshot(1 + random_.Below(60));
  }
  // Only one of two: that a start without any is refused is another test's (recover_test.cc).
  const std::vector<Seq> seqs = snapshots.store().seqs();
  if (seqs.size() < 2 || snapshots.store().AnyDamaged()) return;
  if (!random_.Permille(conditions_.damage_permille)) return;
  snapshots.store().Damage(seqs[random_.Below(2)], /*seen=*/random_.Percent(50));
  ++tally_.snapshots_damaged;
}

// The next use of the log fails, or its handle is dead already.
void World::BreakDisk() {
  switch (random_.Below(5)) {
    case 0:
      node_->log().FailNextAppendForTest(DiskError(), /*written=*/false);
      break;
    case 1:
      node_->log().FailNextAppendForTest(DiskError(), /*written=*/true);
      break;
    case 2:
      node_->log().FailNextSyncForTest(DiskError());
      break;
    case 3:
      node_->log().FailNextReopenForTest(DiskError());
      node_->log().FailNextAppendForTest(DiskError(), /*written=*/false);
      break;
    default:
      node_->log().CrashForTest(/*lose_unsynced=*/random_.Percent(70));
      break;
  }
}

void World::StepSite(Site& site) {
  if (random_.Permille(conditions_.restart_permille)) RestartPublisher(site);
  if (random_.Permille(conditions_.register_permille)) Toggle(site);
  if (random_.Permille(conditions_.bounce_permille)) Disconnect(site);
  if (random_.Permille(conditions_.reconnect_permille)) Reconnect(site);
  if (random_.Permille(200)) Connect(site);
  if (random_.Permille(400)) site.publisher->Publish(random_, faults_);
  const StreamFacts* facts = FactsOf(site);
  if (facts != nullptr && random_.Permille(700)) {
    node_->Turn(facts->id, 1 + random_.Below(10), random_, faults_, now_ms_);
  }
}

void World::Toggle(Site& site) {
  if (!node_->up()) return;
  if (FactsOf(site) == nullptr) {
    node_->Register(site.registration, network_, now_ms_);
  } else if (random_.Percent(20)) {
    node_->Unregister(site.registration.Key(), network_, now_ms_);
  }
}

void World::Connect(Site& site) {
  const StreamFacts* facts = FactsOf(site);
  if (facts == nullptr || site.publisher->connected()) return;
  // What the old connection had queued comes first, or behind the word that the new one is there.
  const bool late = random_.Percent(conditions_.late_percent);
  while (site.publisher->HasLive() && !late) {
    node_->Turn(facts->id, 1'000, random_, faults_, now_ms_);
    node_->Commit(1'000, network_, now_ms_);
  }
  if (FactsOf(site) == nullptr) return;
  if (site.publisher->HasLive()) ++tally_.late;
  site.publisher->Connect(random_);
  node_->OnConnected(facts->id, now_ms_);
}

void World::Disconnect(Site& site) {
  const StreamFacts* facts = FactsOf(site);
  if (facts == nullptr || !site.publisher->connected()) return;
  site.publisher->Disconnect(/*loses_messages=*/random_.Percent(50));
  node_->OnDisconnected(facts->id, now_ms_);
}

void World::RestartPublisher(Site& site) {
  Disconnect(site);
  const StreamFacts* facts = FactsOf(site);
  if (facts != nullptr && !random_.Percent(conditions_.late_percent)) {
    node_->Turn(facts->id, 1'000, random_, faults_, now_ms_);
  }
  site.publisher->Restart(random_, random_.Percent(conditions_.same_work_percent));
}

// The connection breaks and is back before anything is read: what the old one had queued, perhaps
// words of a process that is gone, is read after both reports, and before what the new one says: a
// subscription keeps one queue over its reconnects, and a bound endpoint listens to one connection.
void World::Reconnect(Site& site) {
  constexpr std::uint64_t kFramesMax = 6;
  const auto publish = [&] {
    for (std::uint64_t i = random_.Below(kFramesMax); i > 0; --i) {
      site.publisher->Publish(random_, faults_);
    }
  };
  publish();
  Disconnect(site);
  if (random_.Percent(50)) {
    site.publisher->Restart(random_, random_.Percent(conditions_.same_work_percent));
  }
  publish();
  Connect(site);
  publish();
}

// Simulated minutes in which everything works: long enough for every time-out and probe.
void World::Settle() {
  constexpr int kRounds = 1'500;
  constexpr std::int64_t kRoundMs = 200;
  constexpr std::int64_t kQuietRounds = 700;  // no stream waits for longer than a probe's ceiling
  if (!node_->up()) node_->Boot(network_, now_ms_);
  int quiet = 0;
  for (int i = 0; i < kRounds && quiet < kQuietRounds && !::testing::Test::HasFailure(); ++i) {
    for (Site& site : sites_) {
      Connect(site);
      const StreamFacts* facts = FactsOf(site);
      if (facts != nullptr) node_->Turn(facts->id, 100, random_, faults_, now_ms_);
    }
    node_->Commit(100, network_, now_ms_);
    node_->Sync();
    now_ms_ += kRoundMs;
    quiet = node_->idle() ? quiet + 1 : 0;
  }
}

// --- what must be true ---------------------------------------------------------------------------

// The log applied to a new state, which is cleaned up whole at record `stop_at` and a little after
// every record from there on.
Sum128 World::DigestOfLog(std::uint64_t stop_at, std::uint64_t cleanup_budget) const {
  StateMachine state;
  Seq seq = 0;
  for (const Record& record : node_->history()) {
    state.Apply(record);
    while (++seq == stop_at && state.CleanupSlice(1'000)) {
    }
    if (seq > stop_at && cleanup_budget > 0) state.CleanupSlice(cleanup_budget);
  }
  return state.Digest();
}

// Every snapshot, with the records behind it.
void World::CheckImages(const std::string& live) {
  for (const Seq seq : node_->snapshots().store().seqs()) {
    ImageLoader loader;
    const auto read = node_->snapshots().store().ReadSnapshot(seq, loader);
    if (!read && read.error().message.starts_with("frame 1: checksum")) continue;  // damaged
    EXPECT_TRUE(read) << Where() << " snapshot " << seq << ": " << read.error().message;
    if (!read) return;
    const std::unique_ptr<StateMachine> state = loader.Take();
    for (Seq at = seq; at < node_->applied(); ++at) state->Apply(node_->history()[at]);
    EXPECT_EQ(live, Hex128(state->Digest())) << Where() << " snapshot " << seq;
    ++tally_.images_checked;
  }
}

void World::CheckDigests() {
  // A dead handle may have lost records that are applied; the next write brings them back.
  const Seq last = node_->log().LastSeq();
  if (last != node_->applied()) return;
  ++tally_.digests;
  const std::string live = Hex128(node_->state().Digest());
  EXPECT_EQ(live, Hex128(DigestOfLog(0, 0))) << Where();
  CheckImages(live);
  if (last > 0) {
    EXPECT_EQ(live, Hex128(DigestOfLog(1 + random_.Below(last), random_.Below(20)))) << Where();
  }
}

TierCounts World::Believed(const Site& site, const Prompt& prompt) const {
  PromptQuery query;
  query.context = {"default", "model", prompt.lora_name, kBlockSize};
  query.token_ids = prompt.tokens;
  query.cache_salt = prompt.salt;
  query.extra_keys = prompt.items;
  const auto answer = MatchPrompt(node_->state().index(), query);
  EXPECT_TRUE(answer) << Where();
  if (!answer) return {};
  for (const InstanceHits& hits : answer->instances) {
    if (hits.instance_id != site.registration.instance_id) continue;
    const auto rank = hits.ranks.find(site.registration.dp_rank);
    if (rank != hits.ranks.end()) return rank->second;
  }
  return {};
}

void World::CheckBelief(const Site& site) {
  SCOPED_TRACE(Where() + " " + site.publisher->name() + " era " +
               std::string(ToString(site.publisher->engine().traits().era)) +
               (site.publisher->engine().traits().right_seed ? "" : " wrong seed"));
  const StreamFacts* facts = FactsOf(site);
  if (facts == nullptr) {
    for (const auto& served : site.publisher->engine().served()) {
      EXPECT_EQ(Believed(site, *served.prompt), TierCounts{});
    }
    return;
  }
  const StreamState state = node_->tracker(facts->id).state();
  if (IsRecognised(site)) {
    ASSERT_EQ(facts->cursor, site.publisher->published() - 1);
  }
  EXPECT_EQ(state, StreamState::kLive);  // what is lost, the state says
  if (conditions_.NothingIsLost()) {
    EXPECT_TRUE(facts->lost.empty() && !facts->history_from);
  }
  const Knowledge knowledge = RequiredKnowledge(site, *facts);
  tally_.exact += knowledge == Knowledge::kExact ? 1 : 0;
  for (const auto& served : site.publisher->engine().served()) {
    CheckPrompt(site, served, knowledge);
  }
  if (knowledge == Knowledge::kNothingNew) return;
  EXPECT_EQ(facts->blocks_rejected, 0u);
  for (const Tier tier : {Tier::kDevice, Tier::kCpuLocal, Tier::kCpuShare, Tier::kDisk}) {
    const auto held = site.publisher->content().find(tier);
    const std::uint64_t truth = held == site.publisher->content().end() ? 0 : held->second.size();
    const std::uint64_t believed = node_->state().index().BlocksOf(facts->id, tier);
    EXPECT_LE(believed, truth);
    if (knowledge == Knowledge::kExact) {
      EXPECT_EQ(believed, truth);
    }
  }
}

// Without a replay endpoint a new process cannot be told from the old one when its numbers go on
// where the old one's ended, or when all it has said so far are the old one's words.
bool World::IsRecognised(const Site& site) const {
  return conditions_.replay || site.publisher->restarts() == 0;
}

World::Knowledge World::RequiredKnowledge(const Site& site, const StreamFacts& facts) const {
  if (!facts.lost.empty() || !IsRecognised(site)) return Knowledge::kNothingNew;
  if (facts.history_from) return Knowledge::kNothingGone;
  // A clear of the device ends the loss when nothing is left that we know of; the engine may have
  // more on its other tier.
  const bool cleared = facts.numbers_lost > 0 && site.publisher->engine().traits().cpu_tier;
  return cleared ? Knowledge::kNothingGone : Knowledge::kExact;
}

void World::CheckPrompt(const Site& site, const ModelEngine::Served& served, Knowledge knowledge) {
  const auto has = [&](const CacheContent& content, Tier tier, std::size_t block) {
    const auto found = content.find(tier);
    return found != content.end() && found->second.contains(served.chain[block]);
  };
  const TierCounts believed = Believed(site, *served.prompt);
  if (knowledge == Knowledge::kExact) {
    const CacheContent& content = site.publisher->content();
    std::size_t end = 0;
    while (end < served.chain.size() && has(content, Tier::kDevice, end)) ++end;
    TierCounts truth;
    truth.device = end * kBlockSize;
    while (end < served.chain.size() && has(content, Tier::kCpuLocal, end)) ++end;
    truth.cpu_local = truth.cpu_share = truth.disk = end * kBlockSize;
    EXPECT_EQ(believed.device, truth.device);
    EXPECT_EQ(believed.cpu_local, truth.cpu_local);
    EXPECT_EQ(believed.disk, truth.disk);
    return;
  }
  const CacheContent& content =
      knowledge == Knowledge::kNothingGone ? site.publisher->content() : site.publisher->ever();
  const std::size_t device = believed.device / kBlockSize;
  for (std::size_t block = 0; block < believed.disk / kBlockSize; ++block) {
    EXPECT_TRUE(has(content, block < device ? Tier::kDevice : Tier::kCpuLocal, block))
        << "block " << block << " of " << served.chain.size() << " is claimed and not there";
  }
}

}  // namespace conductor::simulation
