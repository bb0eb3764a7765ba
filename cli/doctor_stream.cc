#include "cli/doctor_stream.h"

#include <string>
#include <string_view>

#include "cli/views.h"
#include "src/state/stream_facts.h"

namespace conductor::cli {

namespace {

std::uint64_t Counter(const ServiceView& service, std::string_view name) {
  for (const auto* counters : {&service.counters, &service.status.counters}) {
    for (const auto& [key, value] : *counters) {
      if (key == name) return value;
    }
  }
  return 0;
}

std::uint64_t Ignored(const ServiceView& service, IgnoreReason reason) {
  return Counter(service, "ignored_" + std::string(ToString(reason)) + "_total");
}

class StreamDoctor {
 public:
  StreamDoctor(const ServiceView& service, std::vector<Finding>& findings)
      : service_(service),
        registration_(service.registration),
        subject_(registration_.instance_id + "|" + registration_.tenant_id + "|" +
                 std::to_string(registration_.dp_rank)),
        findings_(findings) {}

  void Connection() {
    const StreamStatus& status = service_.status;
    if (status.state == StreamState::kConnecting) {
      Add(Severity::kProblem, "connecting",
          (status.last_error.empty() ? "nobody answers at " + registration_.endpoint
                                     : status.last_error) +
              (status.last_frame_age_ms < 0
                   ? std::string()
                   : "; its last frame came " + DescribeMs(status.last_frame_age_ms) + " ago") +
              "; is the engine up, is this its KV-event port and is it reachable from here?");
    } else if (status.disconnected_for_ms >= 0) {
      Add(Severity::kWarning, "disconnected",
          "the publisher has been away for " + DescribeMs(status.disconnected_for_ms) +
              (status.last_error.empty() ? "" : "; the last error was: " + status.last_error));
    }
    const bool ever =
        service_.last_seq || Counter(service_, "frames_total") > 0 || status.last_frame_age_ms >= 0;
    if (!ever && status.state != StreamState::kConnecting) {
      Add(Severity::kProblem, "never_seen_a_frame",
          "connected to " + registration_.endpoint +
              ", but it never sent a frame: are KV events switched on in the engine, and has it "
              "served a prompt of at least one block?" +
              Topic());
    }
    if (status.state == StreamState::kCatchingUp) {
      Add(Severity::kInfo, "catching_up", "past frames are being fetched");
    }
  }

  void Frames() {
    Count(IgnoreReason::kUndecodableFrame, Severity::kProblem, "decode_errors",
          "frames could not be decoded; is the type (" + std::string(ToString(registration_.type)) +
              ") right, and is this the KV-event port?");
    Count(IgnoreReason::kUndecodableEvent, Severity::kProblem, "decode_errors",
          "events could not be decoded; the engine's release may be one this service does not "
          "know");
    Count(IgnoreReason::kRankMismatch, Severity::kProblem, "rank_mismatch",
          "frames say another data-parallel rank than the registered " +
              std::to_string(registration_.dp_rank) +
              "; each rank publishes on a port of its own (the first port + rank)");
    Count(IgnoreReason::kBlockSizeMismatch, Severity::kProblem, "block_size_mismatch",
          "events say another block size than the registered " +
              std::to_string(registration_.block_size) +
              " and were rejected; register the block size the engine resolved");
    Count(IgnoreReason::kAmbiguousLength, Severity::kProblem, "ambiguous_length",
          "events have token counts that do not fit their hashes and the registered block size " +
              std::to_string(registration_.block_size));
    Count(IgnoreReason::kTopicMismatch, Severity::kProblem, "topic_mismatch",
          "frames came with another topic than the registered '" + registration_.topic + "'");
    Count(IgnoreReason::kSecondPublisher, Severity::kProblem, "second_publisher",
          "frames of a second publisher on this endpoint were rejected");
    Count(IgnoreReason::kUnsupported, Severity::kProblem, "unsupported",
          "events are of a kind this release does not serve");
    Count(IgnoreReason::kUnparsableKey, Severity::kWarning, "unparsable_key",
          "store objects have keys that name no block");
    Count(IgnoreReason::kUnknownMedium, Severity::kWarning, "unknown_medium",
          "events name a storage medium this release does not know");
    Count(IgnoreReason::kOtherGroup, Severity::kInfo, "other_group",
          "events belong to a cache group that does not make prefix hits");
    Count(IgnoreReason::kPartialEntry, Severity::kInfo, "partial_entries",
          "events are about parts of blocks");
    Count(IgnoreReason::kRemote, Severity::kInfo, "remote",
          "events are about blocks held elsewhere");
  }

  void Hashes() {
    const HashProfile& profile = registration_.hash_profile;
    if (service_.hash_check == "mismatch") {
      Add(Severity::kProblem, "hash_mismatch",
          "the engine's block hashes are not those of the registered profile (" +
              std::string(ToString(profile.strategy)) + ", " +
              std::string(ToString(profile.algorithm)) + ", seed '" + profile.python_hash_seed +
              "'): check PYTHONHASHSEED and the engine's prefix-caching hash algorithm; hits by "
              "tokens may work, pool objects will not");
    } else if (service_.hash_check == "unknown" &&
               service_.registration.type != PublisherType::kMooncake &&
               Counter(service_, "blocks_stored_total") > 0) {
      Add(Severity::kWarning, "hash_not_verified",
          "blocks were stored, but no hash could be compared: the events carry no tokens, or no "
          "chain from a prompt's first block; such blocks match by their hash only");
    }
  }

  void Losses() {
    if (!service_.lost_ranges.empty()) {
      const auto& [from, to] = service_.lost_ranges.back();
      Add(Severity::kWarning, "lost_events",
          std::to_string(service_.lost_ranges.size()) + " lost ranges, the last one " +
              std::to_string(from) + "-" + std::to_string(to) +
              ": hits may be missed or stale until the publisher starts a new life or clears" +
              Replay());
    } else if (service_.status.state == StreamState::kDegraded) {
      Add(Severity::kWarning, "degraded",
          "the stream is degraded" + (service_.status.last_error.empty()
                                          ? std::string()
                                          : ": " + service_.status.last_error));
    }
    if (service_.history_from && *service_.history_from > 0) {
      Add(Severity::kInfo, "joined_late",
          "what was published before number " + std::to_string(*service_.history_from) +
              " is not known; hits on it are missed" + Replay());
    }
    if (const std::uint64_t evicted = Counter(service_, "evictions_total"); evicted > 0) {
      Add(Severity::kWarning, "evicted",
          std::to_string(evicted) +
              " blocks were given up to stay below limits.max_blocks / limits.max_bytes");
    }
  }

  void Blocks() {
    std::uint64_t blocks = 0;
    for (const std::uint64_t count : service_.blocks_by_tier) blocks += count;
    if (blocks > 0 || Counter(service_, "frames_total") == 0) return;
    Add(Severity::kWarning, "no_blocks",
        "frames arrive, but it holds no block now: stored " +
            std::to_string(Counter(service_, "blocks_stored_total")) + ", removed " +
            std::to_string(Counter(service_, "blocks_removed_total")) + ", cleared " +
            std::to_string(Counter(service_, "clears_total")) + " times, rejected " +
            std::to_string(Counter(service_, "blocks_rejected_total")));
  }

 private:
  void Add(Severity severity, std::string code, std::string text) {
    findings_.push_back({severity, std::move(code), subject_, std::move(text)});
  }
  void Count(IgnoreReason reason, Severity severity, std::string code, const std::string& text) {
    const std::uint64_t count = Ignored(service_, reason);
    if (count > 0) Add(severity, std::move(code), std::to_string(count) + " " + text);
  }
  std::string Topic() const {
    return registration_.has_topic ? " Only topic '" + registration_.topic + "' is read." : "";
  }
  std::string Replay() const {
    return registration_.replay_endpoint.empty()
               ? "; with a replay_endpoint it could have been fetched"
               : "";
  }

  const ServiceView& service_;
  const Registration& registration_;
  const std::string subject_;
  std::vector<Finding>& findings_;
};

}  // namespace

void DiagnoseStream(const ServiceView& service, std::vector<Finding>& findings) {
  StreamDoctor doctor(service, findings);
  doctor.Connection();
  doctor.Frames();
  doctor.Hashes();
  doctor.Losses();
  doctor.Blocks();
}

}  // namespace conductor::cli
