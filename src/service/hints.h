// Why a query matched nothing, in words, and the contexts nearest to the one it asked for.
#pragma once

#include "src/index/prefix_index.h"
#include "src/query.h"

namespace conductor {

// Under an EpochGuard. `tokens` is the length of the prompt.
void ExplainMiss(const PrefixIndex& index, const ContextKey& asked, std::uint64_t tokens,
                 QueryAnswer& answer);

}  // namespace conductor
