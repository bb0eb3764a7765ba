// With the engines' own hashes the generator's prompts are what the real query path computes.
#include "tests/model/real_names.h"

#include <gtest/gtest.h>

#include "tests/model/random_ops.h"

namespace conductor::model {
namespace {

TEST(RealNamesTest, PromptsAreNamedAsTheQueryPathNamesThem) {
  const RealNames names;
  RandomOps ops(7, names);
  int sglang = 0, items = 0, salted = 0;
  for (int i = 0; i < 500; ++i) {
    const RandomPrompt prompt = ops.NextPrompt();
    const ContextKey& context = prompt.spec.context;
    const bool is_sglang = context.model_name == "sglang-model";
    const BlockHasher hasher(
        RealNames::Profile(is_sglang ? HashStrategy::kSglang : HashStrategy::kVllmV1, "0"));
    std::vector<ExtraKeys> keys;
    for (const std::string& item : prompt.items) keys.push_back(RealNames::ItemKeys({{}, item}));
    const auto chain = hasher.HashPrompt(prompt.token_ids, context.block_size, context.lora_name,
                                         prompt.cache_salt, keys);
    ASSERT_TRUE(chain);
    ASSERT_EQ(chain->size(), prompt.spec.positions.size());
    std::size_t token = 0;
    for (std::size_t j = 0; j < chain->size(); ++j) {
      const PromptPosition& position = prompt.spec.positions[j];
      EXPECT_EQ(hasher.Project((*chain)[j]), position.exact_name);
      const std::span<const std::int32_t> tokens(prompt.token_ids.data() + token, position.length);
      EXPECT_EQ(FingerprintV1(tokens, keys[j]), position.fingerprint);
      token += position.length;
      if (!prompt.items[j].empty()) ++items;
    }
    if (!prompt.cache_salt.empty()) {
      ++salted;
      EXPECT_EQ(prompt.spec.salt, DigestSalt(prompt.cache_salt));
    }
    if (is_sglang) ++sglang;
  }
  EXPECT_GT(sglang, 0);
  EXPECT_GT(items, 0);
  EXPECT_GT(salted, 0);
}

TEST(RealNamesTest, OperationsWithRealNamesKeepTheInvariants) {
  const RealNames names;
  RandomOpsOptions options;
  options.vllm_profile = RealNames::Profile(HashStrategy::kVllmV1, "0");
  options.sglang_profile = RealNames::Profile(HashStrategy::kSglang, "0");
  RandomOps ops(11, names, options);
  ReferenceModel model;
  for (int i = 0; i < 500; ++i) model.Apply(ops.NextRecord());
  EXPECT_EQ(model.CheckInvariants(), "");
  for (const auto& [key, context] : model.contexts()) {
    EXPECT_EQ(context.hash_profile,
              key.model_name == "sglang-model" ? options.sglang_profile : options.vllm_profile);
  }
}

}  // namespace
}  // namespace conductor::model
