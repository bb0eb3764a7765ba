#include "python/native/to_python.h"

#include <array>
#include <optional>

namespace conductor::python {
namespace {

namespace py = pybind11;

constexpr std::size_t kRankKeysKept = 64;

// Texts come from a server; one that is not UTF-8 is replaced, never an exception.
py::str ToText(std::string_view text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

py::dict ToProfile(const HashProfile& profile) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string root;
  for (std::uint8_t byte : profile.root_digest) {
    root.push_back(kDigits[byte >> 4]);
    root.push_back(kDigits[byte & 15]);
  }
  py::dict out;
  out["strategy"] = ToText(ToString(profile.strategy));
  out["algorithm"] = ToText(ToString(profile.algorithm));
  out["python_hash_seed"] = ToText(profile.python_hash_seed);
  out["root_digest"] = ToText(root);
  out["index_projection"] = ToText(IndexProjection(profile.strategy));
  return out;
}

// The keys of an answer, made once for the life of the process: a query's answer has hundreds.
struct HitKeys {
  PyObject* const longest_matched = PyUnicode_InternFromString("longest_matched");
  PyObject* const dp = PyUnicode_InternFromString("dp");
  PyObject* const rank_matches = PyUnicode_InternFromString("rank_matches");
  PyObject* const device = PyUnicode_InternFromString("device");
  PyObject* const cpu_local = PyUnicode_InternFromString("cpu_local");
  PyObject* const cpu_share = PyUnicode_InternFromString("cpu_share");
  PyObject* const disk = PyUnicode_InternFromString("disk");
  PyObject* const stream_state = PyUnicode_InternFromString("stream_state");
};

const HitKeys& Keys() {
  static const HitKeys keys;  // the first call has the GIL, as every other
  return keys;
}

void Put(PyObject* dict, PyObject* key, PyObject* value) {
  if (value == nullptr || PyDict_SetItem(dict, key, value) != 0) throw py::error_already_set();
}

// Makes the ints of an answer. Most of its counts are one and the same number: that is made once.
class Counts {
 public:
  // Borrowed until the next call.
  PyObject* Of(std::uint64_t value) {
    if (!number_ || value != value_) {
      number_ = py::reinterpret_steal<py::object>(PyLong_FromUnsignedLongLong(value));
      value_ = value;
    }
    return number_.ptr();  // null (out of memory): Put says so
  }

 private:
  std::uint64_t value_ = 0;
  py::object number_;
};

void PutTiers(const TierCounts& tiers, Counts* counts, PyObject* out) {
  const HitKeys& keys = Keys();
  Put(out, keys.device, counts->Of(tiers.device));
  Put(out, keys.cpu_local, counts->Of(tiers.cpu_local));
  Put(out, keys.cpu_share, counts->Of(tiers.cpu_share));
  Put(out, keys.disk, counts->Of(tiers.disk));
}

// The dict of an instance with every key of a plain answer: a copy of it is filled without growing.
PyObject* EmptyHits() {
  static PyObject* const empty = [] {
    const HitKeys& keys = Keys();
    PyObject* const dict = PyDict_New();
    for (PyObject* key : {keys.longest_matched, keys.dp, keys.rank_matches, keys.device,
                          keys.cpu_local, keys.cpu_share, keys.disk}) {
      Put(dict, key, Py_None);
    }
    return dict;
  }();
  return empty;
}

py::dict NewHits() {
  PyObject* const copy = PyDict_Copy(EmptyHits());
  if (copy == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::dict>(copy);
}

// "0", "1", ...: the usual ranks are made once.
py::object RankKey(std::uint32_t rank) {
  static std::array<PyObject*, kRankKeysKept> kept{};
  if (rank >= kept.size()) return py::str(std::to_string(rank));
  if (kept[rank] == nullptr) kept[rank] = py::str(std::to_string(rank)).release().ptr();
  return py::reinterpret_borrow<py::object>(kept[rank]);
}

py::object ToOptional(const std::optional<std::uint64_t>& value) {
  return value ? py::object(py::int_(*value)) : py::object(py::none());
}

void PutCounters(const std::vector<std::pair<std::string, std::uint64_t>>& counters,
                 py::dict* out) {
  for (const auto& [name, value] : counters) (*out)[ToText(name)] = value;
}

void PutServiceDetail(const ServiceView& view, py::dict* out) {
  const Registration& registration = view.registration;
  (*out)["SnapshotEndpoint"] = ToText(registration.snapshot_endpoint);
  (*out)["Topic"] =
      registration.has_topic ? py::object(ToText(registration.topic)) : py::object(py::none());
  py::dict parts;
  for (const auto& [name, total] : registration.pool_parts) parts[ToText(name)] = total;
  (*out)["PoolParts"] = parts;
  (*out)["StreamState"] = ToText(ToString(view.status.state));
  (*out)["Epoch"] = view.epoch;
  (*out)["LastSeq"] = ToOptional(view.last_seq);
  (*out)["HistoryFrom"] = ToOptional(view.history_from);
  py::list ranges;
  for (const auto& [from, to] : view.lost_ranges) {
    py::list range;
    range.append(from);
    range.append(to);
    ranges.append(range);
  }
  (*out)["LostRanges"] = ranges;
  (*out)["HashCheck"] = ToText(view.hash_check);
  (*out)["LastFrameAgeMs"] = view.status.last_frame_age_ms;
  (*out)["DisconnectedForMs"] = view.status.disconnected_for_ms;
  (*out)["LastError"] = ToText(view.status.last_error);
  py::dict counters;
  PutCounters(view.counters, &counters);
  PutCounters(view.status.counters, &counters);
  (*out)["Counters"] = counters;
}

}  // namespace

py::tuple ToFailure(const Error& error) {
  return py::make_tuple(static_cast<int>(error.code), ToText(error.reason), ToText(error.field),
                        ToText(error.message));
}

py::dict ToHits(const QueryAnswer& answer, bool detail) {
  const HitKeys& keys = Keys();
  Counts counts;
  py::dict hits;
  for (const auto& instance : answer.instances) {
    const py::dict out = NewHits();
    const py::dict dp, ranks;
    Put(out.ptr(), keys.longest_matched, counts.Of(instance.best.disk));
    for (const auto& [rank, tiers] : instance.ranks) {
      const py::object key = RankKey(rank);
      Put(dp.ptr(), key.ptr(), counts.Of(tiers.device));
      const py::dict match;
      PutTiers(tiers, &counts, match.ptr());
      Put(ranks.ptr(), key.ptr(), match.ptr());
    }
    Put(out.ptr(), keys.dp, dp.ptr());
    Put(out.ptr(), keys.rank_matches, ranks.ptr());
    PutTiers(instance.best, &counts, out.ptr());
    if (detail) {
      Put(out.ptr(), keys.stream_state, ToText(ToString(instance.stream_state)).ptr());
    }
    Put(hits.ptr(), ToText(instance.instance_id).ptr(), out.ptr());
  }
  return hits;
}

py::dict ToDetail(const QueryAnswer& answer) {
  py::list degraded;
  for (const auto& id : answer.degraded) degraded.append(ToText(id));
  py::list nearest;
  for (const auto& key : answer.nearest_contexts) {
    py::dict context;
    context["model_name"] = ToText(key.model_name);
    context["lora_name"] = ToText(key.lora_name);
    context["block_size"] = key.block_size;
    context["tenant_id"] = ToText(key.tenant_id);
    nearest.append(context);
  }
  py::dict out;
  out["log_seq"] = answer.log_seq;
  out["degraded"] = degraded;
  out["context_known"] = answer.context_known;
  out["hint"] = ToText(answer.hint);
  out["nearest_contexts"] = nearest;
  return out;
}

py::list ToServices(const std::vector<ServiceView>& services, bool detail) {
  py::list out;
  for (const auto& view : services) {
    const Registration& registration = view.registration;
    py::dict service;
    service["Endpoint"] = ToText(registration.endpoint);
    service["ReplayEndpoint"] = ToText(registration.replay_endpoint);
    service["Type"] = ToText(ToString(registration.type));
    service["ModelName"] = ToText(registration.model_name);
    service["LoraName"] = ToText(registration.lora_name);
    service["TenantID"] = ToText(registration.tenant_id);
    service["InstanceID"] = ToText(registration.instance_id);
    service["BlockSize"] = registration.block_size;
    service["DPRank"] = registration.dp_rank;
    service["CacheGroup"] =
        registration.has_cache_group ? py::object(py::int_(0)) : py::object(py::none());
    service["HashProfile"] = ToProfile(registration.hash_profile);
    if (detail) PutServiceDetail(view, &service);
    out.append(service);
  }
  return out;
}

py::list ToContexts(const std::vector<ContextView>& contexts) {
  py::list out;
  for (const auto& view : contexts) {
    py::dict instances;
    for (const auto& [instance_id, ranks] : view.instances) {
      py::set set;
      for (std::uint32_t rank : ranks) set.add(py::int_(rank));
      instances[ToText(instance_id)] = set;
    }
    py::dict context;
    context["model_name"] = ToText(view.key.model_name);
    context["lora_name"] = ToText(view.key.lora_name);
    context["block_size"] = view.key.block_size;
    context["tenant_id"] = ToText(view.key.tenant_id);
    context["prefix_count"] = view.prefix_count;
    context["hash_profile"] = ToProfile(view.hash_profile);
    context["instances"] = instances;
    out.append(context);
  }
  return out;
}

}  // namespace conductor::python
