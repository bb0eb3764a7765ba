// What a store's frame allocates does not grow with its objects: from its payload to the index, and
// back from the log. The same bound as for the blocks of engines.
#include <gtest/gtest.h>

#include <deque>
#include <ostream>
#include <string>

#include "src/hash/profile.h"
#include "tests/ingest/frame_costs.h"
#include "tools/store_encoder.h"
#include "tools/store_keys.h"

namespace conductor::ingest_test {
namespace {

using enginesim::KeyForm;
using enginesim::StoreEra;

constexpr char kModel[] = "a-model-whose-name-is-long";
constexpr std::size_t kFew = 64, kMany = 1'024;

// One way in which stores publish.
struct StoreDialect {
  const char* name;
  KeyForm form = KeyForm::kVllm;
  StoreEra era = StoreEra::kM3;
  const char* backend_id = "pool-a";
  const char* model_name = kModel;  // of the events; the registration's is kModel
  const char* prefix = "";
  std::uint32_t tp_ranks = 1;
  std::uint32_t layers = 1;
  PoolParts totals{};

  bool sglang() const { return form == KeyForm::kSglangMha || form == KeyForm::kSglangMla; }
};
void PrintTo(const StoreDialect& dialect, std::ostream* out) {
  *out << dialect.name;
}

const StoreDialect kDialects[] = {
    {.name = "Vllm"},
    {.name = "VllmOlderEra", .era = StoreEra::kM2},
    {.name = "VllmGroups", .form = KeyForm::kVllmHma},
    {.name = "LongNames",
     .backend_id = "mooncake-store.default.svc:50051",
     .model_name = "another-model-whose-name-is-long"},
    {.name = "PrefixedKeys", .prefix = "a-team-whose-name-is-long"},
    {.name = "Ranks", .tp_ranks = 8},
    {.name = "AllRanksAreNeeded", .tp_ranks = 8, .totals = {{"tp", 8}, {"pp", 1}, {"dcp", 1}}},
    {.name = "AscendLayers", .form = KeyForm::kAscendLayerId, .tp_ranks = 2, .layers = 16},
    {.name = "AllLayersAreNeeded",
     .form = KeyForm::kAscendLayerId,
     .tp_ranks = 2,
     .layers = 16,
     .totals = {{"layers", 16}, {"tp", 2}}},
    {.name = "SglangHalves", .form = KeyForm::kSglangMha, .tp_ranks = 2},
    {.name = "SglangTagged", .form = KeyForm::kSglangMla, .prefix = "a-tag-of-twenty-bytes"},
    {.name = "Numbers", .form = KeyForm::kNumber, .era = StoreEra::kM1},
};

class Store {
 public:
  explicit Store(const StoreDialect& dialect) : dialect_(dialect) {}

  Registration MakeRegistration() const {
    Registration registration;
    registration.instance_id = "pool";
    registration.endpoint = "tcp://10.0.0.1:5557";
    registration.type = PublisherType::kMooncake;
    registration.model_name = kModel;
    registration.block_size = 16;
    registration.pool_parts = dialect_.totals;
    registration.hash_profile = dialect_.sglang()
                                    ? *MakeHashProfile("sglang", "sha256_raw", "0", "first64_be")
                                    : *MakeHashProfile("vllm_v1", "sha256_cbor", "0", "low64_be");
    return registration;
  }

  std::string Put(std::size_t objects) {
    enginesim::StoreBatch batch;
    for (; objects > 0; --objects) batch.events.push_back(NextObject());
    return Encode(batch);
  }
  // The newest first.
  std::string Remove(std::size_t objects) {
    enginesim::StoreBatch batch;
    for (; objects > 0; --objects) {
      batch.events.push_back(Gone(stored_.back()));
      stored_.pop_back();
    }
    return Encode(batch);
  }
  // A full store: each object makes place for itself.
  std::string Replace(std::size_t objects) {
    enginesim::StoreBatch batch;
    for (; objects > 0; --objects) {
      batch.events.push_back(Gone(stored_.front()));
      stored_.pop_front();
      batch.events.push_back(NextObject());
    }
    return Encode(batch);
  }

 private:
  static enginesim::StoreEvent Gone(enginesim::StoreEvent object) {
    object.kind = enginesim::StoreEvent::Kind::kRemoved;
    return object;
  }
  enginesim::StoreEvent NextObject() {
    if (waiting_.empty()) {
      Digest digest{};
      const std::uint64_t name = ++blocks_ * 0x9e3779b97f4a7c15u;
      for (std::size_t i = 0; i < 8; ++i) {
        digest[i] = digest[24 + i] = static_cast<std::uint8_t>(name >> (8 * i));
      }
      const enginesim::KeyOptions keys{.form = dialect_.form,
                                       .model_name = kModel,
                                       .prefix = dialect_.prefix,
                                       .tp_ranks = dialect_.tp_ranks,
                                       .layers = dialect_.layers};
      for (enginesim::StoreEvent& object : enginesim::ObjectsOf(digest, keys)) {
        waiting_.push_back(std::move(object));
      }
    }
    stored_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    return stored_.back();
  }
  std::string Encode(const enginesim::StoreBatch& batch) const {
    enginesim::StoreConfig config{.model_name = dialect_.model_name, .block_size = 16};
    config.backend_id = dialect_.backend_id;
    return EncodeStoreBatch(dialect_.era, config, batch);
  }

  const StoreDialect dialect_;
  std::uint64_t blocks_ = 0;
  std::deque<enginesim::StoreEvent> waiting_, stored_;
};

class StoreAllocationsTest : public ::testing::TestWithParam<StoreDialect> {};

TEST_P(StoreAllocationsTest, DoNotGrowWithTheObjectsOfAFrame) {
  Store store(GetParam());
  IngestPath path(store.MakeRegistration());
  const StepCounts few = Least(path, [&] { return store.Put(kFew); });
  const StepCounts many = Least(path, [&] { return store.Put(kMany); });
  EXPECT_EQ(path.stream().blocks_stored, kFrames * (kFew + kMany));
  ExpectAlike(few, many, kMany);
  const StepCounts fewer = Least(path, [&] { return store.Replace(kFew / 2); });
  const StepCounts more = Least(path, [&] { return store.Replace(kMany / 2); });
  EXPECT_EQ(path.stream().blocks_removed, kFrames * (kFew + kMany) / 2);
  ExpectAlike(fewer, more, kMany);
  const StepCounts less = Least(path, [&] { return store.Remove(kFew); });
  const StepCounts most = Least(path, [&] { return store.Remove(kMany - kFew); });
  EXPECT_EQ(path.stream().blocks_removed, kFrames * ((kFew + kMany) / 2 + kMany));
  ExpectAlike(less, most, kMany);
}

INSTANTIATE_TEST_SUITE_P(Dialects, StoreAllocationsTest, ::testing::ValuesIn(kDialects),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace conductor::ingest_test
