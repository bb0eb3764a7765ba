#include "src/index/walk_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace conductor {
namespace {

// live < catching_up < connecting < degraded
int Badness(StreamState state) {
  switch (state) {
    case StreamState::kLive:
      return 0;
    case StreamState::kCatchingUp:
      return 1;
    case StreamState::kConnecting:
      return 2;
    case StreamState::kDegraded:
      return 3;
  }
  return 3;
}

void Merge(TierCounts& best, const TierCounts& counts) {
  best.device = std::max(best.device, counts.device);
  best.cpu_local = std::max(best.cpu_local, counts.cpu_local);
  best.cpu_share = std::max(best.cpu_share, counts.cpu_share);
  best.disk = std::max(best.disk, counts.disk);
}

// The instances of an answer, best first. With `top_k`, those that matched nothing are not even
// looked at unless they are needed to fill it.
class Chooser {
 public:
  Chooser(const TierCursors& cursors, const RowView& rows, const QueryOptions& options)
      : cursors_(cursors),
        rows_(rows),
        min_tokens_(options.min_tokens),
        groups_(static_cast<std::uint32_t>(rows.groups.size())),
        most_(options.top_k == 0 ? groups_ : std::min(options.top_k, groups_)) {}

  std::vector<InstanceMatch> Only(std::size_t group) {
    if (group < groups_) Add(static_cast<std::uint32_t>(group));
    return std::move(chosen_);
  }
  std::vector<InstanceMatch> All() {
    if (most_ == groups_) chosen_.reserve(groups_);
    rows_.one_rank_each ? AddByLength() : AddMatched();
    if (min_tokens_ == 0) AddUnmatched();
    return std::move(chosen_);
  }

 private:
  InstanceMatch MatchOf(std::uint32_t group) const {
    InstanceMatch match;
    match.group = group;
    for (std::uint32_t i = rows_.groups[group].begin; i < rows_.groups[group].end; ++i) {
      Merge(match.best, cursors_.Of(rows_.order[i]).counts);
    }
    return match;
  }
  void Add(std::uint32_t group) {
    const InstanceMatch match = MatchOf(group);
    if (match.best.disk >= min_tokens_) chosen_.push_back(match);
  }

  // The cursors know the order already; equal ones are put in order here.
  void AddByLength() {
    const auto rows = cursors_.by_length();
    for (std::size_t end = rows.size(); end > 0 && chosen_.size() < most_;) {
      const std::size_t first = chosen_.size();
      std::uint64_t length = 0;
      for (; end > 0; --end) {
        const std::uint64_t disk = cursors_.Of(rows[end - 1]).counts.disk;
        if (chosen_.size() > first && disk != length) break;
        length = disk;
        Add(rows_.cards[rows[end - 1]].group);
        if (length < min_tokens_) return;
      }
      const auto begin = chosen_.begin() + static_cast<std::ptrdiff_t>(first);
      if (!std::is_sorted(begin, chosen_.end())) std::sort(begin, chosen_.end());
    }
    if (chosen_.size() > most_) chosen_.resize(most_);
  }

  void AddMatched() {
    std::vector<std::uint32_t> matched;
    matched.reserve(cursors_.matched().size());
    for (std::uint32_t row : cursors_.matched()) matched.push_back(rows_.cards[row].group);
    std::sort(matched.begin(), matched.end());
    matched.erase(std::unique(matched.begin(), matched.end()), matched.end());
    for (std::uint32_t group : matched) Add(group);
    const auto best = chosen_.begin() + std::min<std::ptrdiff_t>(most_, std::ssize(chosen_));
    std::partial_sort(chosen_.begin(), best, chosen_.end());
    chosen_.erase(best, chosen_.end());
  }

  // By id, behind all that matched something.
  void AddUnmatched() {
    for (std::uint32_t group = 0; chosen_.size() < most_ && group < groups_; ++group) {
      const InstanceMatch match = MatchOf(group);
      if (match.best.disk == 0) chosen_.push_back(match);
    }
  }

  const TierCursors& cursors_;
  const RowView& rows_;
  std::uint64_t min_tokens_;
  std::uint32_t groups_, most_;
  std::vector<InstanceMatch> chosen_;
};

std::vector<InstanceMatch> Choose(const TierCursors& cursors, const RowView& rows,
                                  std::size_t only_group, const QueryOptions& options) {
  Chooser chooser(cursors, rows, options);
  return options.instance_id.empty() ? chooser.All() : chooser.Only(only_group);
}

void AddRank(InstanceHits& hits, const RowCard& card, const TierCounts& counts) {
  hits.ranks[card.dp_rank] = counts;
  const StreamState state = card.shared->Trust();
  if (Badness(state) > Badness(hits.stream_state)) hits.stream_state = state;
}

void AddPlain(QueryAnswer& answer, const RowCard& card, std::uint64_t tokens) {
  InstanceHits& hits = answer.instances.emplace_back();
  hits.instance_id = card.instance_id();
  hits.best = {tokens, tokens, tokens, tokens};
  AddRank(hits, card, hits.best);
  if (hits.stream_state != StreamState::kLive) answer.degraded.push_back(hits.instance_id);
}

QueryAnswer AssemblePlain(std::span<const PlainRow> matched, const RowView& rows,
                          const QueryOptions& options) {
  QueryAnswer answer;
  answer.context_known = true;
  const std::size_t groups = rows.groups.size();
  const std::size_t most =
      options.top_k == 0 ? groups : std::min<std::size_t>(options.top_k, groups);
  answer.instances.reserve(options.min_tokens == 0 ? most : std::min(most, matched.size()));
  matched = matched.first(std::min(most, matched.size()));
  for (const PlainRow& row : matched) {
    if (row.tokens < options.min_tokens) return answer;
    AddPlain(answer, rows.cards[row.row], row.tokens);
  }
  if (options.min_tokens > 0 || matched.size() == most) return answer;
  // Those that matched nothing, by id.
  std::vector<bool> taken(groups);
  for (const PlainRow& row : matched) taken[rows.cards[row.row].group] = true;
  for (std::size_t group = 0; group < groups && answer.instances.size() < most; ++group) {
    if (!taken[group]) AddPlain(answer, rows.cards[rows.order[rows.groups[group].begin]], 0);
  }
  return answer;
}

}  // namespace

QueryAnswer AssembleAnswer(const TierCursors& cursors, const RowView& rows, std::size_t only_group,
                           const QueryOptions& options) {
  if (cursors.is_plain()) return AssemblePlain(cursors.plain_rows(), rows, options);
  QueryAnswer answer;
  answer.context_known = true;
  const std::vector<InstanceMatch> chosen = Choose(cursors, rows, only_group, options);
  answer.instances.reserve(chosen.size());
  for (const InstanceMatch& match : chosen) {
    const RowView::Group& group = rows.groups[match.group];
    InstanceHits& hits = answer.instances.emplace_back();
    hits.instance_id = rows.InstanceOf(group);
    hits.best = match.best;
    for (std::uint32_t i = group.begin; i < group.end; ++i) {
      const auto [counts, rests_on_degraded] = cursors.Of(rows.order[i]);
      AddRank(hits, rows.cards[rows.order[i]], counts);
      hits.rests_on_degraded = hits.rests_on_degraded || rests_on_degraded;
    }
    if (hits.stream_state != StreamState::kLive || hits.rests_on_degraded) {
      answer.degraded.push_back(hits.instance_id);
    }
  }
  return answer;
}

void RowMatchesFiller::Fill(TierCursors& cursors, const RowView& rows, std::size_t only_group,
                            const QueryOptions& options, RowMatches* matches) {
  Clear(matches);
  matches->rows_ = &rows;
  if (!cursors.is_plain()) {
    matches->others_ = Choose(cursors, rows, only_group, options);
    std::erase_if(matches->others_, [](const InstanceMatch& m) { return m.best.disk == 0; });
    return;
  }
  std::vector<PlainRow>& plain = matches->plain_;
  cursors.SwapPlainRows(&plain);
  if (options.top_k != 0 && options.top_k < plain.size()) plain.resize(options.top_k);
  while (!plain.empty() && plain.back().tokens < options.min_tokens) plain.pop_back();
}

void RowMatchesFiller::Clear(RowMatches* matches) {
  matches->rows_ = nullptr;
  matches->plain_.clear();
  matches->others_.clear();
}

}  // namespace conductor
