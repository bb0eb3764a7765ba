// What a store's frame allocates for each object, from its payload to the index. Decoding costs
// nothing; what is counted here are the facts, each with texts of its own, and the table of parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/hash/profile.h"
#include "tests/ingest/ingest_path.h"
#include "tools/store_encoder.h"
#include "tools/store_keys.h"

namespace conductor::ingest_test {
namespace {

constexpr std::size_t kFrames = 8;
// Apply's tables grow by chunks, and what a block leaves behind is freed in chunks.
constexpr std::size_t kBlocksPerChunk = 16;
constexpr std::size_t kFew = 64, kMany = 1'024;

class Pool {
 public:
  static Registration MakeRegistration() {
    Registration registration;
    registration.instance_id = "pool";
    registration.endpoint = "tcp://10.0.0.1:5557";
    registration.type = PublisherType::kMooncake;
    registration.model_name = "a-model-whose-name-is-long";
    registration.block_size = 16;
    registration.hash_profile = *MakeHashProfile("vllm_v1", "sha256_cbor", "0", "low64_be");
    return registration;
  }

  // `objects` of as many blocks.
  std::string Store(std::size_t objects) {
    enginesim::StoreBatch batch;
    for (; objects > 0; --objects) {
      Digest digest{};
      for (std::size_t i = 0; i < 8; ++i) {
        digest[24 + i] = static_cast<std::uint8_t>(stored_ * 0x9e3779b97f4a7c15u >> (8 * i));
      }
      ++stored_;
      const enginesim::KeyOptions keys{.model_name = "a-model-whose-name-is-long"};
      for (enginesim::StoreEvent& object : enginesim::ObjectsOf(digest, keys)) {
        objects_.push_back(object);
        batch.events.push_back(std::move(object));
      }
    }
    return Encode(batch);
  }
  std::string Remove(std::size_t objects) {
    enginesim::StoreBatch batch;
    for (; objects > 0; --objects) {
      batch.events.push_back(objects_.back());
      batch.events.back().kind = enginesim::StoreEvent::Kind::kRemoved;
      objects_.pop_back();
    }
    return Encode(batch);
  }

 private:
  static std::string Encode(const enginesim::StoreBatch& batch) {
    const enginesim::StoreConfig config{.model_name = "a-model-whose-name-is-long",
                                        .block_size = 16};
    return EncodeStoreBatch(enginesim::StoreEra::kM3, config, batch);
  }

  std::uint64_t stored_ = 0;
  std::vector<enginesim::StoreEvent> objects_;
};

template <typename MakePayload>
StepCounts Least(IngestPath& path, const MakePayload& make_payload) {
  StepCounts least = path.Take(make_payload());
  for (std::size_t i = 1; i < kFrames; ++i) {
    const StepCounts counts = path.Take(make_payload());
    least.translate = std::min(least.translate, counts.translate);
    least.log = std::min(least.log, counts.log);
    least.read = std::min(least.read, counts.read);
    least.apply = std::min(least.apply, counts.apply);
  }
  return least;
}

void ExpectPerObject(const StepCounts& few, const StepCounts& many, std::size_t in_apply) {
  constexpr std::size_t kSlack = 8;  // lists that grow by doubling
  constexpr std::size_t kMore = kMany - kFew;
  EXPECT_LE(many.translate, few.translate + kSlack + kMore);  // the part's text
  EXPECT_LE(many.log, few.log + kSlack + kMore);              // the copy that is kept until synced
  EXPECT_LE(many.read, few.read + kSlack + kMore);
  EXPECT_LE(many.apply, few.apply + kSlack + in_apply * kMore + kMany / kBlocksPerChunk);
}

TEST(StoreAllocationsTest, OfAnObjectAreFew) {
  Pool pool;
  IngestPath path(Pool::MakeRegistration());
  const StepCounts few = Least(path, [&] { return pool.Store(kFew); });
  const StepCounts many = Least(path, [&] { return pool.Store(kMany); });
  EXPECT_EQ(path.stream().blocks_stored, kFrames * (kFew + kMany));
  ExpectPerObject(few, many, 1);  // the place of the name among its pool's
  const StepCounts less = Least(path, [&] { return pool.Remove(kFew); });
  const StepCounts more = Least(path, [&] { return pool.Remove(kMany); });
  EXPECT_EQ(path.stream().blocks_removed, kFrames * (kFew + kMany));
  ExpectPerObject(less, more, 0);
}

}  // namespace
}  // namespace conductor::ingest_test
