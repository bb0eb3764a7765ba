// mooncake._conductor: RpcClient for Python. conductor.py checks arguments and owns the public API;
// here values are converted and calls are made. Every call releases the GIL while it waits, so
// other Python threads run; a Client may be used by all of them, and after fork() (rpc/channel.h).
//
// Methods return (failure, value): exactly one is None. The only exceptions are Python's own about
// wrong types.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>

#include "python/native/to_python.h"
#include "python/native/token_ids.h"
#include "rpc/client.h"

namespace py = pybind11;

namespace conductor::python {
namespace {

using rpc::RpcClient;

py::tuple Fail(const Error& error) {
  return py::make_tuple(ToFailure(error), py::none());
}
py::tuple Done(py::object value) {
  return py::make_tuple(py::none(), std::move(value));
}

// Runs `call` without the GIL.
template <typename F>
auto Unlocked(F call) {
  const py::gil_scoped_release release;
  return call();
}

py::tuple Connect(const std::string& address, std::uint32_t connect_timeout_ms,
                  std::uint32_t request_timeout_ms) {
  auto client = Unlocked([&] {
    return RpcClient::Connect(address, {.connect_timeout_ms = connect_timeout_ms,
                                        .request_timeout_ms = request_timeout_ms});
  });
  if (!client) return Fail(client.error());
  return Done(py::cast(*std::move(client)));
}

ExtraKeys ToExtraKeys(const py::handle& block) {
  ExtraKeys keys;
  for (const py::handle key : block) {
    if (py::isinstance<py::str>(key)) {
      keys.push_back({ExtraKey::Kind::kText, key.cast<std::string>(), 0});
    } else if (py::isinstance<py::bytes>(key)) {
      keys.push_back({ExtraKey::Kind::kBytes, key.cast<std::string>(), 0});
    } else if (py::isinstance<py::tuple>(key)) {
      const auto item = key.cast<std::pair<std::string, std::int64_t>>();
      keys.push_back({ExtraKey::Kind::kItem, item.first, item.second});
    } else {
      keys.push_back({ExtraKey::Kind::kInteger, "", key.cast<std::int64_t>()});
    }
  }
  return keys;
}

// What conductor.py's _query has checked, in its order. Positions, not a dict: that would be built
// and looked up again for every call.
py::tuple Query(const RpcClient& client, const TokenIds& tokens, std::string model_name,
                std::string lora_name, std::string tenant_id, std::string cache_salt,
                std::string instance_filter, std::uint32_t block_size, const py::list& extra_keys,
                std::uint32_t top_k, std::uint64_t min_tokens, bool detail) {
  PromptQuery query;
  query.context = {std::move(tenant_id), std::move(model_name), std::move(lora_name), block_size};
  query.token_ids = tokens.ids();
  query.cache_salt = std::move(cache_salt);
  query.options = {std::move(instance_filter), top_k, min_tokens, detail};
  for (const py::handle block : extra_keys) query.extra_keys.push_back(ToExtraKeys(block));
  const auto answer = Unlocked([&] { return client.Query(query); });
  if (!answer) return Fail(answer.error());
  py::dict result;
  result["hits"] = ToHits(*answer, query.options.detail);
  if (query.options.detail) result["detail"] = ToDetail(*answer);
  return Done(std::move(result));
}

template <typename T>
std::optional<T> Take(const py::dict& fields, const char* name) {
  if (!fields.contains(name)) return std::nullopt;
  return fields[name].cast<T>();
}

// `fields` has HTTP's names and only values of the right type; absent keys are absent fields.
py::tuple Register(const RpcClient& client, const py::dict& fields) {
  RegistrationRequest request;
  request.instance_id = Take<std::string>(fields, "instance_id");
  request.endpoint = Take<std::string>(fields, "endpoint");
  request.type = Take<std::string>(fields, "type");
  request.modelname = Take<std::string>(fields, "modelname");
  request.replay_endpoint = Take<std::string>(fields, "replay_endpoint");
  request.lora_name = Take<std::string>(fields, "lora_name");
  request.tenant_id = Take<std::string>(fields, "tenant_id");
  request.topic = Take<std::string>(fields, "topic");
  request.snapshot_endpoint = Take<std::string>(fields, "snapshot_endpoint");
  request.block_size = Take<std::int64_t>(fields, "block_size");
  request.dp_rank = Take<std::int64_t>(fields, "dp_rank");
  request.cache_group = Take<std::int64_t>(fields, "cache_group");
  request.pool_parts = Take<std::map<std::string, std::int64_t>>(fields, "pool_parts");
  if (fields.contains("hash_profile")) {
    const py::dict profile = fields["hash_profile"];
    request.hash_profile = {Take<std::string>(profile, "strategy"),
                            Take<std::string>(profile, "algorithm"),
                            Take<std::string>(profile, "python_hash_seed"),
                            Take<std::string>(profile, "index_projection")};
  }
  const auto outcome = Unlocked([&] { return client.Register(request); });
  if (!outcome) return Fail(outcome.error());
  return Done(py::str(outcome->instance_id));
}

py::tuple Unregister(const RpcClient& client, const std::string& instance_id,
                     const std::string& tenant_id, std::int64_t dp_rank) {
  const auto removed = Unlocked([&] { return client.Unregister(instance_id, tenant_id, dp_rank); });
  if (!removed) return Fail(removed.error());
  return Done(py::str(*removed));
}

py::tuple Probe(const RpcClient& client) {
  const auto services = Unlocked([&] { return client.ListServices(); });
  if (!services) return Fail(services.error());
  return Done(py::int_(services->size()));
}

py::tuple ListServices(const RpcClient& client, bool detail) {
  const auto services = Unlocked([&] { return client.ListServices(); });
  if (!services) return Fail(services.error());
  return Done(ToServices(*services, detail));
}

py::tuple GetGlobalView(const RpcClient& client) {
  const auto contexts = Unlocked([&] { return client.GetGlobalView(); });
  if (!contexts) return Fail(contexts.error());
  return Done(ToContexts(*contexts));
}

}  // namespace
}  // namespace conductor::python

PYBIND11_MODULE(_conductor, module) {
  namespace ours = conductor::python;
  module.doc() = "Native part of mooncake.conductor; use that module.";
  py::class_<ours::TokenIds>(module, "TokenIds")
      .def(py::init<py::handle>())
      .def_property_readonly("problem", &ours::TokenIds::problem)
      .def("__len__", [](const ours::TokenIds& self) { return self.ids().size(); });
  py::class_<conductor::rpc::RpcClient>(module, "Client")
      .def("query", &ours::Query)
      .def("register", &ours::Register)
      .def("unregister", &ours::Unregister)
      .def("probe", &ours::Probe)
      .def("list_services", &ours::ListServices)
      .def("get_global_view", &ours::GetGlobalView);
  module.def("connect", &ours::Connect);
}
