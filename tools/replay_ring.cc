#include "tools/replay_ring.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "src/check.h"

namespace conductor::enginesim {
namespace {

using Kind = ReplayMode::Kind;

struct ModeWord {
  Kind kind;
  std::string_view word;
  bool takes_number;
  bool needs_number;
};

constexpr std::array<ModeWord, 7> kModes{{
    {Kind::kOk, "ok", false, false},
    {Kind::kLate, "late", true, true},
    {Kind::kCut, "cut", true, true},
    {Kind::kCutEnd, "cut_end", true, true},
    {Kind::kNever, "never", false, false},
    {Kind::kNoEndMarker, "no_end_marker", false, false},
    {Kind::kHole, "hole", true, false},
}};

}  // namespace

Result<ReplayMode> ParseReplayMode(std::string_view text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space);
  const std::string_view digits = space < text.size() ? text.substr(space + 1) : "";
  for (const ModeWord& entry : kModes) {
    if (entry.word != word) continue;
    ReplayMode mode{entry.kind, std::nullopt};
    if (digits.empty() && space == text.size() && !entry.needs_number) return mode;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (!entry.takes_number || error != std::errc{} || end != digits.data() + digits.size()) break;
    if (entry.kind == Kind::kLate && number > kLateMsMax) break;
    mode.number = number;
    return mode;
  }
  return MakeError(ErrorCode::kInvalidArgument,
                   "replay mode: expected ok, late MS, cut N, cut_end N, never, no_end_marker or "
                   "hole [INDEX], got '" +
                       std::string(text) + "'");
}

std::string ToString(const ReplayMode& mode) {
  std::string text(kModes[static_cast<std::size_t>(mode.kind)].word);
  if (mode.number) text += " " + std::to_string(*mode.number);
  return text;
}

std::string EncodeSeq(std::uint64_t seq) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(seq >> (8 * (7 - i)));
  return bytes;
}

void ReplayRing::Append(Batch batch) {
  CHECK(batches_.empty() || batches_.back().seq < batch.seq);
  if (batches_max_ == 0) return;
  if (batches_.size() == batches_max_) batches_.pop_front();
  batches_.push_back(std::move(batch));
}

std::optional<std::uint64_t> ReplayRing::ParseRequest(const Message& request) {
  if (request.size() != 3) return std::nullopt;
  std::uint64_t start = 0;
  for (const char byte : request[2]) {
    // Beyond 64 bits Python would go on counting: larger than every number there is.
    if ((start >> 56) != 0) return kEndMarkerSeq;
    start = (start << 8) | static_cast<std::uint8_t>(byte);
  }
  return start;
}

std::vector<Message> ReplayRing::Answer(std::uint64_t start, const ReplayMode& mode,
                                        ReplayLayout layout, const std::string& topic) const {
  std::vector<Message> answer;
  if (mode.kind == Kind::kNever) return answer;
  const bool with_topic = layout == ReplayLayout::kTopicSeqPayload;
  const auto from =
      std::lower_bound(batches_.begin(), batches_.end(), start,
                       [](const Batch& batch, std::uint64_t seq) { return batch.seq < seq; });
  for (auto batch = from; batch != batches_.end(); ++batch) {
    Message message{""};
    if (with_topic) message.push_back(topic);
    message.push_back(EncodeSeq(batch->seq));
    message.push_back(*batch->payload);
    answer.push_back(std::move(message));
  }

  const bool cut = mode.kind == Kind::kCut || mode.kind == Kind::kCutEnd;
  if (cut && *mode.number < answer.size()) answer.resize(*mode.number);
  if (mode.kind == Kind::kHole) {
    const std::uint64_t hole = mode.number.value_or(answer.size() / 2);
    if (hole < answer.size()) answer.erase(answer.begin() + static_cast<std::ptrdiff_t>(hole));
  }
  if (mode.kind == Kind::kCut || mode.kind == Kind::kNoEndMarker) return answer;
  Message end{""};
  if (with_topic) end.emplace_back();
  end.push_back(EncodeSeq(kEndMarkerSeq));
  end.emplace_back();
  answer.push_back(std::move(end));
  return answer;
}

std::optional<std::uint64_t> ReplayRing::first() const {
  return batches_.empty() ? std::nullopt : std::optional(batches_.front().seq);
}

std::optional<std::uint64_t> ReplayRing::last() const {
  return batches_.empty() ? std::nullopt : std::optional(batches_.back().seq);
}

}  // namespace conductor::enginesim
