// One writer, several readers, no lock: what readers may see while the index changes under them.
//
// The writer applies random records (forged ones too) and cleans up behind itself. One publisher,
// `stable`, stored a few prompts in the beginning and is never touched again: whatever else comes
// and goes, every answer finds all of them. All other rows must be well-formed. Bounded work, no
// sleeps; the point of it is the build with the thread sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "src/index/walk.h"
#include "src/state/state_machine.h"
#include "tests/model/random_ops.h"
#include "tests/model/real_names.h"

namespace conductor {
namespace {

using model::RandomPrompt;
using model::RealNames;

constexpr int kReaders = 3;
constexpr std::size_t kRecords = 3'000;
constexpr std::size_t kPrompts = 64;

std::uint64_t Seed() {
  const char* text = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  std::cout << "CONDUCTOR_SEED=" << seed << "\n";
  return seed;
}

PromptQuery ToQuery(const RandomPrompt& prompt) {
  PromptQuery query;
  query.context = prompt.spec.context;
  query.token_ids = prompt.token_ids;
  query.cache_salt = prompt.cache_salt;
  for (const std::string& item : prompt.items) {
    query.extra_keys.push_back(RealNames::ItemKeys(model::BlockContent{{}, item}));
  }
  return query;
}

bool IsBase(const RandomPrompt& prompt) {
  return prompt.spec.context.model_name == "vllm-model" &&
         prompt.spec.context.tenant_id == "default";
}

Frame StoreAll(StreamId stream, const std::vector<RandomPrompt>& prompts) {
  Frame frame;
  frame.stream = stream;
  for (const RandomPrompt& prompt : prompts) {
    if (!IsBase(prompt)) continue;
    Stored event;
    event.lora_name = prompt.spec.context.lora_name;
    event.extra_keys_on_wire = true;
    event.block_length = prompt.spec.context.block_size;
    event.salt = prompt.spec.salt;
    for (const model::PromptPosition& p : prompt.spec.positions) {
      event.blocks.push_back({BlockName{p.exact_name, {}}, p.fingerprint, HashCheck::kEqual});
    }
    frame.events.push_back(event);
  }
  return frame;
}

// The generator counts streams by itself and knows nothing of `stable`.
void MakeRoomFor(StreamId stable, Record* record) {
  for (Fact& fact : record->facts) {
    std::visit(
        [&](auto& f) {
          if constexpr (requires { f.stream; }) {
            if (f.stream >= stable) ++f.stream;
          }
        },
        fact);
  }
}

// Empty, or what is wrong with the answer.
std::string Broken(const RandomPrompt& prompt, const QueryAnswer& answer) {
  const std::uint64_t tokens = prompt.token_ids.size();
  const std::uint64_t block = prompt.spec.context.block_size;
  bool stable = false;
  for (const InstanceHits& instance : answer.instances) {
    for (const auto& [rank, c] : instance.ranks) {
      const std::string where = instance.instance_id + "/" + std::to_string(rank);
      if (c.device > c.cpu_local || c.cpu_local > c.cpu_share || c.cpu_share > c.disk) {
        return where + ": boundaries fall";
      }
      for (std::uint64_t boundary : {c.device, c.cpu_local, c.cpu_share, c.disk}) {
        if (boundary > tokens || (boundary % block != 0 && boundary != tokens)) {
          return where + ": boundary " + std::to_string(boundary);
        }
      }
      if (instance.instance_id != "stable") continue;
      stable = true;
      if (c.device != tokens) return "stable: " + std::to_string(c.device) + " tokens";
    }
  }
  return IsBase(prompt) && !stable ? "stable: no row" : "";
}

TEST(IndexConcurrencyTest, ReadersSeeWellFormedAnswersBesideTheWriter) {
  const RealNames names;
  model::RandomOpsOptions options;
  options.pools = false;
  options.vllm_profile = RealNames::Profile(HashStrategy::kVllmV1, "0");
  options.sglang_profile = RealNames::Profile(HashStrategy::kSglang, "0");
  model::RandomOps ops(Seed(), names, options);

  StateMachine state;
  const Record registrations = ops.NextRecord();
  state.Apply(registrations);
  const StreamId stable = state.next_stream_id();
  Registered registered = std::get<Registered>(registrations.facts.front());
  registered.registration.instance_id = "stable";
  registered.registration.endpoint = "tcp://stable:5557";

  std::vector<RandomPrompt> prompts;
  std::vector<model::HashSpec> hashes;
  for (std::size_t i = 0; i < kPrompts; ++i) {
    prompts.push_back(ops.NextPrompt());
    hashes.push_back(ops.NextHashes());
  }
  state.Apply(Record{{registered, StoreAll(stable, prompts)}});
  std::vector<Record> records;
  for (std::size_t i = 0; i < kRecords; ++i) {
    records.push_back(ops.NextRecord());
    MakeRoomFor(stable, &records.back());
  }

  std::atomic<bool> done{false};
  std::atomic<int> ready{0};
  std::vector<std::string> broken(kReaders);
  std::vector<std::uint64_t> answers(kReaders);
  const PrefixIndex& index = state.index();
  std::vector<std::thread> readers;
  for (std::size_t r = 0; r < kReaders; ++r) {
    readers.emplace_back([&, r] {
      for (std::size_t i = r; broken[r].empty() && !done.load(std::memory_order_acquire); ++i) {
        const RandomPrompt& prompt = prompts[i % kPrompts];
        const auto answer = MatchPrompt(index, ToQuery(prompt));
        broken[r] = answer ? Broken(prompt, *answer) : answer.error().message;
        const model::HashSpec& spec = hashes[i % kPrompts];
        HashQuery by_hash;
        by_hash.context = spec.context;
        by_hash.hashes = spec.hashes;
        for (const InstanceHits& hits : MatchHashes(index, by_hash).instances) {
          if (hits.best.device > hits.best.disk) broken[r] = "by hash: boundaries fall";
        }
        if (++answers[r] == 1) ready.fetch_add(1);
      }
      if (answers[r] == 0) ready.fetch_add(1);
    });
  }
  while (ready.load() < kReaders) std::this_thread::yield();
  for (const Record& record : records) {
    state.Apply(record);
    state.CleanupSlice(8);
  }
  done.store(true, std::memory_order_release);
  for (std::thread& reader : readers) reader.join();
  for (std::size_t r = 0; r < kReaders; ++r) {
    EXPECT_EQ(broken[r], "") << "reader " << r << " after " << answers[r] << " answers";
  }
  for (const RandomPrompt& prompt : prompts) {
    const auto answer = MatchPrompt(index, ToQuery(prompt));
    ASSERT_TRUE(answer);
    EXPECT_EQ(Broken(prompt, *answer), "");
  }
}

}  // namespace
}  // namespace conductor
