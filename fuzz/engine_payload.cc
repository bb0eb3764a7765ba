// Payloads of vLLM and SGLang frames, through the decoder and the translator (translation.h).
// Property: decoding is a function; a batch keeps the order of the wire and accounts for every
// event; one Frame fact comes out of whatever went in, the log takes it, no salt is in it.
//
// Input: flags, block size, rank, then payloads of one stream, separated.
#include "fuzz/golden.h"
#include "fuzz/translation.h"
#include "replay/wire/engine_decoder.h"
#include "src/hash/profile.h"

namespace conductor::fuzz {
namespace {

// The flags' lowest bits choose one of these.
constexpr struct {
  PublisherType type;
  const char* strategy;
  const char* algorithm;
  const char* projection;
} kProfiles[] = {
    {PublisherType::kVllm, "vllm_v1", "sha256_cbor", "low64_be"},
    {PublisherType::kVllm, "vllm_v1", "sha256", "low64_be"},
    {PublisherType::kSglang, "sglang", "sha256_raw", "first64_be"},
    {PublisherType::kSglang, "sglang_bigram", "sha256_raw", "first64_be"},
};
constexpr std::uint8_t kAdapterFlag = 0x10;
constexpr std::uint8_t kStatesFlags = 0xc0;  // both: the facts are applied, too; costly, so rare
constexpr std::uint8_t kNewLifeFlag = 0x20;  // before each payload but the first

// Hashing a seed costs more than everything else here.
const HashProfile& ProfileOf(std::uint8_t flags) {
  static const auto* const profiles = [] {
    auto* all = new std::vector<HashProfile>;
    for (const auto& p : kProfiles) {
      const auto made = MakeHashProfile(p.strategy, p.algorithm, "0", p.projection);
      Require(made.has_value(), "the profile is valid");
      all->push_back(*made);
    }
    return all;
  }();
  return (*profiles)[flags % std::size(kProfiles)];
}

Registration MakeRegistration(std::uint8_t flags, std::uint8_t block_size, std::uint8_t rank) {
  Registration registration;
  registration.instance_id = "engine";
  registration.endpoint = "tcp://engine:5557";
  registration.type = kProfiles[flags % std::size(kProfiles)].type;
  registration.model_name = "m";
  if ((flags & kAdapterFlag) != 0) registration.lora_name = "adapter";
  registration.block_size = block_size == 0 ? 256 : block_size;
  registration.dp_rank = rank;
  registration.hash_profile = ProfileOf(flags);
  return registration;
}

bool SameBatch(const Result<WireBatch>& a, const Result<WireBatch>& b) {
  if (a.has_value() != b.has_value()) return false;
  if (!a) return a.error().reason == b.error().reason && a.error().message == b.error().message;
  return a->events.size() == b->events.size() && a->rejected_counts == b->rejected_counts &&
         a->publisher_time_us == b->publisher_time_us && a->dp_rank == b->dp_rank;
}

EventCounts RequireConsistent(const WireBatch& batch) {
  EventCounts counts{batch.events.size(), batch.RejectedTotal(), 0};
  Require(batch.rejected.size() <= kRejectedDetailsMax && batch.rejected.size() <= counts.rejected,
          "details are of rejected events");
  std::int64_t last = -1;
  for (const WireEvent& event : batch.events) {
    Require(event.index > last && event.index < counts.decoded + counts.rejected,
            "events keep their order and place");
    last = event.index;
    if (event.kind == WireEvent::Kind::kCleared) continue;
    if (event.names.empty()) ++counts.empty;
    for (const BlockName& name : event.names) {
      Require(name.digest.empty() || (name.digest.size() > 8 && name.digest.size() <= 32),
              "a name is an integer or one digest");
    }
    if (event.kind != WireEvent::Kind::kStored) continue;
    Require(event.block_size > 0, "a stored event has a block size");
    Require(event.extra_keys.empty() || event.extra_keys.size() == event.names.size(),
            "extra keys are of the blocks");
    Require(!event.bigram || event.token_ids.size() % 2 == 0, "bigram tokens come in pairs");
    for (const std::int32_t token : event.token_ids) Require(token >= 0, "tokens are not negative");
  }
  return counts;
}

void RunPayload(Translation& translation, PublisherType type, Bytes payload) {
  const auto batch = DecodeEnginePayload(type, payload);
  Require(SameBatch(batch, DecodeEnginePayload(type, payload)), "decoding is a function");
  const Translation::Outcome outcome = translation.Run(payload);
  if (!batch) return RequireRefused(outcome.frame, batch.error());
  RequireNothingLost(outcome.frame, RequireConsistent(*batch));
  Require(outcome.frame.publisher_time_us == batch->publisher_time_us, "the time is the batch's");
  for (const WireEvent& event : batch->events) {
    if (event.cache_salt) RequireSecret(std::string(*event.cache_salt), payload, outcome);
  }
}

}  // namespace

void RunInput(Bytes input) {
  InputReader reader(input);
  const std::uint8_t flags = reader.Byte();
  const std::uint8_t block_size = reader.Byte();
  const std::uint8_t rank = reader.Byte();
  const Registration registration = MakeRegistration(flags, block_size, rank);
  Translation translation(registration, (flags & kStatesFlags) == kStatesFlags);
  bool first = true;
  for (const Bytes payload : Split(reader.rest(), kPartSeparator)) {
    if (!first && (flags & kNewLifeFlag) != 0) translation.StartNewLife();
    first = false;
    RunPayload(translation, registration.type, payload);
  }
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  std::vector<std::string> together[2];
  for (const GoldenFrame& frame : LoadGoldenFrames()) {
    if (frame.publisher == PublisherType::kMooncake || frame.parts.size() < 3) continue;
    const bool sglang = frame.publisher == PublisherType::kSglang;
    char flags = sglang ? 2 : 0;
    if (frame.strategy == HashStrategy::kSglangBigram) flags = 3;
    const std::string head{flags, static_cast<char>(frame.block_size), 0};
    seeds.push_back(head + frame.parts[2]);
    if (frame.parts[2].size() < 400) together[sglang].push_back(frame.parts[2]);
  }
  // Whole streams, with one life and with a life per frame, with and without an adapter.
  for (const std::uint8_t flags : {0x00, 0x01, 0xd0, 0xe0, 0xc2, 0x22}) {
    const std::string head{static_cast<char>(flags), 4, 0};
    seeds.push_back(head + Join(together[(flags & 2) != 0], kPartSeparator));
  }
  return seeds;
}

}  // namespace conductor::fuzz
