#include "cli/config_limits.h"

#include <cstdint>
#include <limits>
#include <variant>

namespace conductor::cli {

namespace {

using Size = std::size_t Limits::*;
using Number = std::uint32_t Limits::*;
static_assert(sizeof(std::size_t) == sizeof(std::uint64_t), "max_blocks is read as a size");

struct Field {
  const char* name;
  std::variant<Size, Number> member;
  IntegerRange range;
};

constexpr std::int64_t kKiB = 1 << 10;
constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = 1 << 30;
constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kCountMax = 1'000'000'000;
constexpr std::int64_t kCapMax = std::numeric_limits<std::int64_t>::max();
// An index that may hold less answers nothing useful, and the empty one has some size of its own.
constexpr std::uint64_t kMaxBlocksMin = 1'000;
constexpr std::uint64_t kMaxBytesMin = 16 * kMiB;

const std::vector<Field>& Fields() {
  // Lower bounds keep the service usable: a limit below them would refuse everything.
  static const std::vector<Field> fields = {
      {"body_bytes_max", &Limits::body_bytes_max, {kKiB, 2 * kGiB}},
      {"header_bytes_max", &Limits::header_bytes_max, {kKiB, kMiB}},
      {"request_send_ms_max", &Limits::request_send_ms_max, {100, kHourMs}},
      {"tokens_max", &Limits::tokens_max, {1, 100'000'000}},
      {"batch_prompts_max", &Limits::batch_prompts_max, {1, 1'000'000}},
      {"http_threads", &Limits::http_threads, {1, 1'024}},
      {"rpc_message_bytes_max", &Limits::rpc_message_bytes_max, {kKiB, 2 * kGiB - 1}},
      {"heartbeat_interval_ms", &Limits::heartbeat_interval_ms, {10, kHourMs}},
      {"heartbeat_dead_ms", &Limits::heartbeat_dead_ms, {10, kHourMs}},
      {"reconnect_ms_min", &Limits::reconnect_ms_min, {1, kHourMs}},
      {"reconnect_ms_max", &Limits::reconnect_ms_max, {1, kHourMs}},
      {"replay_first_reply_ms", &Limits::replay_first_reply_ms, {1, kHourMs}},
      {"replay_progress_ms", &Limits::replay_progress_ms, {1, kHourMs}},
      {"replay_attempts_max", &Limits::replay_attempts_max, {1, 1'000}},
      {"replay_probe_ms_max", &Limits::replay_probe_ms_max, {1, 24 * kHourMs}},
      {"replays_concurrent_max", &Limits::replays_concurrent_max, {1, 16'384}},
      {"replay_jitter_ms_max", &Limits::replay_jitter_ms_max, {0, kHourMs}},
      {"first_catch_up_ms_max", &Limits::first_catch_up_ms_max, {0, kHourMs}},
      {"buffered_frames_per_stream_max", &Limits::buffered_frames_per_stream_max, {1, kCountMax}},
      {"buffered_bytes_per_stream_max", &Limits::buffered_bytes_per_stream_max, {kKiB, 64 * kGiB}},
      {"payload_bytes_max", &Limits::payload_bytes_max, {kKiB, kGiB / 2}},
      {"registrations_max", &Limits::registrations_max, {1, 1'000'000}},
      {"stream_threads", &Limits::stream_threads, {1, 64}},
      {"queue_frames_max", &Limits::queue_frames_max, {1, kCountMax}},
      {"queue_bytes_max", &Limits::queue_bytes_max, {kMiB, 64 * kGiB}},
      {"queue_commands_max", &Limits::queue_commands_max, {1, kCountMax}},
      {"group_frames_max", &Limits::group_frames_max, {1, 1'000'000}},
      {"group_bytes_max", &Limits::group_bytes_max, {kKiB, kGiB / 2}},
      {"unsynced_bytes_max", &Limits::unsynced_bytes_max, {kKiB, 64 * kGiB}},
      {"snapshot_buffer_bytes_max", &Limits::snapshot_buffer_bytes_max, {kMiB, 64 * kGiB}},
      {"snapshot_set_aside_bytes_max", &Limits::snapshot_set_aside_bytes_max, {kMiB, 1024 * kGiB}},
      {"max_blocks", &Limits::max_blocks, {0, kCapMax}},
      {"max_bytes", &Limits::max_bytes, {0, kCapMax}},
  };
  return fields;
}

Status CheckOrder(const std::string& path, const char* low, std::uint64_t low_value,
                  const char* high, std::uint64_t high_value) {
  if (low_value <= high_value) return {};
  return InvalidField("out_of_range", path + "." + low,
                      path + "." + low + ": expected at most " + high + " (" +
                          std::to_string(high_value) + "), got " + std::to_string(low_value));
}

// 0 is no cap.
Status CheckCap(const std::string& path, const char* name, std::uint64_t value,
                std::uint64_t value_min) {
  if (value == 0 || value >= value_min) return {};
  return InvalidField("out_of_range", path + "." + name,
                      path + "." + name + ": expected 0 (no cap) or at least " +
                          std::to_string(value_min) + ", got " + std::to_string(value));
}

}  // namespace

std::vector<std::string> LimitNames() {
  std::vector<std::string> names;
  for (const Field& field : Fields()) names.emplace_back(field.name);
  return names;
}

Status ReadLimits(const Json& json, const std::string& path, Limits* limits) {
  JsonFields fields(json, path);
  for (const Field& field : Fields()) {
    std::visit(
        [&](auto member) {
          auto value = static_cast<std::int64_t>(limits->*member);
          fields.Integer(field.name, field.range, &value);
          limits->*member = static_cast<std::remove_reference_t<decltype(limits->*member)>>(value);
        },
        field.member);
  }
  CONDUCTOR_RETURN_IF_ERROR(fields.Finish());
  CONDUCTOR_RETURN_IF_ERROR(CheckCap(path, "max_blocks", limits->max_blocks, kMaxBlocksMin));
  CONDUCTOR_RETURN_IF_ERROR(CheckCap(path, "max_bytes", limits->max_bytes, kMaxBytesMin));
  CONDUCTOR_RETURN_IF_ERROR(CheckOrder(path, "reconnect_ms_min", limits->reconnect_ms_min,
                                       "reconnect_ms_max", limits->reconnect_ms_max));
  CONDUCTOR_RETURN_IF_ERROR(CheckOrder(path, "heartbeat_interval_ms", limits->heartbeat_interval_ms,
                                       "heartbeat_dead_ms", limits->heartbeat_dead_ms));
  return CheckOrder(path, "payload_bytes_max", limits->payload_bytes_max, "queue_bytes_max",
                    limits->queue_bytes_max);
}

}  // namespace conductor::cli
