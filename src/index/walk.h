// Walks: how a prompt, or a list of block hashes, is matched against the index.
//
// By content: from the root of the prompt's salt, child after child by fingerprint: along runs many
// blocks at a time, looking at holders only where they change (run_walk.h). Publishers that
// name the same content differently have entries of their own, so a position is a small set of
// entries. In a context with fragments, from the first position without a shared block on, the walk
// also follows the exact hash chain over its own tokens for as long as names match, and returns to
// content below a matched name. The walk never jumps: a position nobody has ends it.
//
// Readers only: lock-free, beside the writer. Each function pins an epoch for its own length. A
// walk that meets a change answers what was true for each block at some moment of it.
#pragma once

#include "src/index/prefix_index.h"
#include "src/index/row_matches.h"
#include "src/query.h"
#include "src/result.h"

namespace conductor {

// Instances sorted and trimmed as the contract says; `log_seq` and hints are the caller's.
// An unknown context answers with context_known == false. Errors: a prompt the context's hash
// strategy refuses (negative SGLang tokens).
Result<QueryAnswer> MatchPrompt(const PrefixIndex& index, const PromptQuery& query);
// What is known by name only is not followed: there are no tokens to hash.
QueryAnswer MatchFingerprints(const PrefixIndex& index, const FingerprintQuery& query);
// The same without texts; under the caller's EpochGuard.
void MatchFingerprints(const PrefixIndex& index, const FingerprintQuery& query,
                       RowMatches* matches);
QueryAnswer MatchHashes(const PrefixIndex& index, const HashQuery& query);

}  // namespace conductor
