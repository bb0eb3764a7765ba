#include "replay/snapshot_request.h"

#include "replay/wire/snapshot.h"

namespace conductor {

SnapshotAnswer::SnapshotAnswer(std::uint32_t rank)
    : rank_(rank), assembler_(std::make_unique<SnapshotAssembler>()) {}
SnapshotAnswer::~SnapshotAnswer() = default;
SnapshotAnswer::SnapshotAnswer(SnapshotAnswer&&) noexcept = default;

Result<bool> SnapshotAnswer::Add(std::span<const MessagePart> parts) {
  auto reply = ParseSnapshotReply(parts);
  if (!reply) {
    Error error = std::move(reply.error());
    if (!error.message.starts_with("snapshot")) error.message.insert(0, "snapshot: ");
    return tl::unexpected(std::move(error));
  }
  links_ += reply->links.size();
  if (links_ > kSnapshotBlocksMax) {
    return MakeError(
        ErrorCode::kResourceExhausted,
        "snapshot: expected at most " + std::to_string(kSnapshotBlocksMax) + " blocks, got more");
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const bool whole, assembler_->Add(std::move(*reply)));
  const SnapshotHeader& header = assembler_->header();
  // Another rank's blocks would be hits that nobody has.
  if (header.replica_rank != rank_) {
    return MakeError(ErrorCode::kInvalidArgument,
                     "snapshot: rank: expected " + std::to_string(rank_) + " (registered), got " +
                         std::to_string(header.replica_rank));
  }
  if (epoch_.empty()) {
    resume_number_ = header.resume_seq;
    epoch_ = header.epoch;
  }
  return whole;
}

std::vector<std::pair<std::optional<BlockName>, BlockName>> SnapshotAnswer::TakeLinks() {
  return assembler_->TakeLinks();
}

std::array<std::string, 2> SnapshotRequestParts() {
  return BuildSnapshotRequest();
}

}  // namespace conductor
