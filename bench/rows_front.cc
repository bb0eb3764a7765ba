// Front: queries over one connection, one at a time, beside handlers that do nothing with the same
// bytes, client and run. HTTP: msgpack, against cpp-httplib's server with an empty handler, and
// against our own server and a body of the same size that is wrong from its first byte (it is read
// and refused, which costs the making of an error and its answer). gRPC: against a grpc++ server
// with an empty Query. Python: the client with a list, against that same empty RPC from C++; only
// when --python says where the package is.
#include <httplib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "bench/empty_fronts.h"
#include "bench/http_probe.h"
#include "bench/prompts.h"
#include "bench/race.h"
#include "bench/service_rig.h"
#include "http/http_server.h"
#include "rpc/client.h"
#include "rpc/rpc_server.h"

namespace conductor::bench {
namespace {

constexpr std::size_t kInstances = 8;
constexpr std::size_t kLineBytes = 4'096;
const char* const kMsgpack = "application/msgpack";
// A busy machine makes rows slow, never wrong.
constexpr rpc::RpcClient::Options kPatientClient{.connect_timeout_ms = 60'000,
                                                 .request_timeout_ms = 60'000};

struct FrontShape {
  std::size_t tokens;
  double http_bar, rpc_bar, python_bar;  // in empty handlers of the same run; 0: none
};

// The least time of ours over that of the empty handler.
Row RatioRow(const std::string& work, const Row& ours, const Row& empty, double bar) {
  return {.work = work,
          .unit = "query",
          .measure = Measure::kTimes,
          .repeats = {Best(ours) / Best(empty)},
          .bar = bar,
          .checksum = ours.checksum};
}

// What all instances have: the whole prompt.
QueryAnswer RightAnswer(std::size_t tokens) {
  QueryAnswer right;
  for (std::size_t i = 0; i < kInstances; ++i) {
    InstanceHits& hits = right.instances.emplace_back();
    hits.instance_id = InstanceName(i);
    hits.best = {tokens, tokens, tokens, tokens};
  }
  return right;
}

// The body says of every instance that it has the whole prompt.
Status CheckBody(const std::string& body, std::size_t tokens) {
  const auto json = nlohmann::json::from_msgpack(body, true, false);
  const auto found = json.flatten();
  for (std::size_t i = 0; i < kInstances; ++i) {
    const std::string path = "/" + InstanceName(i) + "/longest_matched";
    bool right = false;
    for (const auto& [key, value] : found.items()) {
      right = right || (key.ends_with(path) && value == tokens);
    }
    if (!right) return Wrong("HTTP: a wrong answer: " + json.dump());
  }
  return {};
}

// Of the same size and on the same way through our server, which sees at its first byte that it is
// no query.
std::string RefusedBody(std::string body) {
  body[0] = '\xc0';
  return body;
}

// The same three requests by one client: our query, the empty handler, what our server refuses.
struct HttpClient {
  std::string name;
  double bar;
  std::function<Result<HttpProbe::Answer>()> query, empty, refused;
};

// As a program uses it: header fields are built and parsed by the library. The ceilings
// are about such a client.
HttpClient LibraryClient(std::uint16_t ours, std::uint16_t empty, const std::string& body,
                         double bar) {
  const auto post = [](std::uint16_t port, std::string sent) {
    auto client = std::make_shared<httplib::Client>("127.0.0.1", port);  // a closure is copied
    client->set_keep_alive(true);
    client->set_tcp_nodelay(true);
    client->set_connection_timeout(kPatience);
    client->set_read_timeout(kPatience);
    client->set_write_timeout(kPatience);
    return [client, sent = std::move(sent)]() -> Result<HttpProbe::Answer> {
      const auto result = client->Post("/query", sent, kMsgpack);
      if (!result) return Wrong("HTTP: " + httplib::to_string(result.error()));
      return HttpProbe::Answer{result->status, std::move(result->body)};
    };
  };
  return {"cpp-httplib client", bar, post(ours, body), post(empty, body),
          post(ours, RefusedBody(body))};
}

// The least a client can do; what the server takes is a larger part of it.
HttpClient RawClient(HttpProbe& ours, HttpProbe& empty, const std::string& body) {
  const auto post = [](HttpProbe& probe, const std::string& sent) {
    return
        [&probe, request = MakePost("/query", kMsgpack, sent)] { return probe.Exchange(request); };
  };
  return {"raw client", 0, post(ours, body), post(empty, body), post(ours, RefusedBody(body))};
}

Status RunHttpClient(const Settings& settings, std::size_t tokens, const HttpClient& client,
                     Report& report) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto first, client.query());
  CONDUCTOR_RETURN_IF_ERROR(CheckBody(first.body, tokens));
  const auto timed = [](const auto& exchange, int status,
                        const std::string* expected) -> Result<double> {
    const Stopwatch watch;
    CONDUCTOR_ASSIGN_OR_RETURN(const auto answer, exchange());
    const double ns = watch.ElapsedNs();
    if (answer.status != status) return Wrong("HTTP: status " + std::to_string(answer.status));
    if (expected != nullptr && answer.body != *expected) return Wrong("HTTP: a wrong answer");
    return ns;
  };
  const std::string what = "HTTP, " + std::to_string(tokens) + " tokens, " + client.name;
  std::vector<Racer> racers(3);
  for (Racer& racer : racers) {
    racer.row = {.unit = "query", .checksum = MixBits(tokens * kInstances)};
  }
  racers[0].row.work = what;
  racers[0].time_one = [&](std::size_t) { return timed(client.query, 200, &first.body); };
  racers[1].row.work = what + ": empty, httplib";
  racers[1].time_one = [&](std::size_t) { return timed(client.empty, 200, nullptr); };
  racers[2].row.work = what + ": refused, ours";
  racers[2].time_one = [&](std::size_t) { return timed(client.refused, 400, nullptr); };
  CONDUCTOR_RETURN_IF_ERROR(Race(settings, 1, racers));
  const Row ratios[] = {
      RatioRow(what + ": of httplib's", racers[0].row, racers[1].row, client.bar),
      RatioRow(what + ": of a refusal", racers[0].row, racers[2].row, client.bar)};
  for (Racer& racer : racers) report.Add(std::move(racer.row));
  for (const Row& ratio : ratios) report.Add(ratio);
  return {};
}

Status RunHttp(const Settings& settings, const FrontShape& shape, ServiceRig& rig,
               const Prompt& prompt, Report& report) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto server, HttpServer::Start(rig.service(), {}));
  CONDUCTOR_ASSIGN_OR_RETURN(const auto empty, EmptyHttpServer::Start());
  const nlohmann::json query = {
      {"model", kModel}, {"block_size", kBlockSize}, {"token_ids", prompt.tokens}};
  const std::vector<std::uint8_t> packed = nlohmann::json::to_msgpack(query);
  const std::string body(packed.begin(), packed.end());
  CONDUCTOR_RETURN_IF_ERROR(
      RunHttpClient(settings, shape.tokens,
                    LibraryClient(server->port(), empty->port(), body, shape.http_bar), report));
  // Now, not before: a server ends a connection that has nothing to say.
  CONDUCTOR_ASSIGN_OR_RETURN(const auto ours, HttpProbe::Connect(server->port()));
  CONDUCTOR_ASSIGN_OR_RETURN(const auto theirs, HttpProbe::Connect(empty->port()));
  return RunHttpClient(settings, shape.tokens, RawClient(*ours, *theirs, body), report);
}

// Runs the script beside this one, which prints nanoseconds of a call: one line for each repeat.
Status RunPython(const Settings& settings, const FrontShape& shape, const std::string& address,
                 Row& row) {
  const std::string command =
      "PYTHONPATH='" + settings.python + "' /usr/bin/python3 '" +
      CONDUCTOR_SOURCE_DIR "/bench/python_client.py' --address " + address + " --model " +
      std::string(kModel) + " --tokens " + std::to_string(shape.tokens) + " --seed " +
      std::to_string(settings.seed) + " --instances " + std::to_string(kInstances) + " --repeats " +
      std::to_string(settings.repeats);
  std::FILE* script = popen(command.c_str(), "r");
  if (script == nullptr) return Wrong("python: cannot be started");
  std::array<char, kLineBytes> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), script) != nullptr) {
    row.repeats.push_back(std::strtod(line.data(), nullptr));
  }
  if (pclose(script) != 0 || row.repeats.size() != settings.repeats) {
    return Wrong("python: the client failed");
  }
  return {};
}

Status RunRpc(const Settings& settings, const FrontShape& shape, ServiceRig& rig,
              const Prompt& prompt, Report& report) {
  CONDUCTOR_ASSIGN_OR_RETURN(const auto server, rpc::RpcServer::Start(rig.service(), {}));
  server->SetServing(true);
  CONDUCTOR_ASSIGN_OR_RETURN(const auto empty, EmptyRpcServer::Start());
  const std::string address = "127.0.0.1:" + std::to_string(server->port());
  CONDUCTOR_ASSIGN_OR_RETURN(const auto ours, rpc::RpcClient::Connect(address, kPatientClient));
  CONDUCTOR_ASSIGN_OR_RETURN(const auto theirs,
                             rpc::RpcClient::Connect(empty->address(), kPatientClient));
  const std::uint64_t expected = SumOf(RightAnswer(shape.tokens));
  const std::string what = std::to_string(shape.tokens) + " tokens";
  std::vector<Racer> racers(2);
  racers[0].row = {.work = "gRPC, " + what, .unit = "query", .checksum = expected};
  racers[0].time_one = [&](std::size_t) -> Result<double> {
    const Stopwatch watch;
    CONDUCTOR_ASSIGN_OR_RETURN(const auto answer, ours->Query(MakeQuery(prompt.tokens)));
    const double ns = watch.ElapsedNs();
    if (SumOf(answer) != expected) return Wrong("gRPC: a wrong answer");
    return ns;
  };
  racers[1].row = {.work = "gRPC, " + what + ": empty", .unit = "query", .checksum = expected};
  racers[1].time_one = [&](std::size_t) -> Result<double> {
    const Stopwatch watch;
    CONDUCTOR_ASSIGN_OR_RETURN(const auto answer, theirs->Query(MakeQuery(prompt.tokens)));
    const double ns = watch.ElapsedNs();
    if (!answer.instances.empty()) return Wrong("empty gRPC: an answer");
    return ns;
  };
  CONDUCTOR_RETURN_IF_ERROR(Race(settings, 1, racers));
  std::vector<Row> ratios = {
      RatioRow("gRPC, " + what + ": query : empty", racers[0].row, racers[1].row, shape.rpc_bar)};
  if (!settings.python.empty()) {
    Row python{.work = "Python, list of " + what, .unit = "query", .checksum = expected};
    CONDUCTOR_RETURN_IF_ERROR(RunPython(settings, shape, address, python));
    ratios.push_back(RatioRow("Python, list of " + what + ": query : empty gRPC", python,
                              racers[1].row, shape.python_bar));
    racers.push_back({std::move(python), {}});
  }
  for (Racer& racer : racers) report.Add(std::move(racer.row));
  for (Row& ratio : ratios) report.Add(std::move(ratio));
  return {};
}

}  // namespace

Status RunFront(const Settings& settings, Report& report) {
  const PromptSource source(settings.seed);
  CONDUCTOR_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::Make(settings.directory));
  CONDUCTOR_ASSIGN_OR_RETURN(const auto rig,
                             ServiceRig::Start(scratch->data_dir(), ServiceRig::Streams::kNone));
  const FrontShape shapes[] = {{1'024, 1 / 0.9, 1.15, 0}, {8'192, 1 / 0.8, 1.3, 1.6}};
  for (std::size_t i = 0; i < kInstances; ++i) {
    CONDUCTOR_RETURN_IF_ERROR(rig->Register(i, "tcp://10.0.0.1:" + std::to_string(10'000 + i)));
  }
  for (std::size_t i = 0, number = 0; i < kInstances; ++i) {
    for (const FrontShape& shape : shapes) {
      const Prompt prompt = MakePrompt(source, shape.tokens, shape.tokens / kBlockSize);
      CONDUCTOR_RETURN_IF_ERROR(
          rig->Offer(i + 1, MakeFrame(i + 1, number++, StoredOf(prompt, 0, prompt.blocks()))));
      CONDUCTOR_RETURN_IF_ERROR(rig->WaitForBlock(prompt.names.back(), Poll::kPause));
    }
  }
  CONDUCTOR_RETURN_IF_ERROR(WaitUntil("all prompts are there", Poll::kPause, [&] {
    const auto views = rig->service().ListServices();
    return views && std::all_of(views->begin(), views->end(), [&](const ServiceView& view) {
             return view.blocks_by_tier[0] == (1'024 + 8'192) / kBlockSize;
           });
  }));
  for (const FrontShape& shape : shapes) {
    const Prompt prompt = MakePrompt(source, shape.tokens, shape.tokens / kBlockSize);
    CONDUCTOR_RETURN_IF_ERROR(RunHttp(settings, shape, *rig, prompt, report));
    CONDUCTOR_RETURN_IF_ERROR(RunRpc(settings, shape, *rig, prompt, report));
  }
  return {};
}

}  // namespace conductor::bench
