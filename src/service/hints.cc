#include "src/service/hints.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace conductor {
namespace {

constexpr std::size_t kNearestMax = 5;

// Names longer than this are compared by their beginnings.
constexpr std::size_t kNameComparedMax = 64;

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Edits that make one name the other, whatever their case.
int EditDistance(std::string_view a, std::string_view b) {
  a = a.substr(0, kNameComparedMax);
  b = b.substr(0, kNameComparedMax);
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i));
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (Lower(a[i - 1]) == Lower(b[j - 1]) ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

// Fields that differ weigh by how likely they are the mistake; 0 is the context itself.
int Distance(const ContextKey& a, const ContextKey& b) {
  int distance = 0;
  if (a.block_size != b.block_size) distance += 1;
  if (a.lora_name != b.lora_name) distance += 2;
  if (a.tenant_id != b.tenant_id) distance += 3;
  if (a.model_name != b.model_name) distance += 8 + 8 * EditDistance(a.model_name, b.model_name);
  return distance;
}

std::string Describe(const ContextKey& key) {
  return "model '" + key.model_name + "', tenant '" + key.tenant_id + "', adapter '" +
         key.lora_name + "', block size " + std::to_string(key.block_size);
}

}  // namespace

void ExplainMiss(const PrefixIndex& index, const ContextKey& asked, std::uint64_t tokens,
                 QueryAnswer& answer) {
  std::vector<std::pair<int, ContextKey>> known;
  for (ContextId id = 1; id < index.contexts().end_id(); ++id) {
    const Context& context = index.contexts().context(id);
    if (context.Exists()) known.emplace_back(Distance(asked, context.key), context.key);
  }
  std::sort(known.begin(), known.end());
  for (const auto& [distance, key] : known) {
    if (distance > 0 && answer.nearest_contexts.size() < kNearestMax) {
      answer.nearest_contexts.push_back(key);
    }
  }
  if (!answer.context_known) {
    if (known.empty()) {
      answer.hint = "nothing is registered";
      return;
    }
    const ContextKey& nearest = known.front().second;
    if (Distance(asked, nearest) == 1) {
      answer.hint = "no index for block size " + std::to_string(asked.block_size) +
                    ": this model has " + std::to_string(nearest.block_size);
      return;
    }
    answer.hint =
        "unknown context (" + Describe(asked) + "); the nearest known one is " + Describe(nearest);
    return;
  }
  if (tokens < asked.block_size) {
    answer.hint = "the prompt has " + std::to_string(tokens) + " tokens, fewer than one block of " +
                  std::to_string(asked.block_size);
    return;
  }
  const ContextId id = index.contexts().Find(asked);
  const bool empty = id == 0 || index.contexts().context(id).blocks.load() == 0;
  answer.hint = empty ? "the context is known but holds no blocks yet: check the streams' state, "
                        "last frame and hash check in /services?detail=1"
                      : "no instance holds the first block of this prompt";
}

}  // namespace conductor
