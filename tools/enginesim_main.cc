// conductor-enginesim: simulated engines and stores as a program. Prints one JSON line with every
// endpoint, then serves commands until `quit`, the end of stdin or a signal.
#include <csignal>

#include <CLI/CLI.hpp>
#include <atomic>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include "src/hash/profile.h"
#include "tools/control_server.h"
#include "tools/fleet.h"
#include "tools/trace_driver.h"

namespace conductor::enginesim {
namespace {

std::atomic<bool> stop_requested{false};

extern "C" void HandleSignal(int) {
  stop_requested.store(true, std::memory_order_relaxed);
}

constexpr const char* kExamples = R"(
Examples:
  # one engine, commands from the keyboard
  conductor-enginesim --stdin
  prompt [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]
  drop 2
  stats

  # four engines at ports 5600.. (live 5600, replay 5601, live 5602, ...), commands over ZMQ REP
  conductor-enginesim --engines 4 --base-port 5600 --control tcp://127.0.0.1:5599 \
      --model my-model --block-size 16 --blocks 2000 --era b --seed 0 --algorithm sha256_cbor

  # replay a request trace at ten times its speed, when somebody listens, and stay
  conductor-enginesim --engines 2 --base-port 5600 --control ipc:///tmp/sim.ctl \
      --trace examples/trace_small.jsonl --speed 10 --wait-subscribers 1

  # an SGLang engine with bigram pages and a host cache; a store of its pages, K and V of two ranks
  conductor-enginesim --type sglang --bigram --era s4 --host-blocks 8000 --control tcp://127.0.0.1:*
  conductor-enginesim --type mooncake --era m3 --keys sglang-mha --tp 2 --control tcp://127.0.0.1:*

Commands, one line each, one JSON line back; ENGINE[.RANK] in front, 0 when left out:
  prompt TOKENS | prompt {"tokens":..,"lora_name":..,"salt":..} | prompt_ids [IDS] LENGTH
  replay ok|late MS|cut N|cut_end N|never|no_end_marker|hole [I]
  put ["64 hex digits",..] | put {"hashes":[..],"medium":"disk"} | remove BLOCKS      (stores only)
  events [{"type":"BlockStored",..}] | events [{"event_type":"stored","object_key":..}]
  clear | restart | down | up | drop N | lose N | skip N | raw HEX | frames HEX ...
  wait_subscribers N MS | flush | stats | endpoints | quit
)";

struct Options {
  FleetOptions fleet;
  std::string type = "vllm", era, names = "int", algorithm = "sha256_cbor", seed = "0";
  std::string key_form = "vllm";
  bool bigram = false, no_legacy = false, no_object_keys = false;
  std::string replay_layout = "auto", attach = "auto", control, trace;
  bool no_replay = false, from_stdin = false, exit_after_trace = false;
  std::uint64_t wait_subscribers = 0;
  TraceRunOptions run;
};

void AddEndpoints(CLI::App& app, Options& options) {
  FleetOptions& fleet = options.fleet;
  app.add_option("--base-port", fleet.base_port,
                 "First port: engine e, rank r of R publishes at P+2*R*e+r and replays at "
                 "P+2*R*e+R+r; 0: free ports")
      ->capture_default_str();
  app.add_option("--host", fleet.host, "Address to bind, * for all")->capture_default_str();
  app.add_option("--publish", fleet.publish_endpoints, "Live endpoints, one per engine");
  app.add_option("--replay", fleet.replay_endpoints, "Replay endpoints, one per engine");
  app.add_option("--attach", options.attach, "How --publish is used; auto: vLLM's rule")
      ->check(CLI::IsMember({"auto", "bind", "connect"}))
      ->capture_default_str();
  app.add_flag("--no-replay", options.no_replay, "No replay sockets");
  app.add_option("--control", options.control, "ZMQ REP endpoint for commands");
  app.add_flag("--stdin", options.from_stdin, "Commands from stdin");
}

void AddEngine(CLI::App& app, Options& options) {
  FleetOptions& fleet = options.fleet;
  EngineOptions& engine = fleet.engine;
  app.add_option("--type", options.type, "What is simulated")
      ->check(CLI::IsMember({"vllm", "sglang", "mooncake"}))
      ->capture_default_str();
  app.add_option("--engines", fleet.engines, "How many engines, or stores")->capture_default_str();
  app.add_option("--model", fleet.model_name, "Model name")->capture_default_str();
  app.add_option("--block-size", engine.block_size, "Tokens per block")->capture_default_str();
  app.add_option("--blocks", engine.blocks, "Blocks of each rank's cache, or of a store")
      ->capture_default_str();
  app.add_option("--era", options.era,
                 "Wire format: vllm a, b0.11, b0.15, b (default), b-all, c, map; sglang s1, s2, "
                 "s3, s4 (default); mooncake m1, m2, m3 (default)");
  app.add_option("--names", options.names, "vllm: block hashes as int, signed or bytes")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "vllm: PYTHONHASHSEED")->capture_default_str();
  app.add_option("--algorithm", options.algorithm, "vllm: sha256 or sha256_cbor")
      ->capture_default_str();
  app.add_flag("--bigram", options.bigram, "sglang: pages of token pairs");
  app.add_flag("--short-pages", engine.short_pages, "sglang: cache a prompt's short last page too");
  app.add_option("--host-blocks", engine.host_blocks,
                 "sglang: pages of each rank's host cache, written through; 0: none")
      ->capture_default_str();
  app.add_flag("--show-removed", fleet.show_removed, "Replies to prompts name the evicted blocks");
  app.add_option("--topic", engine.publisher.topic, "Topic frame");
  app.add_option("--dp-ranks", engine.dp_ranks, "Data-parallel ranks")->capture_default_str();
  app.add_option("--replay-ring", engine.publisher.buffer_steps, "Batches kept for replay")
      ->capture_default_str();
  app.add_option("--replay-layout", options.replay_layout,
                 "old: seq, payload; new: topic, seq, payload; auto: by era")
      ->check(CLI::IsMember({"auto", "old", "new"}))
      ->capture_default_str();
  app.add_option("--replay-hwm", engine.publisher.replay_hwm,
                 "Replies queued for one peer before they are lost; 0: no limit, engines: 1000")
      ->capture_default_str();
}

void AddStore(CLI::App& app, Options& options) {
  StoreOptions& store = options.fleet.store;
  app.add_option("--keys", options.key_form,
                 "mooncake: object keys as vllm, vllm-hma, ascend, ascend-layer, ascend-layer-id, "
                 "sglang-mha, sglang-mla, number")
      ->capture_default_str();
  app.add_option("--key-prefix", store.keys.prefix, "mooncake: in front of vllm and sglang keys");
  app.add_option("--key-group", store.keys.group, "mooncake: cache group in vllm keys");
  app.add_option("--tp", store.keys.tp_ranks, "mooncake: tensor-parallel ranks of a block")
      ->capture_default_str();
  app.add_option("--pp", store.keys.pp_ranks, "mooncake: pipeline ranks of a block")
      ->capture_default_str();
  app.add_option("--layers", store.keys.layers, "mooncake: layers of a block, layerwise keys")
      ->capture_default_str();
  app.add_option("--tenant", store.config.tenant_id, "mooncake: tenant_id")->capture_default_str();
  app.add_option("--backend", store.config.backend_id, "mooncake: backend_id")
      ->capture_default_str();
  app.add_option("--lora", store.config.lora_name, "mooncake: configured lora_name");
  app.add_option("--additional-salt", store.config.additional_salt,
                 "mooncake: configured additional_salt");
  app.add_flag("--no-legacy", options.no_legacy, "mooncake: without type and block_hashes");
  app.add_flag("--no-object-keys", options.no_object_keys, "mooncake: without object_key");
}

void AddTrace(CLI::App& app, Options& options) {
  app.add_option("--trace", options.trace, "Drive the engines from this Mooncake-format trace");
  app.add_option("--speed", options.run.speed, "Of the trace; 0: as fast as possible")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--trace-requests", options.run.requests_max, "Stop the trace after this many");
  app.add_option("--wait-subscribers", options.wait_subscribers,
                 "Start the trace when each publisher has this many subscriptions");
  app.add_flag("--exit-after-trace", options.exit_after_trace, "Do not stay after the trace");
}

// The recipe of an engine's names, or of those that a store's keys carry.
Result<HashProfile> ProfileOf(const Options& options, bool sglang) {
  if (!sglang) return MakeHashProfile("vllm_v1", options.algorithm, options.seed, "low64_be");
  return MakeHashProfile(options.bigram ? "sglang_bigram" : "sglang", "sha256_raw", "0",
                         "first64_be");
}

Status FinishStore(Options& options) {
  StoreOptions& store = options.fleet.store;
  CONDUCTOR_ASSIGN_OR_RETURN(store.era, ParseStoreEra(options.era.empty() ? "m3" : options.era));
  CONDUCTOR_ASSIGN_OR_RETURN(store.keys.form, ParseKeyForm(options.key_form));
  store.keys.model_name = store.config.model_name = options.fleet.model_name;
  store.config.block_size = options.fleet.engine.block_size;
  store.config.legacy = !options.no_legacy;
  store.config.object_keys = !options.no_object_keys;
  store.blocks = options.fleet.engine.blocks;
  options.fleet.type = PublisherType::kMooncake;
  options.fleet.replay = false;
  const bool sglang =
      store.keys.form == KeyForm::kSglangMha || store.keys.form == KeyForm::kSglangMla;
  CONDUCTOR_ASSIGN_OR_RETURN(options.fleet.engine.profile, ProfileOf(options, sglang));
  return {};
}

Status FinishEngine(Options& options) {
  EngineOptions& engine = options.fleet.engine;
  const bool sglang = options.type == "sglang";
  options.fleet.type = sglang ? PublisherType::kSglang : PublisherType::kVllm;
  if (sglang) {
    CONDUCTOR_ASSIGN_OR_RETURN(engine.sglang_era,
                               ParseSglangEra(options.era.empty() ? "s4" : options.era));
  } else {
    CONDUCTOR_ASSIGN_OR_RETURN(engine.era, ParseEra(options.era.empty() ? "b" : options.era));
  }
  CONDUCTOR_ASSIGN_OR_RETURN(engine.names, ParseNameForm(options.names));
  CONDUCTOR_ASSIGN_OR_RETURN(engine.profile, ProfileOf(options, sglang));
  const bool late_era = !sglang && (engine.era == Era::kC || engine.era == Era::kMap);
  const bool topics =
      options.replay_layout == "new" || (options.replay_layout == "auto" && late_era);
  engine.publisher.layout = topics ? ReplayLayout::kTopicSeqPayload : ReplayLayout::kSeqPayload;
  options.fleet.replay = !options.no_replay;
  return {};
}

Status Finish(Options& options) {
  CONDUCTOR_RETURN_IF_ERROR(options.type == "mooncake" ? FinishStore(options)
                                                       : FinishEngine(options));
  options.fleet.attach = options.attach == "bind"      ? Attach::kBind
                         : options.attach == "connect" ? Attach::kConnect
                                                       : Attach::kAuto;
  return {};
}

// Two threads may write lines to stdout: each is one insertion.
void PrintLine(const std::string& line) {
  std::cout << line + "\n" << std::flush;
}

int Fail(const Error& error) {
  std::cerr << "conductor-enginesim: " << error.message << "\n";
  return 1;
}

// Waits for the listeners, then runs the trace. Returns the exit code.
int DriveTrace(Fleet& fleet, const Options& options) {
  std::ifstream file(options.trace);
  if (!file) {
    return Fail({ErrorCode::kNotFound, "trace " + options.trace + ": cannot open", "", "", -1});
  }
  const auto listened = [&](const PublisherStats& stats) {
    return stats.subscriptions >= options.wait_subscribers;
  };
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    for (std::uint32_t rank = 0; rank < fleet.ranks(); ++rank) {
      while (
          !stop_requested.load(std::memory_order_relaxed) &&
          !fleet.publisher(i, rank).WaitUntil(listened, std::chrono::milliseconds(kStopCheckMs))) {
      }
    }
  }
  TraceReader reader(file, options.trace, options.run.trace_block);
  const Result<TraceSummary> summary = RunTrace(fleet, reader, options.run, stop_requested);
  if (!summary) return Fail(summary.error());
  for (std::size_t i = 0; i < fleet.size(); ++i) {
    for (std::uint32_t rank = 0; rank < fleet.ranks(); ++rank) {
      fleet.publisher(i, rank).Flush();
    }
  }
  PrintLine(ToJson(*summary));
  return 0;
}

int Run(const Options& options) {
  Result<std::unique_ptr<Fleet>> fleet = Fleet::Start(options.fleet);
  if (!fleet) return Fail(fleet.error());
  std::unique_ptr<ControlServer> control;
  if (!options.control.empty()) {
    Result<std::unique_ptr<ControlServer>> opened = ControlServer::Open(**fleet, options.control);
    if (!opened) return Fail(opened.error());
    control = std::move(*opened);
  }
  PrintLine((*fleet)->Describe(control ? control->endpoint() : options.from_stdin ? "stdin" : ""));

  int code = 0;
  std::thread trace;
  if (!options.trace.empty()) {
    trace = std::thread([&] {
      code = DriveTrace(**fleet, options);
      if (options.exit_after_trace || code != 0) {
        stop_requested.store(true, std::memory_order_relaxed);
      }
    });
  }
  if (options.from_stdin) {
    ServeStream(**fleet, std::cin, std::cout, stop_requested);
  } else if (control) {
    control->Serve(stop_requested);
  } else {
    while (!stop_requested.load(std::memory_order_relaxed)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kStopCheckMs));
    }
  }
  stop_requested.store(true, std::memory_order_relaxed);
  if (trace.joinable()) trace.join();
  return code;
}

}  // namespace
}  // namespace conductor::enginesim

int main(int argc, char** argv) {
  using namespace conductor::enginesim;
  CLI::App app{
      "Simulated vLLM and SGLang engines and Mooncake stores: KV events on the exact wire format\n"
      "of a chosen era, with replay, faults on command, and request traces.",
      "conductor-enginesim"};
  Options options;
  AddEngine(app, options);
  AddEndpoints(app, options);
  AddStore(app, options);
  AddTrace(app, options);
  app.footer(kExamples);
  CLI11_PARSE(app, argc, argv);
  if (const conductor::Status status = Finish(options); !status) return Fail(status.error());

  struct sigaction action {};
  action.sa_handler = HandleSignal;  // without SA_RESTART: a read of stdin ends too
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return Run(options);
}
