// The publisher's memory of its recent batches, and what its replay socket answers from it.
//
// Pure: the answer to a request is computed here as a list of messages, faults included, and the
// publisher only sends it. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"
#include "tools/zmq_socket.h"

namespace conductor::enginesim {

inline constexpr std::uint64_t kLateMsMax = 600'000;

// Data messages behind the empty delimiter: `seq, payload` (vLLM before mid 2026, SGLang), or
// `topic, seq, payload` (later vLLM). The end marker of the later layout has an empty topic.
enum class ReplayLayout : std::uint8_t { kSeqPayload, kTopicSeqPayload };

// How a replay request is answered.
struct ReplayMode {
  enum class Kind : std::uint8_t {
    kOk,           // every batch from the asked number on, then the end marker
    kLate,         // the same, `number` ms after the request came
    kCut,          // the first `number` batches, then nothing at all
    kCutEnd,       // the first `number` batches, then the end marker
    kNever,        // no reply
    kNoEndMarker,  // every batch, no end marker
    kHole,         // without the batch at index `number` of the answer; none: the middle one
  };
  Kind kind = Kind::kOk;
  std::optional<std::uint64_t> number{};
};

// "ok", "late 500", "cut 2", "cut_end 2", "never", "no_end_marker", "hole", "hole 1".
Result<ReplayMode> ParseReplayMode(std::string_view text);
std::string ToString(const ReplayMode& mode);

using Payload = std::shared_ptr<const std::string>;  // shared by the send queue and the ring

struct Batch {
  std::uint64_t seq = 0;
  Payload payload{};
};

// The 8 bytes, big-endian, by which the wire writes a sequence number.
std::string EncodeSeq(std::uint64_t seq);

// The number of the end marker: (-1) signed.
inline constexpr std::uint64_t kEndMarkerSeq = ~std::uint64_t{0};

class ReplayRing {
 public:
  explicit ReplayRing(std::size_t batches_max) : batches_max_(batches_max) {}

  // `seq` is above every number in the ring. The oldest batch falls out when the ring is full.
  void Append(Batch batch);
  void Clear() { batches_.clear(); }

  // The start of a request as the ROUTER received it: exactly identity, one ignored frame, start.
  // Anything else gets no reply. The start is a big-endian number of any length.
  static std::optional<std::uint64_t> ParseRequest(const Message& request);

  // The messages for one peer, without its identity frame.
  std::vector<Message> Answer(std::uint64_t start, const ReplayMode& mode, ReplayLayout layout,
                              const std::string& topic) const;

  std::size_t size() const { return batches_.size(); }
  std::optional<std::uint64_t> first() const;
  std::optional<std::uint64_t> last() const;

 private:
  std::size_t batches_max_;
  std::deque<Batch> batches_;  // Invariant: numbers strictly ascend.
};

}  // namespace conductor::enginesim
