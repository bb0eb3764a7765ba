#include "cli/doctor.h"

#include <algorithm>
#include <utility>

#include "cli/doctor_stream.h"
#include "cli/views.h"

namespace conductor::cli {

namespace {

constexpr std::size_t kNamedContextsMax = 8;

// An automatic snapshot that is this many times as old as it should be does not come any more.
constexpr std::int64_t kLateIntervals = 4;

bool IsRebuilding(const Readiness& readiness) {
  return readiness.phase == "rebuilding" || readiness.phase == "loading_snapshot";
}

// They cost no hits today, but the next start.
void DiagnoseSnapshots(const StatusView& status, std::vector<Finding>& findings) {
  if (!status.snapshot_error.empty()) {
    findings.push_back({Severity::kWarning, "snapshots_failing", "",
                        "the last snapshot could not be made, so the log keeps growing and a start "
                        "takes longer: " +
                            status.snapshot_error});
  }
  const std::int64_t interval_ms = std::int64_t{status.snapshot_interval_s} * 1'000;
  const bool has_one = status.snapshot_age_ms >= 0;
  // Nothing has happened since: it is as good as a new one.
  if (has_one && status.log_applied <= status.snapshot_seq) return;
  if (status.snapshot_percent >= 0) return;  // here it comes
  const std::int64_t waiting_ms =
      has_one ? std::min(status.snapshot_age_ms, status.uptime_ms) : status.uptime_ms;
  if (interval_ms == 0 || status.log_applied == 0 || waiting_ms <= kLateIntervals * interval_ms) {
    return;
  }
  findings.push_back(
      {Severity::kWarning, "snapshot_late", "",
       (has_one ? "the newest snapshot is " + DescribeMs(status.snapshot_age_ms) + " old"
                : "there is no snapshot after " + DescribeMs(status.uptime_ms)) +
           ", and one is due every " + DescribeMs(interval_ms) +
           " (snapshot_interval_s); a start reads all the log since then"});
}

void DiagnoseService(const DoctorInput& input, std::vector<Finding>& findings) {
  const Readiness& readiness = input.status.readiness;
  if (!input.status.log_error.empty()) {
    findings.push_back(
        {Severity::kProblem, "log_failed", "",
         "the log takes no writes, so events and registrations wait: " + input.status.log_error});
  }
  if (const std::uint64_t gone = input.status.log_opening.missing_records; gone > 0) {
    findings.push_back({Severity::kWarning, "log_shortened", "",
                        std::to_string(gone) +
                            " records that had been on disk were gone when the log was opened: a "
                            "file is shorter than it was left; streams fetch what their publishers "
                            "still have, registrations made in them must be made again"});
  }
  for (const std::string& line : input.status.refused_statics) {
    findings.push_back({Severity::kProblem, "static_refused", "",
                        "a publisher of the configuration file was not registered: " + line});
  }
  if (IsRebuilding(readiness)) {
    findings.push_back({Severity::kProblem, "rebuilding", "",
                        "the index is being rebuilt from snapshot and log: " +
                            DescribeProgress(readiness) + "; queries wait for it"});
  } else if (readiness.phase == "catching_up") {
    findings.push_back({Severity::kWarning, "catching_up", "",
                        std::to_string(readiness.streams_waiting) +
                            " streams have not caught up yet since the start"});
  } else if (readiness.phase == "draining") {
    findings.push_back({Severity::kProblem, "draining", "", "the service is stopping"});
  }
  if (input.services.empty() && !IsRebuilding(readiness)) {
    findings.push_back({Severity::kProblem, "nothing_registered", "",
                        "no publisher is registered; use 'conductorctl register', HTTP /register "
                        "or kvevent_instance in the configuration"});
  }
}

std::string Known(const std::vector<ContextView>& contexts) {
  std::string text;
  for (std::size_t i = 0; i < contexts.size() && i < kNamedContextsMax; ++i) {
    text += (text.empty() ? "" : "; ") + Describe(contexts[i].key);
  }
  if (contexts.size() > kNamedContextsMax) {
    text += "; and " + std::to_string(contexts.size() - kNamedContextsMax) + " more";
  }
  return text.empty() ? "none" : text;
}

std::string SizesOf(const std::vector<ContextView>& contexts, const ContextKey& asked) {
  std::string sizes;
  for (const ContextView& view : contexts) {
    const ContextKey& key = view.key;
    if (key.model_name != asked.model_name || key.tenant_id != asked.tenant_id ||
        key.lora_name != asked.lora_name) {
      continue;
    }
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(key.block_size);
  }
  return sizes;
}

// Why there is no such context: the first of model, tenant, adapter, block size that is unknown.
Finding UnknownContext(const DoctorInput& input, const ContextKey& asked) {
  const auto any = [&](const auto& matches) {
    return std::any_of(input.contexts.begin(), input.contexts.end(),
                       [&](const ContextView& view) { return matches(view.key); });
  };
  const std::string known = " known ones are: " + Known(input.contexts);
  const auto model = [&](const ContextKey& key) { return key.model_name == asked.model_name; };
  const auto tenant = [&](const ContextKey& key) {
    return model(key) && key.tenant_id == asked.tenant_id;
  };
  const auto adapter = [&](const ContextKey& key) {
    return tenant(key) && key.lora_name == asked.lora_name;
  };
  const std::string subject = Describe(asked);
  if (!any(model)) {
    return {Severity::kProblem, "unknown_model", subject,
            "no context has the model '" + asked.model_name + "' (names are compared exactly);" +
                known};
  }
  if (!any(tenant)) {
    return {Severity::kProblem, "unknown_tenant", subject,
            "the model is known, but not for tenant '" + asked.tenant_id + "';" + known};
  }
  if (!any(adapter)) {
    return {Severity::kProblem, "unknown_adapter", subject,
            "the model is known, but not with adapter '" + asked.lora_name + "';" + known};
  }
  return {Severity::kProblem, "unknown_block_size", subject,
          "no index for block size " + std::to_string(asked.block_size) +
              ": this model has block size " + SizesOf(input.contexts, asked)};
}

void DiagnoseAnswer(const Probe& probe, std::vector<Finding>& findings) {
  const std::string subject = Describe(probe.context);
  std::uint64_t longest = 0;
  for (const InstanceHits& hits : probe.answer->instances) {
    longest = std::max(longest, hits.best.disk);
  }
  if (longest > 0) {
    findings.push_back({Severity::kInfo, "hit", subject,
                        "the best instance has " + std::to_string(longest) + " of " +
                            std::to_string(probe.token_count.value_or(0)) + " tokens"});
  } else {
    findings.push_back({Severity::kProblem, "no_hit", subject,
                        probe.answer->hint.empty()
                            ? "no instance has the first block of this prompt"
                            : probe.answer->hint});
  }
  for (const std::string& id : probe.answer->degraded) {
    findings.push_back({Severity::kWarning, "degraded_answer", id,
                        "its answer rests on a stream that is not live"});
  }
}

void DiagnoseProbe(const DoctorInput& input, const Probe& probe, std::vector<Finding>& findings) {
  const auto known =
      std::find_if(input.contexts.begin(), input.contexts.end(), [&](const ContextView& view) {
        return view.key == probe.context ||
               (!probe.block_size_given && view.key.model_name == probe.context.model_name &&
                view.key.tenant_id == probe.context.tenant_id &&
                view.key.lora_name == probe.context.lora_name);
      });
  if (known == input.contexts.end()) {
    findings.push_back(UnknownContext(input, probe.context));
    return;
  }
  const std::string subject = Describe(known->key);
  if (known->prefix_count == 0) {
    findings.push_back({Severity::kProblem, "empty_context", subject,
                        "the context is known but no instance holds a block in it"});
  }
  const bool whole_blocks = known->hash_profile.strategy == HashStrategy::kVllmV1;
  if (probe.token_count && whole_blocks && *probe.token_count < known->key.block_size) {
    findings.push_back({Severity::kProblem, "prompt_shorter_than_a_block", subject,
                        "the prompt has " + std::to_string(*probe.token_count) +
                            " tokens; vLLM caches whole blocks of " +
                            std::to_string(known->key.block_size) + " only"});
    return;
  }
  if (probe.answer) DiagnoseAnswer(probe, findings);
}

}  // namespace

std::string_view ToString(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kProblem:
      return "problem";
  }
  return "?";
}

std::vector<Finding> Diagnose(const DoctorInput& input) {
  std::vector<Finding> findings;
  DiagnoseService(input, findings);
  if (!IsRebuilding(input.status.readiness)) DiagnoseSnapshots(input.status, findings);
  for (const ServiceView& service : input.services) DiagnoseStream(service, findings);
  if (input.probe) DiagnoseProbe(input, *input.probe, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

}  // namespace conductor::cli
