// Runs under long prompts: what the random model test cannot reach with its short ones. Chains of
// full runs, divergences at every offset, evictions from either end, merging, and runs that are
// taken apart, against a model that is a set of blocks for each instance and tier.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "src/index/run_walk.h"
#include "src/index/walk.h"
#include "src/state/state_machine.h"
#include "tests/model/random_ops.h"
#include "tests/src/state/state_world.h"

namespace conductor {
namespace {

using model::RandomSource;

std::uint64_t Seed() {
  const char* text = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  std::cout << "CONDUCTOR_SEED=" << seed << "\n";
  return seed;
}

using Node = std::uint32_t;  // index into the tree; 0: the root
constexpr Tier kTiers[] = {Tier::kDevice, Tier::kCpuLocal, Tier::kDisk};

// A tree of verified blocks, the instances that store and lose them, and who has what.
class Forest {
 public:
  Forest(std::uint64_t seed, int instances) : random_(seed), tree_(1) {
    for (int i = 0; i < instances; ++i) {
      streams_.push_back(world_.Register("instance-" + std::to_string(i)));
    }
    held_.resize(streams_.size());
  }

  const PrefixIndex& index() const { return world_.state->index(); }
  StateMachine& state() { return *world_.state; }
  RandomSource& random() { return random_; }
  std::size_t instances() const { return streams_.size(); }

  // A prompt of `length` blocks: along a known one for a while, then new blocks.
  std::vector<Node> NewPrompt(std::size_t length) {
    std::vector<Node> path;
    if (!prompts_.empty() && random_.Percent(80)) {
      path = prompts_[random_.Below(prompts_.size())];
      path.resize(random_.Below(path.size() + 1));
    }
    while (path.size() < length) {
      const Node parent = path.empty() ? 0 : path.back();
      tree_.push_back({parent, random_.Next(), random_.Next()});
      path.push_back(static_cast<Node>(tree_.size() - 1));
    }
    prompts_.push_back(path);
    return path;
  }
  // New blocks below one that is known.
  std::vector<Node> NewPromptBelow(Node parent, std::size_t length) {
    std::vector<Node> path;
    for (; path.size() < length; parent = path.back()) {
      tree_.push_back({parent, random_.Next(), random_.Next()});
      path.push_back(static_cast<Node>(tree_.size() - 1));
    }
    return path;
  }
  const std::vector<Node>& OldPrompt() const { return prompts_[random_.Below(prompts_.size())]; }
  bool has_prompts() const { return !prompts_.empty(); }

  // Stores blocks [begin, end) of the path, in events of at most `piece` blocks.
  void Store(std::size_t instance, Tier tier, const std::vector<Node>& path, std::size_t begin,
             std::size_t end, std::size_t piece) {
    for (std::size_t i = begin; i < end;) {
      Stored event;
      event.tier = tier;
      event.extra_keys_on_wire = true;
      event.block_length = kTestBlockSize;
      if (i > 0) event.parent = Name(tree_[path[i - 1]].name);
      for (std::size_t n = 0; n < piece && i < end; ++n, ++i) {
        event.blocks.push_back(
            {Name(tree_[path[i]].name), tree_[path[i]].fingerprint, HashCheck::kEqual});
        ++held_[instance][{path[i], tier}];
      }
      world_.Apply(streams_[instance], std::move(event));
    }
  }
  void Remove(std::size_t instance, Tier tier, const std::vector<Node>& nodes) {
    Removed event;
    event.tier = tier;
    for (Node node : nodes) {
      event.names.push_back(Name(tree_[node].name));
      const auto held = held_[instance].find({node, tier});
      if (held != held_[instance].end() && --held->second == 0) held_[instance].erase(held);
    }
    world_.Apply(streams_[instance], std::move(event));
  }
  void Clear(std::size_t instance) {
    world_.Apply(streams_[instance], Cleared{.all_tiers = true});
    held_[instance].clear();
  }

  TierCounts Expected(std::size_t instance, const std::vector<Node>& path) const {
    std::uint64_t bounds[3] = {};
    int phase = 0;
    std::uint64_t tokens = 0;
    for (Node node : path) {
      while (phase < 3 && !held_[instance].contains({node, kTiers[phase]}))
        bounds[phase++] = tokens;
      if (phase == 3) break;
      tokens += kTestBlockSize;
    }
    while (phase < 3) bounds[phase++] = tokens;
    return {bounds[0], bounds[1], bounds[1], bounds[2]};
  }
  // Empty, or where the rows without texts are not those of the answer.
  std::string CheckRows(const FingerprintQuery& query, const QueryAnswer& answer) const {
    EpochGuard guard;
    MatchFingerprints(index(), query, &matches_);
    if (matches_.context_known() != answer.context_known) return "rows: another context";
    std::size_t i = 0;
    for (const InstanceHits& hits : answer.instances) {
      if (hits.best.disk == 0) break;
      if (i == matches_.size()) return "rows: " + hits.instance_id + " is missing";
      if (matches_.InstanceAt(i) != hits.instance_id || matches_.CountsAt(i) != hits.best) {
        return "rows: " + std::string(matches_.InstanceAt(i)) + ", expected " + hits.instance_id;
      }
      ++i;
    }
    return i == matches_.size() ? "" : "rows: too many";
  }
  // Empty, or where the answer is wrong.
  std::string Check(const std::vector<Node>& path) const {
    std::vector<std::uint64_t> fingerprints;
    for (Node node : path) fingerprints.push_back(tree_[node].fingerprint);
    const FingerprintQuery query{StateWorld::Key(), fingerprints, QueryOptions{}};
    const QueryAnswer answer = MatchFingerprints(index(), query);
    if (answer.instances.size() != instances()) return "rows are missing";
    if (std::string wrong = CheckRows(query, answer); !wrong.empty()) return wrong;
    for (const InstanceHits& hits : answer.instances) {
      const std::size_t instance = std::stoul(hits.instance_id.substr(9));
      const TierCounts expected = Expected(instance, path);
      if (hits.best == expected) continue;
      return hits.instance_id + ": " + std::to_string(hits.best.device) + " " +
             std::to_string(hits.best.cpu_local) + " " + std::to_string(hits.best.disk) +
             ", expected " + std::to_string(expected.device) + " " +
             std::to_string(expected.cpu_local) + " " + std::to_string(expected.disk);
    }
    return "";
  }
  // Empty, or where the best `count` are not the first of all.
  std::string CheckBest(const std::vector<Node>& path, std::uint32_t count,
                        std::uint64_t min_tokens) const {
    std::vector<std::uint64_t> fingerprints;
    for (Node node : path) fingerprints.push_back(tree_[node].fingerprint);
    QueryOptions options;
    options.min_tokens = min_tokens;
    FingerprintQuery query{StateWorld::Key(), fingerprints, options};
    const QueryAnswer all = MatchFingerprints(index(), query);
    for (std::size_t i = 1; i < all.instances.size(); ++i) {
      const InstanceHits &a = all.instances[i - 1], &b = all.instances[i];
      const bool in_order = std::tuple(b.best.disk, b.best.device, a.instance_id) <
                            std::tuple(a.best.disk, a.best.device, b.instance_id);
      if (!in_order) return a.instance_id + " is before " + b.instance_id;
    }
    query.options.top_k = count;
    const QueryAnswer best = MatchFingerprints(index(), query);
    if (best.instances.size() != std::min<std::size_t>(count, all.instances.size())) {
      return std::to_string(best.instances.size()) + " instances";
    }
    for (std::size_t i = 0; i < best.instances.size(); ++i) {
      const InstanceHits &is = best.instances[i], &expected = all.instances[i];
      if (is.instance_id == expected.instance_id && is.best == expected.best &&
          is.ranks == expected.ranks) {
        continue;
      }
      return is.instance_id + " " + std::to_string(is.best.disk) + ", expected " +
             expected.instance_id + " " + std::to_string(expected.best.disk);
    }
    return CheckRows(query, best);
  }
  std::uint64_t distinct() const {
    std::set<Node> nodes;
    for (const auto& held : held_) {
      for (const auto& [key, copies] : held) nodes.insert(key.first);
    }
    return nodes.size();
  }
  const std::map<std::pair<Node, Tier>, int>& held(std::size_t instance) const {
    return held_[instance];
  }

 private:
  struct Block {
    Node parent = 0;
    std::uint64_t name = 0, fingerprint = 0;
  };
  mutable RandomSource random_;
  StateWorld world_;
  std::vector<StreamId> streams_;
  std::vector<Block> tree_;
  std::vector<std::vector<Node>> prompts_;
  std::vector<std::map<std::pair<Node, Tier>, int>> held_;
  mutable RowMatches matches_;  // kept from query to query
};

std::vector<Node> Reversed(std::vector<Node> nodes) {
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

TEST(RunsTest, LongPromptsAgreeWithASetOfBlocks) {
  Forest forest(Seed(), 6);
  RandomSource& random = forest.random();
  const std::size_t pieces[] = {1, 3, 16, 64, 200};
  for (int step = 0; step < 4'000; ++step) {
    const std::size_t instance = random.Below(forest.instances());
    const Tier tier = kTiers[random.Percent(80) ? 0 : random.Below(3)];
    const std::uint64_t what = random.Below(100);
    if (what < 40 || !forest.has_prompts()) {
      const auto path = forest.NewPrompt(1 + random.Below(300));
      const std::size_t begin = random.Percent(90) ? 0 : random.Below(path.size());
      forest.Store(instance, tier, path, begin, path.size(), pieces[random.Below(5)]);
    } else if (what < 55) {
      const auto& path = forest.OldPrompt();
      if (path.empty()) continue;
      forest.Store(instance, tier, path, 0, 1 + random.Below(path.size()), pieces[random.Below(5)]);
    } else if (what < 90) {
      // The end of a prompt, last block first, as an engine evicts; or any stretch of it.
      std::vector<Node> nodes = forest.OldPrompt();
      if (nodes.empty()) continue;
      const auto from = nodes.begin() + static_cast<std::ptrdiff_t>(random.Below(nodes.size()));
      nodes.erase(nodes.begin(), from);
      if (random.Percent(30)) nodes.resize(1 + random.Below(nodes.size()));
      forest.Remove(instance, tier, random.Percent(70) ? Reversed(nodes) : nodes);
    } else if (what < 93) {
      forest.Clear(instance);
    } else {
      while (forest.state().CleanupSlice(100) && random.Percent(90)) {
      }
    }
    if (!forest.has_prompts()) continue;
    ASSERT_EQ(forest.Check(forest.OldPrompt()), "") << "step " << step;
    ASSERT_EQ(forest.index().blocks(), forest.distinct()) << "step " << step;
    if (step % 50 != 0) continue;
    ASSERT_EQ(forest.index().Inconsistency(), "") << "step " << step;
  }
  for (std::size_t i = 0; i < forest.instances(); ++i) forest.Clear(i);
  while (forest.state().CleanupSlice(1'000)) {
  }
  EXPECT_EQ(forest.index().Inconsistency(), "");
  EXPECT_EQ(forest.index().blocks(), 0u);
  EXPECT_EQ(forest.index().entries_in_memory(), 0u);
}

// Which sets the ids of blocks' states have meant so far.
class SeenStates {
 public:
  void Look(const PrefixIndex& index) {
    index.ForEachId([&](EntryId id) {
      const StateId state = index.StateOf(id);
      const HolderSet* set = index.holders().Find(state);
      if (set == nullptr) return;
      const auto [it, is_new] = serials_.try_emplace(state, set->serial);
      if (is_new || it->second == set->serial) return;
      it->second = set->serial;
      ++used_again_;
    });
  }
  std::size_t used_again() const { return used_again_; }

 private:
  std::map<StateId, std::uint64_t> serials_;
  std::size_t used_again_ = 0;
};

// Many instances share the first blocks, few the rest: large sets, small ones, and some that lost
// everything while sets still name them. `seen` looks on.
void CompareBest(int instances, int steps, int check_every, SeenStates* seen) {
  Forest forest(Seed(), instances);
  RandomSource& random = forest.random();
  const std::vector<Node> main = forest.NewPrompt(20);
  for (int step = 0; step < steps; ++step) {
    const std::size_t instance = random.Below(forest.instances());
    const std::uint64_t what = random.Below(100);
    if (what < 70) {
      std::vector<Node> path(main.begin(), main.begin() + 1 + random.Below(4) * random.Below(6));
      const auto tail = forest.NewPromptBelow(path.back(), random.Below(5));
      path.insert(path.end(), tail.begin(), tail.end());
      const Tier tier = random.Percent(97) ? Tier::kDevice : Tier::kDisk;
      forest.Store(instance, tier, path, 0, path.size(), 64);
    } else if (what < 90) {
      std::vector<Node> nodes(main.begin() + static_cast<std::ptrdiff_t>(random.Below(20)),
                              main.end());
      forest.Remove(instance, Tier::kDevice, Reversed(nodes));
    } else if (what < 95) {
      forest.Clear(instance);
    } else {
      forest.state().CleanupSlice(random.Below(400));
    }
    if (step % check_every != 0) continue;
    seen->Look(forest.index());
    const auto count = static_cast<std::uint32_t>(1 + random.Below(20));
    ASSERT_EQ(forest.CheckBest(main, count, 0), "") << "step " << step;
    ASSERT_EQ(forest.CheckBest(main, count, 4 * random.Below(20)), "") << "step " << step;
    ASSERT_EQ(forest.Check(main), "") << "step " << step;
    ASSERT_EQ(forest.index().blocks(), forest.distinct()) << "step " << step;
  }
  EXPECT_EQ(forest.index().Inconsistency(), "");
}

TEST(RunsTest, TheBestFewAreTheFirstOfAll) {
  SeenStates seen;
  CompareBest(150, 1'500, 1, &seen);
}

// Ids of holders and of sets come back again and again.
TEST(RunsTest, ThousandsOfHoldersAgreeWithSetsOfBlocks) {
  SeenStates seen;
  CompareBest(3'000, 20'000, 100, &seen);
  EXPECT_GT(seen.used_again(), 0u) << "no id of a set came back as another's";
}

// Prompts that leave a common path at every fourth block, in both orders of arrival.
TEST(RunsTest, BranchesLeaveNoMarkWhenTheyAreGone) {
  for (const bool shortest_first : {true, false}) {
    Forest forest(Seed(), 1);
    const std::vector<Node> main = forest.NewPrompt(256);
    std::vector<std::vector<Node>> branches;
    for (std::size_t shared = 4; shared < main.size(); shared += 4) {
      std::vector<Node> branch(main.begin(), main.begin() + static_cast<std::ptrdiff_t>(shared));
      const std::vector<Node> tail = forest.NewPromptBelow(main[shared - 1], 8);
      branch.insert(branch.end(), tail.begin(), tail.end());
      branches.push_back(branch);
    }
    if (!shortest_first) forest.Store(0, Tier::kDevice, main, 0, main.size(), 64);
    for (const auto& branch : branches) {
      forest.Store(0, Tier::kDevice, branch, 0, branch.size(), 64);
      ASSERT_EQ(forest.Check(branch), "");
    }
    if (shortest_first) forest.Store(0, Tier::kDevice, main, 0, main.size(), 64);
    ASSERT_EQ(forest.Check(main), "");
    EXPECT_EQ(forest.index().Inconsistency(), "");
    for (const auto& branch : branches) {
      // What was stored twice has a copy more; the main prompt's own stays.
      forest.Remove(0, Tier::kDevice, Reversed(branch));
      ASSERT_EQ(forest.Check(main), "");
    }
    while (forest.state().CleanupSlice(1'000)) {
    }
    EXPECT_EQ(forest.Check(main), "");
    EXPECT_EQ(forest.index().Inconsistency(), "");
    // 256 blocks fill four runs.
    RunTable::View run;
    int runs = 0;
    for (std::uint32_t position = 0; forest.index().runs().NextRun(&position, &run);) ++runs;
    EXPECT_EQ(runs, 4);
  }
}

// A name that comes back as another block: nobody who hashes does that, but a frame may say so.
TEST(RunsTest, AHoleThatComesBackAsAnotherBlockTakesTheRunApart) {
  StateWorld world;
  const StreamId a = world.Register("a");
  world.Store(a, NamesFrom(100, 6), std::nullopt, {1, 2, 3, 4, 5, 6}, {});
  world.Remove(a, {Name(103)});
  EXPECT_EQ(world.Longest("a", {1, 2, 3, 4, 5, 6}), 3 * kTestBlockSize);
  // The same name, below the second block now, with another content.
  world.Store(a, {Name(103)}, Name(101), {9}, {});
  EXPECT_EQ(world.state->index().Inconsistency(), "");
  EXPECT_EQ(world.Longest("a", {1, 2, 9}), 3 * kTestBlockSize);
  // What hung below the name hangs below it still.
  EXPECT_EQ(world.Longest("a", {1, 2, 9, 5, 6}), 5 * kTestBlockSize);
  EXPECT_EQ(world.Longest("a", {1, 2, 3, 4, 5, 6}), 3 * kTestBlockSize);
  EXPECT_EQ(world.state->index().blocks(), 6u);
}

// Large sets that are not nested, one of which the thread remembers.
TEST(RunsTest, WhoLacksTheStartIsNotAmongTheBestFew) {
  constexpr int kInstances = 60, kLacksIt = 30;
  StateWorld world;
  std::vector<std::string> names;
  for (int i = 0; i < kInstances; ++i) {
    names.push_back("i" + std::to_string(100 + i));
    const StreamId stream = world.Register(names.back());
    if (i != kLacksIt) world.Store(stream, {Name(101)}, std::nullopt, {1}, {});
    world.Store(stream, {Name(102)}, Name(101), {2}, {});
    if (std::abs(i - kLacksIt) < 2) world.Store(stream, {Name(103)}, Name(102), {3}, {});
  }
  std::vector<std::uint64_t> fingerprints;
  for (int block : {1, 2, 3}) fingerprints.push_back(FingerprintV1(TokensOf({block}), {}));
  QueryOptions options;
  options.top_k = 8;
  FingerprintQuery query{StateWorld::Key(), std::span(fingerprints).first(1), options};
  EXPECT_EQ(MatchFingerprints(world.state->index(), query).instances.size(), 8u);
  query.fingerprints = fingerprints;
  for (const std::uint32_t most : {8u, 0u}) {
    query.options.top_k = most;
    const QueryAnswer answer = MatchFingerprints(world.state->index(), query);
    ASSERT_EQ(answer.instances.size(), most == 0 ? kInstances : most);
    EXPECT_EQ(answer.instances[0].instance_id, names[kLacksIt - 1]);
    EXPECT_EQ(answer.instances[1].instance_id, names[kLacksIt + 1]);
    for (std::size_t i = 0; i < answer.instances.size(); ++i) {
      const InstanceHits& hits = answer.instances[i];
      const std::uint64_t blocks = hits.instance_id == names[kLacksIt] ? 0 : i < 2 ? 3 : 2;
      EXPECT_EQ(hits.best.disk, blocks * kTestBlockSize) << hits.instance_id;
    }
  }
}

// The exact chain passes slots of a run while they have its names, and ends where one has not.
TEST(RunsTest, TheChainEndsInARunWhereANameIsNotItsOwn) {
  const auto longest = [](bool forged) {
    StateWorld world;
    const StreamId a = world.Register("a");
    const BlockHasher hasher(world.profile);
    std::vector<BlockName> names;
    Digest digest = hasher.Root();
    for (int block = 1; block <= 6; ++block) {
      digest = hasher.HashTokens(digest, TokensOf({block}));
      names.push_back(Name(hasher.Project(digest)));
    }
    const StateWorld::StoreOptions name_only{HashCheck::kNotComputed, false};
    world.Store(a, {names[0]}, std::nullopt, {1}, {});
    world.Store(a, {names[1]}, names[0], {2}, name_only);
    world.Store(a, {names[5]}, names[4], {6}, name_only);
    if (forged) names[4] = Name(999);
    world.Store(a, {names[2], names[3], names[4]}, names[1], {3, 4, 5}, {});
    return world.Longest("a", {1, 2, 3, 4, 5, 6});
  };
  EXPECT_EQ(longest(false), 6 * kTestBlockSize);
  EXPECT_EQ(longest(true), 5 * kTestBlockSize);
}

// A thread remembers the first of a large set. Ids of sets, holders and rows are used again, by
// another index or by this one: what it remembers must not outlive what it is about.
TEST(RunsTest, WhatAThreadRemembersOfASetIsOfThatSetOnly) {
  constexpr int kInstances = 60;  // a large set
  for (int round = 0; round < 60; ++round) {
    const bool ascending = round % 3 == 0;
    StateWorld world;
    std::vector<std::string> names;
    for (int i = 0; i < kInstances; ++i) {
      names.push_back("i" + std::to_string(100 + (ascending ? i : kInstances - i)));
      world.Store(world.Register(names.back()), NamesFrom(100, 1), std::nullopt, {1}, {});
    }
    std::sort(names.begin(), names.end());
    const std::uint64_t fingerprint = FingerprintV1(TokensOf({1}), {});
    QueryOptions options;
    options.top_k = 3;
    for (int removed = 0; removed < 3; ++removed) {
      const QueryAnswer best =
          MatchFingerprints(world.state->index(), {StateWorld::Key(), {&fingerprint, 1}, options});
      ASSERT_EQ(best.instances.size(), 3u);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(best.instances[i].instance_id, names[i]);
        EXPECT_EQ(best.instances[i].best.disk, kTestBlockSize);
      }
      // Another one takes the place of the first: its row, and in time its holder's id.
      world.Unregister(names.front());
      while (world.state->CleanupSlice(1'000)) {
      }
      names.front() = "a" + std::to_string(removed);
      world.Store(world.Register(names.front()), NamesFrom(100, 1), std::nullopt, {1}, {});
      std::sort(names.begin(), names.end());
    }
  }
}

}  // namespace
}  // namespace conductor
