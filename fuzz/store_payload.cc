// Payloads of a Mooncake Store's frames, through the decoder and the translator (translation.h).
// Property: as engine_payload; and whatever a publisher writes as key, backend or tenant, its
// objects fit the log.
//
// Input: flags, block size, then payloads of one stream, separated.
#include "fuzz/golden.h"
#include "fuzz/translation.h"
#include "replay/wire/store_decoder.h"
#include "src/hash/profile.h"
#include "src/limits.h"

namespace conductor::fuzz {
namespace {

constexpr std::uint8_t kSglangFlag = 0x01;
constexpr std::uint8_t kPartsFlag = 0x02;    // the registration demands all parts
constexpr std::uint8_t kStatesFlags = 0xc0;  // both: the facts are applied, too; costly, so rare
constexpr std::uint8_t kNewLifeFlag = 0x20;

HashProfile ProfileOf(bool sglang) {
  static const auto vllm = *MakeHashProfile("vllm_v1", "sha256_cbor", "0", "low64_be");
  static const auto pages = *MakeHashProfile("sglang", "sha256_raw", "0", "first64_be");
  return sglang ? pages : vllm;
}

Registration MakeRegistration(std::uint8_t flags, std::uint8_t block_size) {
  Registration registration;
  registration.instance_id = "store";
  registration.endpoint = "tcp://store:5557";
  registration.type = PublisherType::kMooncake;
  registration.model_name = "m";
  registration.block_size = block_size == 0 ? 256 : block_size;
  registration.hash_profile = ProfileOf((flags & kSglangFlag) != 0);
  if ((flags & kPartsFlag) != 0) registration.pool_parts = {{"tp", 2}, {"kv", 2}};
  return registration;
}

EventCounts RequireConsistent(const StoreBatch& batch) {
  EventCounts counts{batch.events.size(), batch.RejectedTotal(), 0};
  std::int64_t last = -1;
  for (const StoreEvent& event : batch.events) {
    Require(event.index > last && event.index < counts.decoded + counts.rejected,
            "events keep their order and place");
    last = event.index;
    if (event.kind == StoreEvent::Kind::kCleared) continue;
    Require(event.name || !event.key.HasName(), "a key that names a block names the event's");
    Require(PartOf(event).size() <= kNameBytesMax, "a part fits the log");
  }
  return counts;
}

void RunPayload(Translation& translation, HashStrategy strategy, Bytes payload) {
  const auto batch = DecodeStorePayload(strategy, payload);
  const auto again = DecodeStorePayload(strategy, payload);
  Require(batch.has_value() == again.has_value(), "decoding is a function");
  const Translation::Outcome outcome = translation.Run(payload);
  if (!batch) return RequireRefused(outcome.frame, batch.error());
  Require(batch->events.size() == again->events.size(), "decoding is a function");
  RequireNothingLost(outcome.frame, RequireConsistent(*batch));
  Require(outcome.frame.publisher_time_us == batch->publisher_time_us, "the time is the batch's");
  for (const StoreEvent& event : batch->events) {
    if (event.additional_salt) RequireSecret(std::string(*event.additional_salt), payload, outcome);
  }
}

}  // namespace

void RunInput(Bytes input) {
  InputReader reader(input);
  const std::uint8_t flags = reader.Byte();
  const std::uint8_t block_size = reader.Byte();
  const Registration registration = MakeRegistration(flags, block_size);
  Translation translation(registration, (flags & kStatesFlags) == kStatesFlags);
  bool first = true;
  for (const Bytes payload : Split(reader.rest(), kPartSeparator)) {
    if (!first && (flags & kNewLifeFlag) != 0) translation.StartNewLife();
    first = false;
    RunPayload(translation, registration.hash_profile.strategy, payload);
  }
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  std::vector<std::string> together;
  for (const GoldenFrame& frame : LoadGoldenFrames()) {
    if (frame.publisher != PublisherType::kMooncake || frame.parts.size() < 3) continue;
    const char flags = frame.strategy == HashStrategy::kVllmV1 ? 0 : kSglangFlag;
    const std::string head{flags, static_cast<char>(frame.block_size)};
    seeds.push_back(head + frame.parts[2]);
    if (frame.parts[2].size() < 600) together.push_back(frame.parts[2]);
  }
  for (const char flags : {0x00, 0xc1, 0xc2, 0xe2}) {
    seeds.push_back(std::string{flags, 16} + Join(together, kPartSeparator));
  }
  return seeds;
}

}  // namespace conductor::fuzz
