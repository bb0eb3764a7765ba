#include "replay/translator.h"

#include <span>
#include <utility>

#include "replay/wire/engine_decoder.h"
#include "replay/wire/store_decoder.h"
#include "src/hash/extra_keys.h"

namespace conductor {
namespace {

std::string Contradiction(std::string_view what, std::int64_t got, std::int64_t expected) {
  std::string text(what);
  text += ": expected " + std::to_string(expected) + " (registered), got " + std::to_string(got);
  return text;
}

}  // namespace

Translator::Translator(const StreamSeed& seed, const TranslatorOptions& options,
                       const DigestSource& digests, DigestCache& cache)
    : stream_(seed.stream),
      registration_(seed.registration),
      options_(options),
      digests_(digests),
      cache_(cache),
      hasher_(seed.registration.hash_profile),
      counting_group_(seed.counting_group),
      seen_full_size_block_(seed.seen_full_size_block) {}

void Translator::OnNewLife() {
  counting_group_.reset();
  seen_full_size_block_ = false;
  state_is_this_life_ = false;
  scopes_.clear();
}

void Translator::OnDropped(DropReason reason) {
  if (reason == DropReason::kDisconnected) OnNewLife();
}

void Translator::Translate(const ReceivedFrame& received, std::vector<Fact>& facts) {
  Frame frame;
  frame.stream = stream_;
  frame.number = received.number;
  frame.fingerprint = received.fingerprint;
  const std::span payload(reinterpret_cast<const std::uint8_t*>(received.payload.data()),
                          received.payload.size());
  const auto refuse = [&](const Error& error) {
    Ignore(frame, IgnoreReason::kUndecodableFrame, error.message);
  };
  if (registration_.type == PublisherType::kMooncake) {
    const auto batch =
        DecodeStorePayload(registration_.hash_profile.strategy, payload, options_.wire);
    batch ? TranslateStore(*batch, frame) : refuse(batch.error());
  } else {
    const auto batch = DecodeEnginePayload(registration_.type, payload, options_.wire);
    batch ? TranslateBatch(*batch, frame, facts) : refuse(batch.error());
  }
  facts.emplace_back(std::move(frame));
}

void Translator::CountRejected(const BatchEnvelope& batch, Frame& frame) {
  if (const std::uint64_t rejected = batch.RejectedTotal(); rejected > 0) {
    Ignore(frame, IgnoreReason::kUndecodableEvent,
           batch.rejected.empty() ? "undecodable event" : batch.rejected.front().text);
    frame.ignored[IgnoreReason::kUndecodableEvent] = rejected;
  }
}

void Translator::TranslateBatch(const WireBatch& batch, Frame& frame, std::vector<Fact>& facts) {
  frame.publisher_time_us = batch.publisher_time_us;
  if (batch.dp_rank && *batch.dp_rank != registration_.dp_rank) {
    return Ignore(frame, IgnoreReason::kRankMismatch,
                  Contradiction("rank", *batch.dp_rank, registration_.dp_rank));
  }
  CountRejected(batch, frame);
  FindCountingGroup(batch, facts);
  frame.events.reserve(batch.events.size());
  for (const WireEvent& event : batch.events) {
    switch (event.kind) {
      case WireEvent::Kind::kStored:
        TranslateStored(event, frame);
        break;
      case WireEvent::Kind::kRemoved:
        TranslateRemoved(event, frame);
        break;
      case WireEvent::Kind::kCleared:
        TranslateCleared(frame);
        break;
    }
  }
}

// The first frame that stores blocks of full attention fixes the group for this life.
void Translator::FindCountingGroup(const WireBatch& batch, std::vector<Fact>& facts) {
  if (counting_group_ || registration_.type != PublisherType::kVllm) return;
  for (const WireEvent& event : batch.events) {
    if (event.kind != WireEvent::Kind::kStored || !IsFullAttentionLike(event.spec_kind)) continue;
    const std::int64_t group = event.group_idx.value_or(0);
    if (!counting_group_ || group < *counting_group_) counting_group_ = group;
  }
  if (counting_group_) facts.emplace_back(CountingGroup{stream_, *counting_group_});
}

void Translator::TranslateStored(const WireEvent& event, Frame& frame) {
  if (!CountsHere(event, frame) || event.names.empty()) return;
  if (!HasFittingLength(event, frame)) return;
  const Adapter adapter = AdapterOf(event);
  Stored stored;
  stored.tier = *TierOf(event);
  if (!adapter.registered) stored.lora_name.emplace(adapter.name);
  stored.has_tokens = !event.token_ids.empty();
  stored.extra_keys_on_wire = event.extra_keys_on_wire;
  stored.block_length = static_cast<std::uint32_t>(event.block_size);
  if (stored.has_tokens) {
    stored.parent = event.parent;
    FillBlocks(event, adapter, stored);
    if (stored.block_length == registration_.block_size) seen_full_size_block_ = true;
  } else {
    FillNames(event, stored);
  }
  frame.events.emplace_back(std::move(stored));
}

void Translator::TranslateRemoved(const WireEvent& event, Frame& frame) {
  if (!CountsHere(event, frame) || event.names.empty()) return;
  frame.events.emplace_back(Removed{*TierOf(event), event.names});
}

void Translator::TranslateCleared(Frame& frame) {
  const bool all_tiers = registration_.type == PublisherType::kSglang;
  frame.events.emplace_back(Cleared{all_tiers});
}

std::optional<Tier> Translator::TierOf(const WireEvent& event) const {
  switch (event.medium) {
    case Medium::kDevice:
      return Tier::kDevice;
    case Medium::kCpu:
      return Tier::kCpuLocal;
    case Medium::kDisk:
      return Tier::kDisk;
    case Medium::kExternal:
      return Tier::kCpuShare;
    case Medium::kUnknown:
      break;
  }
  return std::nullopt;
}

// Whether the event is about blocks of this publisher that make prefix hits.
bool Translator::CountsHere(const WireEvent& event, Frame& frame) {
  if (event.locality == Locality::kRemote) {
    Ignore(frame, IgnoreReason::kRemote);
    return false;
  }
  if (registration_.type == PublisherType::kVllm) {
    const bool other_kind = event.kind == WireEvent::Kind::kStored &&
                            event.spec_kind != SpecKind::kNone &&
                            !IsFullAttentionLike(event.spec_kind);
    if (other_kind || event.group_idx.value_or(0) != counting_group_.value_or(0)) {
      Ignore(frame, IgnoreReason::kOtherGroup);
      return false;
    }
  }
  if (!TierOf(event)) {
    Ignore(frame, IgnoreReason::kUnknownMedium, "medium: no tier is known for it");
    return false;
  }
  return true;
}

// Whether tokens, names and block size agree with each other and with the registration.
bool Translator::HasFittingLength(const WireEvent& event, Frame& frame) {
  const auto registered = static_cast<std::int64_t>(registration_.block_size);
  const bool vllm = registration_.type == PublisherType::kVllm;
  const std::size_t positions = event.token_ids.size() / (event.bigram ? 2 : 1);
  // SGLang's last page may be short.
  const bool fits = vllm ? event.block_size == registered : event.block_size <= registered;
  if (!fits) {
    const bool part = vllm && seen_full_size_block_ && event.names.size() == 1 &&
                      event.block_size < registered &&
                      positions == static_cast<std::uint64_t>(event.block_size);
    if (part) {
      Ignore(frame, IgnoreReason::kPartialEntry);
    } else {
      Ignore(frame, IgnoreReason::kBlockSizeMismatch,
             Contradiction("block size", event.block_size, registered));
    }
    return false;
  }
  if (event.token_ids.empty()) return true;
  const bool bigram = registration_.hash_profile.strategy == HashStrategy::kSglangBigram;
  const auto block_size = static_cast<std::uint64_t>(event.block_size);
  const bool spells = !event.bigram || JoinBigramTokens(event, &joined_tokens_);
  if (event.bigram == bigram && spells && positions == event.names.size() * block_size) return true;
  Ignore(frame, IgnoreReason::kAmbiguousLength,
         "token_ids: expected " + std::to_string(event.names.size()) + " blocks of " +
             std::to_string(block_size) + ", got " + std::to_string(positions) + " positions");
  return false;
}

void Translator::Ignore(Frame& frame, IgnoreReason reason, std::string text) {
  ++frame.ignored[reason];
  if (!text.empty()) last_error_ = "frame " + std::to_string(frame.number) + ": " + text;
}

// A name decides; a number is only a fallback; without either it is the registration's.
Translator::Adapter Translator::AdapterOf(const WireEvent& event) {
  Adapter adapter{registration_.lora_name, true};
  if (registration_.type != PublisherType::kVllm) return adapter;
  if (event.lora_name && !event.lora_name->empty()) {
    adapter.name = *event.lora_name;
  } else if (event.lora_id && registration_.lora_name.empty()) {
    numbered_adapter_ = LoraNameOfId(*event.lora_id);
    adapter.name = numbered_adapter_;
  }
  adapter.registered = adapter.name == registration_.lora_name;
  return adapter;
}

}  // namespace conductor
