#include "tests/storage/golden_records.h"

#include <numeric>

namespace conductor::storage {
namespace {

template <typename Array>
Array Counting(std::uint8_t first) {
  Array bytes;
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

BlockName LongName(std::uint64_t projected) {
  return {projected, std::string(24, 'd') + "\x01\x23\x45\x67\x89\xab\xcd\xef"};
}

Registration EngineRegistration() {
  Registration registration;
  registration.instance_id = "engine-0";
  registration.endpoint = "tcp://10.0.0.1:5557";
  registration.replay_endpoint = "tcp://10.0.0.1:5558";
  registration.topic = "kv-events";
  registration.has_topic = true;
  registration.type = PublisherType::kVllm;
  registration.model_name = "meta-llama/Llama-3.1-8B-Instruct";
  registration.tenant_id = "default";
  registration.block_size = 16;
  registration.has_cache_group = true;
  registration.hash_profile = {HashStrategy::kVllmV1, HashAlgorithm::kSha256Cbor, "0",
                               Counting<Digest>(1)};
  return registration;
}

Registration PoolRegistration() {
  Registration registration;
  registration.instance_id = "pool";
  registration.endpoint = "tcp://10.0.0.9:6000";
  registration.snapshot_endpoint = "tcp://10.0.0.9:6001";
  registration.type = PublisherType::kMooncake;
  registration.model_name = "model";
  registration.lora_name = "adapter";
  registration.tenant_id = "tenant-b";
  registration.block_size = 64;
  registration.dp_rank = 7;
  registration.hash_profile = {HashStrategy::kSglangBigram, HashAlgorithm::kSha256Raw, "0", {}};
  registration.pool_parts = {{"kv", 2}, {"layers", 0}, {"tp", 8}};
  registration.origin = RegistrationOrigin::kStatic;
  registration.static_name = "store";
  return registration;
}

Frame StoredFrame() {
  Stored root;
  root.tier = Tier::kDevice;
  root.block_length = 16;
  root.salt = Counting<SaltDigest>(0x40);
  root.blocks = {{{0x1111111111111111u, ""}, 0xa1u, HashCheck::kEqual},
                 {{0x2222222222222222u, ""}, 0xa2u, HashCheck::kDiffers},
                 {LongName(0x0123456789abcdefu), 0xa3u, HashCheck::kNotComputed}};
  root.last_digest = Counting<Digest>(0x80);
  Stored child;
  child.tier = Tier::kCpuLocal;
  child.lora_name = "adapter";
  child.extra_keys_on_wire = true;
  child.block_length = 16;
  child.parent = LongName(0x0123456789abcdefu);
  child.blocks = {{{0x3333333333333333u, ""}, 0xa4u, HashCheck::kEqual},
                  {{0x4444444444444444u, ""}, 0xa5u, HashCheck::kEqual}};
  Stored token_less;
  token_less.tier = Tier::kDisk;
  token_less.has_tokens = false;
  token_less.blocks = {{{0x5555555555555555u, ""}, 0, HashCheck::kNotComputed}};
  return {1, 0, 1'700'000'000'000'000, 0xfeedu, {root, child, token_less}, {}};
}

}  // namespace

std::vector<Record> GoldenRecordsV1() {
  std::vector<Record> records;
  records.push_back({{Registered{EngineRegistration(), UnverifiedBlocks::kContent}}});
  records.push_back({{Registered{PoolRegistration(), UnverifiedBlocks::kNameOnly}}});
  records.push_back({{NewEpoch{1, UnverifiedBlocks::kContent}, CountingGroup{1, -1}}});
  records.push_back({{HistoryStart{1, 0}, StoredFrame()}});
  const Removed removed{Tier::kDevice, {{0x1111111111111111u, ""}, LongName(7)}};
  records.push_back({{Frame{1, 1, -1, 0xbeefu, {removed, Cleared{false}}, {}},
                      Frame{1, 2, 0, 0xbee0u, {Cleared{true}}, {}}}});
  Frame ignored{1, 3, 0, 0, {}, {}};
  for (int reason = 1; reason <= static_cast<int>(IgnoreReason::kSecondPublisher); ++reason) {
    ignored.ignored[static_cast<IgnoreReason>(reason)] = static_cast<std::uint64_t>(reason) * 100;
  }
  records.push_back({{ignored}});
  records.push_back({{Lost{1, 4, 9}}});

  records.push_back({{Dropped{1, DropReason::kLostEvents}, Dropped{1, DropReason::kDisconnected},
                      Dropped{1, DropReason::kOperator}}});
  records.push_back({{Evicted{1, Tier::kCpuShare, "adapter", LongName(9), "", "", 0}}});
  const PoolStored pool_stored{{Tier::kCpuShare, 0, {0x66u, ""}, "tp=0,kv=k"}};
  const PoolRemoved pool_removed{{Tier::kDisk, 0, LongName(0x67u), ""}};
  records.push_back({{Frame{2,
                            18'446'744'073'709'551'614u,
                            5,
                            6,
                            {pool_stored, pool_removed, PoolCleared{"b", "t"}},
                            {},
                            {{"b", "t", "m", "l", 64}}}}});
  records.push_back({{PublisherSnapshot{2,
                                        40,
                                        "life-2",
                                        {{std::nullopt, {0x70u, ""}},
                                         {BlockName{0x70u, ""}, LongName(0x71u)},
                                         {LongName(0x71u), {0x72u, ""}}}}}});
  records.push_back({});
  records.push_back({{Unregistered{{"engine-0", "default", 0}}}});
  return records;
}

Record WorkedExample() {
  Stored stored;
  stored.tier = Tier::kDevice;
  stored.block_length = 16;
  stored.blocks = {{{0x0123456789abcdefu, ""}, 0x1122334455667788u, HashCheck::kEqual}};
  const Removed removed{Tier::kDevice, {{0x0123456789abcdefu, ""}}};
  return {{Frame{3, 7, 1'000'000, 0x8877665544332211u, {stored, removed}, {}}}};
}

}  // namespace conductor::storage
