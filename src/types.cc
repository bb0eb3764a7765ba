#include "src/types.h"

namespace conductor {

std::string_view ToString(PublisherType type) {
  switch (type) {
    case PublisherType::kVllm: return "vLLM";
    case PublisherType::kSglang: return "SGLang";
    case PublisherType::kMooncake: return "Mooncake";
  }
  return "unknown";
}

std::string_view ToString(Tier tier) {
  switch (tier) {
    case Tier::kDevice: return "device";
    case Tier::kCpuLocal: return "cpu_local";
    case Tier::kCpuShare: return "cpu_share";
    case Tier::kDisk: return "disk";
  }
  return "unknown";
}

std::string_view ToString(HashStrategy strategy) {
  switch (strategy) {
    case HashStrategy::kVllmV1: return "vllm_v1";
    case HashStrategy::kSglang: return "sglang";
    case HashStrategy::kSglangBigram: return "sglang_bigram";
  }
  return "unknown";
}

std::string_view ToString(HashAlgorithm algorithm) {
  switch (algorithm) {
    case HashAlgorithm::kSha256: return "sha256";
    case HashAlgorithm::kSha256Cbor: return "sha256_cbor";
    case HashAlgorithm::kSha256Raw: return "sha256_raw";
  }
  return "unknown";
}

std::string_view IndexProjection(HashStrategy strategy) {
  return strategy == HashStrategy::kVllmV1 ? "low64_be" : "first64_be";
}

std::optional<PublisherType> ParsePublisherType(std::string_view text) {
  for (auto type : {PublisherType::kVllm, PublisherType::kSglang, PublisherType::kMooncake}) {
    if (text == ToString(type)) return type;
  }
  return std::nullopt;
}

}  // namespace conductor
