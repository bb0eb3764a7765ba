// Builds the recipe by which an engine names its blocks, and refuses every other combination:
// vllm_v1 with sha256 or sha256_cbor and low64_be; sglang or sglang_bigram with sha256_raw and
// first64_be. The vLLM seed is kept verbatim ("0" and "00" differ): decimal text 0..4294967295,
// "random", or "vllm-none-hash" (what the newest releases hash when PYTHONHASHSEED is unset).
// The SGLang strategies have no seed: "0" stands for it. Pure; any thread may call.
//
//   auto profile = MakeHashProfile("vllm_v1", "sha256_cbor", "0", "low64_be");
#pragma once

#include <string_view>

#include "src/result.h"
#include "src/types.h"

namespace conductor {

// A longer seed text is refused; the largest value has 10 digits, the rest are leading zeros.
inline constexpr std::size_t kSeedTextBytesMax = 64;

// Errors name the first wrong field as the contract spells it: "missing" when it is empty,
// "invalid_value" otherwise.
Result<HashProfile> MakeHashProfile(std::string_view strategy, std::string_view algorithm,
                                    std::string_view python_hash_seed,
                                    std::string_view index_projection);

}  // namespace conductor
