#include "src/index/run_walk.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace conductor {
namespace {

std::size_t MatchLengthPortable(const std::uint64_t* a, const std::uint64_t* b, std::size_t count) {
  std::size_t i = 0;
  // Eight at a time without a branch each: compilers make vectors of it.
  for (; i + 8 <= count; i += 8) {
    std::uint64_t differs = 0;
    for (std::size_t j = i; j < i + 8; ++j) differs |= a[j] ^ b[j];
    if (differs != 0) break;
  }
  while (i < count && a[i] == b[i]) ++i;
  return i;
}

#if defined(__x86_64__)
__attribute__((target("avx2"), always_inline)) inline __m256i Load(const std::uint64_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}

__attribute__((target("avx2"))) std::size_t MatchLengthAvx2(const std::uint64_t* a,
                                                            const std::uint64_t* b,
                                                            std::size_t count) {
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i x =
        _mm256_or_si256(_mm256_or_si256(_mm256_xor_si256(Load(a + i), Load(b + i)),
                                        _mm256_xor_si256(Load(a + i + 4), Load(b + i + 4))),
                        _mm256_or_si256(_mm256_xor_si256(Load(a + i + 8), Load(b + i + 8)),
                                        _mm256_xor_si256(Load(a + i + 12), Load(b + i + 12))));
    if (_mm256_testz_si256(x, x) == 0) break;
  }
  for (; i + 4 <= count; i += 4) {
    const __m256i equal = _mm256_cmpeq_epi64(Load(a + i), Load(b + i));
    const auto mask = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(equal)));
    if (mask != 0xf) return i + static_cast<std::size_t>(std::countr_one(mask));
  }
  while (i < count && a[i] == b[i]) ++i;
  return i;
}
#endif

MatchKernel ChooseMatch() {
  const MatchKernel avx2 = SupportedAvx2MatchKernel();
  return avx2 != nullptr ? avx2 : PortableMatchKernel();
}

// Not worth a call through a pointer.
constexpr std::size_t kFew = 8;

// Goes through `count` slots that match, state by state. Returns how many somebody has, and whether
// a rank goes on behind them.
class SlotStates {
 public:
  SlotStates(const PrefixIndex& index, const PromptBlocks& blocks, TierCursors& cursors)
      : index_(index), blocks_(blocks), cursors_(cursors) {}

  struct Passed {
    std::uint32_t slots = 0;
    bool ended = false;
  };
  Passed Pass(const RunTable::View& run, std::uint32_t slot, std::uint32_t count, std::size_t at) {
    const std::uint32_t begin = slot, end = slot + count;
    std::uint64_t breaks = run.Breaks();
    while (slot < end) {
      const StateId state = run.states[slot].load(std::memory_order_acquire);
      // The state reaches up to the next break, if there was none when it was read.
      const std::uint64_t before = breaks;
      breaks = run.Breaks();
      const std::uint64_t later = slot + 1 < 64 ? (before | breaks) >> (slot + 1) : 0;
      const std::uint32_t reach =
          later == 0 ? end : slot + 1 + static_cast<std::uint32_t>(std::countr_zero(later));
      if (state == 0 || state != last_) {
        set_ = index_.holders().Find(state);
        if (set_ == nullptr) return {slot - begin, false};
        last_ = state;
      }
      const std::uint32_t next = std::min(reach, end);
      const std::uint64_t tokens = blocks_.EndOf(at + (next - begin) - 1);
      // Of one that is kept all are there.
      if (!cursors_.Keep(state, *set_, tokens)) {
        if (set_->live_engines.load(std::memory_order_acquire) == 0) return {slot - begin, false};
        if (!cursors_.Advance({&state, 1}, tokens)) return {next - begin, true};
      }
      slot = next;
    }
    return {count, false};
  }

 private:
  const PrefixIndex& index_;
  const PromptBlocks& blocks_;
  TierCursors& cursors_;
  StateId last_ = 0;
  const HolderSet* set_ = nullptr;  // the last state's
};

}  // namespace

MatchKernel PortableMatchKernel() {
  return MatchLengthPortable;
}

MatchKernel SupportedAvx2MatchKernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return MatchLengthAvx2;
#endif
  return nullptr;
}

std::size_t MatchLength(const std::uint64_t* a, const std::uint64_t* b, std::size_t count) {
  static const MatchKernel match = ChooseMatch();
  if (count <= kFew) {
    std::size_t i = 0;
    while (i < count && a[i] == b[i]) ++i;
    return i;
  }
  return match(a, b, count);
}

RunStretch WalkRuns(const PrefixIndex& index, ContextId context, PromptBlocks& blocks,
                    TierCursors& cursors, EntryId above, std::size_t begin) {
  RunStretch stretch;
  stretch.last = above;
  // A short last page is never in a run.
  const std::size_t end =
      blocks.count() - (blocks.Length(blocks.count() - 1) != blocks.block_size() ? 1 : 0);
  SlotStates states(index, blocks, cursors);
  std::size_t at = begin;
  RunTable::View run{};
  std::uint32_t slot = 0, size = 0;  // the next slot, and how many the run has
  while (at < end) {
    std::span<const std::uint64_t> wanted = blocks.Fingerprints(at);
    if (slot == size || run.fingerprints[slot] != wanted[0]) {
      EntryId next = 0;
      if (size > 0) {
        next = slot == kRunSlotsMax
                   ? index.FindNextRun(run, wanted[0])
                   : index.FindRunAside(context, stretch.last, run.names[slot - 1], wanted[0]);
      }
      if (next == 0) next = index.FindRunBelow(stretch.last, wanted[0]);
      if (next == 0) return stretch;
      run = index.runs().ViewOf(next);
      if (run.run->context != context) return stretch;
      slot = run.SlotOf(next);
      size = run.size();
      if (slot >= size) return stretch;
    }
    const std::size_t most = std::min({wanted.size(), std::size_t{size - slot}, end - at});
    const auto count =
        static_cast<std::uint32_t>(MatchLength(run.fingerprints + slot, wanted.data(), most));
    const auto [passed, ended] = states.Pass(run, slot, count, at);
    if (passed > 0) {
      slot += passed;
      at += passed;
      stretch.blocks += passed;
      stretch.last = run.base + slot - 1;
      std::uint32_t digest_slot = 0;
      const DigestId digest = PrefixIndex::DigestIdOf(run, &digest_slot);
      if (digest != 0 && digest_slot < slot && digest_slot >= slot - passed) {
        stretch.checkpoint = digest;
        stretch.checkpoint_at = at - (slot - digest_slot);
      }
    }
    if (ended) {
      stretch.ended = true;
      return stretch;
    }
    if (passed < count || count == 0) return stretch;
  }
  return stretch;
}

}  // namespace conductor
