// SGLang's snapshot messages: a publisher of the newest releases tells on request what its device
// holds, when the past that its replay keeps is not enough. Bytes in, values out; no socket.
//
// A snapshot is one header, chunks, and an end; or an error at any time. Its records carry neither
// tokens nor media. It replaces what is known of the publisher, so one bad record refuses its
// message, and a snapshot counts only when SnapshotAssembler says it is whole: nothing is guessed.
//
// Failures are INVALID_ARGUMENT with a word of wire_reason.h or of ToString(MsgpackFault). Any
// thread; an assembler belongs to one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "replay/wire/frame.h"
#include "replay/wire/wire_limits.h"
#include "src/result.h"
#include "src/types.h"

namespace conductor {

struct SnapshotHeader {
  std::string epoch;  // hex digits; as behind the NUL of the live topic
  std::uint64_t replica_rank = 0;
  // The snapshot holds what the frames below this number say; go on from it.
  std::uint64_t resume_seq = 0;
  // The empty batch that was published for it, with the id behind its topic's second NUL.
  std::uint64_t barrier_seq = 0;
  std::string barrier_id;
  std::uint64_t record_count = 0;
};

// A block and what it follows; no parent: it starts a prompt.
using SnapshotLink = std::pair<std::optional<BlockName>, BlockName>;

struct SnapshotReply {
  enum class Kind : std::uint8_t { kHeader = 1, kChunk = 2, kEnd = 3, kError = 4 };

  Kind kind = Kind::kEnd;
  SnapshotHeader header;            // kHeader
  std::vector<SnapshotLink> links;  // kChunk, in the publisher's order
  std::uint64_t records = 0;        // kChunk: a record of several blocks is several links
  std::string error;                // kError: at most kSnapshotErrorBytesMax of it
};

// The parts a DEALER sends.
std::array<std::string, 2> BuildSnapshotRequest();

// A message as a DEALER socket delivers it: delimiter, word, body.
Result<SnapshotReply> ParseSnapshotReply(std::span<const ByteView> parts,
                                         const WireLimits& limits = {});

// Puts the replies of one request together.
class SnapshotAssembler {
 public:
  // True: the snapshot is whole. After a failure, an error of the publisher included, it is given
  // up; ask again with a fresh assembler.
  Result<bool> Add(SnapshotReply&& reply);

  // Of a whole snapshot.
  const SnapshotHeader& header() const { return *header_; }
  std::vector<SnapshotLink> TakeLinks() { return std::move(links_); }

 private:
  std::optional<SnapshotHeader> header_;
  std::vector<SnapshotLink> links_;
  std::uint64_t records_ = 0;  // Invariant: records_ <= header_->record_count.
  bool ended_ = false;         // whole, or given up
};

}  // namespace conductor
