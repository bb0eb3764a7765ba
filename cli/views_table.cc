#include <cstdio>
#include <ctime>

#include "cli/table.h"
#include "cli/views.h"

namespace conductor::cli {

namespace {

std::string Number(std::uint64_t value) {
  return std::to_string(value);
}

std::string Age(std::int64_t age_ms, const char* none) {
  return age_ms < 0 ? none : DescribeMs(age_ms);
}

std::uint64_t Blocks(const ServiceView& view) {
  std::uint64_t blocks = 0;
  for (const std::uint64_t count : view.blocks_by_tier) blocks += count;
  return blocks;
}

std::string Profile(const HashProfile& profile) {
  return std::string(ToString(profile.strategy)) + "/" + std::string(ToString(profile.algorithm)) +
         "/" + profile.python_hash_seed;
}

std::string Decimal(const char* format, double number) {
  char text[48];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

std::string Phase(const Readiness& readiness) {
  if (readiness.phase == "rebuilding" || readiness.phase == "loading_snapshot") {
    return readiness.phase + ", " + DescribeProgress(readiness);
  }
  if (readiness.streams_waiting == 0) return readiness.phase;
  return readiness.phase + ", " + Number(readiness.streams_waiting) + " streams";
}

std::string Snapshot(const StatusView& status) {
  std::string text = status.snapshot_age_ms < 0
                         ? "none"
                         : "at " + Number(status.snapshot_seq) + ", " +
                               DescribeMs(status.snapshot_age_ms) + " old, " +
                               Number(status.snapshot_bytes) + " bytes";
  if (status.snapshot_percent >= 0) {
    text += "; writing one, " + Decimal("%.0f %%", status.snapshot_percent);
  }
  return text;
}

// "2026-11-30 14:57:03", in UTC.
std::string Date(std::int64_t unix_ms) {
  if (unix_ms == 0) return "";
  const std::time_t seconds = unix_ms / 1'000;
  std::tm parts = {};
  char text[32];
  if (gmtime_r(&seconds, &parts) == nullptr) return "";
  return std::strftime(text, sizeof text, "%F %T", &parts) > 0 ? text : "";
}

std::string OfAtMost(std::uint64_t cap) {
  return cap == 0 ? ", no cap" : " of at most " + Number(cap);
}

std::string Lost(const ServiceView& view) {
  std::string text;
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < view.lost_ranges.size() && i < kShown; ++i) {
    const auto& [from, to] = view.lost_ranges[i];
    text += (text.empty() ? "" : ",") + Number(from) + "-" + Number(to);
  }
  return view.lost_ranges.size() > kShown ? text + ",..." : text;
}

}  // namespace

std::string Describe(const ContextKey& key) {
  std::string text = key.tenant_id + "/" + key.model_name + " (";
  if (!key.lora_name.empty()) text += "adapter " + key.lora_name + ", ";
  return text + "block size " + Number(key.block_size) + ")";
}

std::string DescribeMs(std::int64_t ms) {
  constexpr std::int64_t kSecond = 1'000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
  if (ms < kSecond) return std::to_string(ms) + " ms";
  if (ms < kMinute) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ms) / kSecond);
    return text;
  }
  if (ms < 2 * kHour) return std::to_string(ms / kMinute) + " min";
  return std::to_string(ms / kHour) + " h";
}

std::string DescribeProgress(const Readiness& readiness) {
  std::string text = Decimal("%.1f %%, ", readiness.percent) + Number(readiness.replayed) + " of " +
                     Number(readiness.total) + " records, " + Number(readiness.blocks_done) +
                     " blocks";
  if (readiness.blocks_per_s > 0) {
    text += ", " + Decimal("%.2f M blocks/s", readiness.blocks_per_s / 1e6);
  }
  if (readiness.seconds_left >= 0) {
    text += ", " + DescribeMs(static_cast<std::int64_t>(readiness.seconds_left * 1e3)) + " left";
  }
  return text;
}

std::string ToTable(const StatusView& status) {
  Table table({"what", "value"});
  table.AddRow({"version", status.version + " (" + status.commit + ")"});
  table.AddRow({"phase", Phase(status.readiness)});
  table.AddRow({"up for", DescribeMs(status.uptime_ms)});
  table.AddRow({"data directory", status.data_dir});
  table.AddRow({"ports", "http " + Number(status.http_port) + ", rpc " + Number(status.rpc_port)});
  table.AddRow({"log", Number(status.log_first) + ".." + Number(status.log_last) + ", synced to " +
                           Number(status.log_synced)});
  table.AddRow({"log error", status.log_error.empty() ? "none" : status.log_error});
  if (const LogOpening& opening = status.log_opening;
      opening.missing_records > 0 || opening.dropped_bytes > 0) {
    table.AddRow({"log opening", Number(opening.missing_records) + " synced records missing, " +
                                     Number(opening.dropped_bytes) + " bytes of a torn end dropped"});
  }
  table.AddRow({"digest", status.digest + " at " + Number(status.log_applied)});
  table.AddRow({"snapshot", Snapshot(status)});
  table.AddRow({"snapshot error", status.snapshot_error.empty() ? "none" : status.snapshot_error});
  table.AddRow({"registrations", Number(status.registrations)});
  table.AddRow({"contexts", Number(status.contexts)});
  table.AddRow({"blocks", Number(status.blocks) + OfAtMost(status.max_blocks)});
  table.AddRow({"fragments", Number(status.fragments)});
  table.AddRow({"index bytes", Number(status.index_bytes) + OfAtMost(status.max_bytes)});
  table.AddRow({"evicted blocks", Number(status.evicted_blocks)});
  table.AddRow({"queued frames", Number(status.queue_frames)});
  return table.ToText();
}

std::string ToTable(const std::vector<ServiceView>& services) {
  if (services.empty()) return "no publishers are registered\n";
  Table table({"instance", "tenant", "rank", "type", "model", "adapter", "block", "endpoint",
               "state", "hashes", "last frame", "blocks", "lost", "last error"});
  for (const ServiceView& view : services) {
    const Registration& r = view.registration;
    table.AddRow({r.instance_id, r.tenant_id, Number(r.dp_rank), std::string(ToString(r.type)),
                  r.model_name, r.lora_name, Number(r.block_size), r.endpoint,
                  std::string(ToString(view.status.state)), view.hash_check,
                  Age(view.status.last_frame_age_ms, "never"), Number(Blocks(view)), Lost(view),
                  view.status.last_error});
  }
  return table.ToText();
}

std::string ToStreamTable(const std::vector<ServiceView>& services) {
  if (services.empty()) return "no streams\n";
  Table table({"stream", "instance", "tenant", "rank", "origin", "epoch", "last seq",
               "history from", "lost", "hashes", "device", "cpu_local", "cpu_share", "disk"});
  const auto optional = [](const std::optional<std::uint64_t>& value) {
    return value ? Number(*value) : std::string();
  };
  for (const ServiceView& view : services) {
    const Registration& r = view.registration;
    const bool is_static = r.origin == RegistrationOrigin::kStatic;
    table.AddRow({Number(view.stream), r.instance_id, r.tenant_id, Number(r.dp_rank),
                  is_static ? "static " + r.static_name : "dynamic", Number(view.epoch),
                  optional(view.last_seq), optional(view.history_from), Lost(view), view.hash_check,
                  Number(view.blocks_by_tier[0]), Number(view.blocks_by_tier[1]),
                  Number(view.blocks_by_tier[2]), Number(view.blocks_by_tier[3])});
  }
  return table.ToText();
}

std::string ToTable(const std::vector<ContextView>& contexts) {
  if (contexts.empty()) return "no contexts: nothing is registered\n";
  Table table({"tenant", "model", "adapter", "block", "prefixes", "hash profile", "instances"});
  for (const ContextView& context : contexts) {
    std::string instances;
    for (const auto& [instance, ranks] : context.instances) {
      instances += (instances.empty() ? "" : " ") + instance + "[";
      for (const std::uint32_t rank : ranks) {
        instances += (instances.back() == '[' ? "" : ",") + Number(rank);
      }
      instances += "]";
    }
    table.AddRow({context.key.tenant_id, context.key.model_name, context.key.lora_name,
                  Number(context.key.block_size), Number(context.prefix_count),
                  Profile(context.hash_profile), instances});
  }
  return table.ToText();
}

std::string ToTable(const QueryAnswer& answer) {
  std::string text;
  if (!answer.instances.empty()) {
    Table table(
        {"instance", "rank", "longest", "device", "cpu_local", "cpu_share", "disk", "stream"});
    const auto add = [&](const std::string& instance, const std::string& rank,
                         const TierCounts& counts, const std::string& state) {
      table.AddRow({instance, rank, Number(counts.disk), Number(counts.device),
                    Number(counts.cpu_local), Number(counts.cpu_share), Number(counts.disk),
                    state});
    };
    for (const InstanceHits& hits : answer.instances) {
      add(hits.instance_id, "best", hits.best, std::string(ToString(hits.stream_state)));
      for (const auto& [rank, counts] : hits.ranks) {
        add(hits.instance_id, Number(rank), counts, "");
      }
    }
    text = table.ToText();
  } else {
    text = answer.context_known ? "no instances\n" : "unknown context\n";
  }
  if (!answer.hint.empty()) text += "hint: " + answer.hint + "\n";
  for (const ContextKey& key : answer.nearest_contexts) text += "known: " + Describe(key) + "\n";
  for (const std::string& id : answer.degraded) text += "not live: " + id + "\n";
  return text + "log position: " + Number(answer.log_seq) + "\n";
}

std::string ToTable(const std::vector<SnapshotInfo>& snapshots) {
  if (snapshots.empty()) return "no snapshots\n";
  Table table({"seq", "made (UTC)", "blocks", "bytes", "digest", "damage", "path"});
  for (const SnapshotInfo& snapshot : snapshots) {
    table.AddRow({Number(snapshot.seq), Date(snapshot.created_unix_ms), Number(snapshot.blocks),
                  Number(snapshot.bytes), snapshot.digest,
                  snapshot.damage.empty() ? "none" : snapshot.damage, snapshot.path});
  }
  return table.ToText();
}

}  // namespace conductor::cli
