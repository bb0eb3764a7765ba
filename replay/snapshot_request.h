// A request for a publisher's own snapshot (SGLang), and its answer message by message. The
// domain's types only: the wire's stay behind it. A snapshot is whole or it is nothing. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/messages.h"
#include "src/limits.h"
#include "src/types.h"

namespace conductor {

// Blocks of one snapshot: it is one record of the log, and most of them become fragments there.
inline constexpr std::size_t kSnapshotBlocksMax = kFragmentsMax;

class SnapshotAssembler;

class SnapshotAnswer {
 public:
  explicit SnapshotAnswer(std::uint32_t rank);  // that the publisher is registered with
  ~SnapshotAnswer();
  SnapshotAnswer(SnapshotAnswer&&) noexcept;

  // True: it is whole. An error ends it; the text names what was expected.
  Result<bool> Add(std::span<const MessagePart> parts);

  // From the first message that was added without an error.
  std::uint64_t resume_number() const { return resume_number_; }
  const std::string& epoch() const { return epoch_; }
  std::vector<std::pair<std::optional<BlockName>, BlockName>> TakeLinks();

 private:
  const std::uint32_t rank_;
  std::unique_ptr<SnapshotAssembler> assembler_;  // behind a pointer to keep the wire out of here
  std::size_t links_ = 0;
  std::uint64_t resume_number_ = 0;
  std::string epoch_;
};

// What a DEALER sends.
std::array<std::string, 2> SnapshotRequestParts();

}  // namespace conductor
