// Random operations on the state: register, store, remove, clear, evict, lose, restart, pools.
// Property: after every record the state answers as the reference model does (tests/model), and a
// state rebuilt from the records has the same digest.
//
// Input: options, then the choices of tests/model/random_ops.h, one byte each.
#include <map>
#include <tuple>

#include "fuzz/target.h"
#include "tests/model/state_pair.h"

namespace conductor::fuzz {
namespace {

constexpr std::uint8_t kNoForgedLinks = 1;
constexpr std::uint8_t kNoMixedSpellings = 2;
constexpr std::uint8_t kNoPools = 4;
// The model is slow; a longer history says little more.
constexpr std::size_t kRecordsMax = 60;

// Hashing is most of the work, and the universe of prompts is small: everything is remembered.
class RememberedNames : public model::RealNames {
 public:
  Digest Next(const model::ChainSpec& chain, const Digest* parent,
              const model::BlockContent& content) const override {
    Key key{chain.strategy,
            chain.seed,
            parent != nullptr ? "" : chain.salt,
            chain.lora_name,
            parent != nullptr ? std::string(parent->begin(), parent->end()) : std::string(),
            content.tokens,
            content.item};
    const auto found = digests_.find(key);
    if (found != digests_.end()) return found->second;
    if (digests_.size() >= kRememberedMax) digests_.clear();
    const Digest digest = RealNames::Next(chain, parent, content);
    digests_.emplace(std::move(key), digest);
    return digest;
  }
  std::uint64_t Project(HashStrategy strategy, const Digest& digest) const override {
    const std::size_t from = strategy == HashStrategy::kVllmV1 ? 24 : 0;
    std::uint64_t value = 0;
    for (std::size_t i = from; i < from + 8; ++i) value = (value << 8) | digest[i];
    return value;
  }

 private:
  static constexpr std::size_t kRememberedMax = 200'000;
  using Key = std::tuple<HashStrategy, std::string, std::string, std::string, std::string,
                         std::vector<std::int32_t>, std::string>;
  mutable std::map<Key, Digest> digests_;
};

}  // namespace

void RunInput(Bytes input) {
  static const auto* const names = new RememberedNames;
  static const auto* const real = new model::RandomOpsOptions(model::RealOptions());
  InputReader reader(input);
  const std::uint8_t flags = reader.Byte();
  model::RandomOpsOptions options = *real;
  options.forged_links = (flags & kNoForgedLinks) == 0;
  options.mixed_spellings = (flags & kNoMixedSpellings) == 0;
  options.pools = (flags & kNoPools) == 0;
  model::RandomSource source(reader.rest());
  model::StatePair pair(source, *names, options);
  for (std::size_t i = 0; i < kRecordsMax && !pair.ChoicesUsedUp(); ++i) {
    const std::string difference = pair.Step();
    Require(difference.empty(), "state and model agree", difference);
  }
  const std::string difference = pair.Restart();
  Require(difference.empty(), "a rebuilt state is the same", difference);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  model::RandomSource random(1);
  for (std::size_t i = 0; i < 24; ++i) {
    std::string seed(1, static_cast<char>(i % 8));
    for (std::size_t bytes = 100 + 100 * i; bytes > 0; --bytes) {
      seed.push_back(static_cast<char>(random.Next()));
    }
    seeds.push_back(seed);
  }
  return seeds;
}

}  // namespace conductor::fuzz
