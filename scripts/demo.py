"""The demo's driver: starts the processes, routes the trace, kills the daemon, compares.

Run it through demo.sh, which builds everything and sets PYTHONPATH. Needs only Debian's python3,
python3-zmq and the client built here.
"""

import argparse
import array
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import zmq

from mooncake.conductor import OK, ConductorClient

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build")
DAEMON = os.path.join(BUILD, "mooncake-conductor", "mooncake_conductor")
CONDUCTORCTL = os.path.join(BUILD, "mooncake-conductor", "conductorctl")
ENGINESIM = os.path.join(BUILD, "tools", "conductor-enginesim")
MODEL = "demo-model"
BLOCK_SIZE = 16
TRACE_BLOCK = 512  # tokens per id of the trace
MASK = 2**64 - 1
DEADLINE_S = 30.0


def fail(message):
    raise SystemExit(f"demo: FAILED: {message}")


def poll(what, condition, deadline_s=DEADLINE_S):
    """Waits until condition() is true; the deadline names what never happened."""
    end = time.monotonic() + deadline_s
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            fail(f"{what}: not within {deadline_s:.0f} s")
        time.sleep(0.02)


def splitmix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class Prompts:
    """Trace requests as token ids, expanded as tools/trace.h says."""

    def __init__(self):
        self._blocks = {}

    def expand(self, ids, length):
        tokens = array.array("i")
        for k in ids:
            block = self._blocks.get(k)
            if block is None:
                first = k * TRACE_BLOCK
                block = array.array(
                    "i", [splitmix64(first + j) % 50000 for j in range(TRACE_BLOCK)]
                )
                self._blocks[k] = block
            tokens.extend(block)
        return tokens[:length]


class Fleet:
    """Simulated engines in one process, driven over its control socket."""

    def __init__(self, engines, blocks, log):
        self.process = subprocess.Popen(
            [ENGINESIM, "--engines", str(engines), "--base-port", "0", "--host", "127.0.0.1",
             "--control", "tcp://127.0.0.1:*", "--model", MODEL,
             "--block-size", str(BLOCK_SIZE), "--blocks", str(blocks), "--era", "c"],
            stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        if not line:
            fail("the engine simulator did not start")
        self.description = json.loads(line)
        self.engines = self.description["engines"]
        self._socket = zmq.Context.instance().socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVTIMEO, int(DEADLINE_S * 1000))
        self._socket.connect(self.description["control"])

    def ask(self, line):
        self._socket.send_string(line)
        reply = json.loads(self._socket.recv_string())
        if "error" in reply:
            fail(f"engine simulator: {reply['error']}")
        return reply

    def serve(self, engine, request):
        ids = json.dumps(request["hash_ids"], separators=(",", ":"))
        return self.ask(f"{engine} prompt_ids {ids} {request['input_length']}")

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Daemon:
    """The daemon on a data directory of its own; port 0 at first, the same ports afterwards."""

    def __init__(self, directory, log):
        self.directory = directory
        self.data_dir = os.path.join(directory, "data")
        self.config = os.path.join(directory, "conductor.json")
        self.ports = {"http_port": 0, "rpc_port": 0}
        self.log = log
        self.process = None

    def start(self):
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump({"http_server_port": self.ports["http_port"],
                       "rpc_server_port": self.ports["rpc_port"],
                       "data_dir": self.data_dir, "kvevent_instance": {}}, file)
        ports_file = os.path.join(self.data_dir, "ports.json")
        if os.path.exists(ports_file):
            os.remove(ports_file)
        self.process = subprocess.Popen([DAEMON, "--config", self.config], stderr=self.log,
                                        stdout=self.log)

        def bound():
            if self.process.poll() is not None:
                fail(f"the daemon ended with {self.process.returncode}, see its log")
            return os.path.exists(ports_file)

        poll("the daemon's ports", bound)
        with open(ports_file, encoding="utf-8") as file:
            self.ports = json.load(file)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def ctl(self, *arguments):
        done = subprocess.run(
            [CONDUCTORCTL, "--address", self.address, "-o", "json", *arguments],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        return json.loads(done.stdout) if done.stdout.strip() else None

    def wait_ready(self):
        poll("readiness", lambda: (self.ctl("status") or {}).get("ready"))

    @property
    def address(self):
        return f"127.0.0.1:{self.ports['rpc_port']}"

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


class Demo:
    def __init__(self, options):
        self.options = options
        self.directory = tempfile.mkdtemp(prefix="conductor-demo-")
        self.log = open(os.path.join(self.directory, "log.txt"), "w", encoding="utf-8")
        self.daemon = Daemon(self.directory, self.log)
        self.prompts = Prompts()
        self.client = ConductorClient()
        self.random = random.Random(1)
        self.load = [0] * options.engines
        self.requests = self.hit_tokens = self.baseline_hit_tokens = self.tokens = 0
        self.latencies_us = []
        self.fleet = self.baseline = None

    # --- set-up --------------------------------------------------------------------------------
    def start(self):
        self.fleet = Fleet(self.options.engines, self.options.blocks, self.log)
        self.baseline = Fleet(self.options.engines, self.options.blocks, self.log)
        self.daemon.start()
        self.connect()
        self.daemon.wait_ready()
        for engine in self.fleet.engines:
            rc = self.client.register({
                "instance_id": engine["name"], "endpoint": engine["live"],
                "replay_endpoint": engine["replay"], "model_name": MODEL,
                "block_size": BLOCK_SIZE, "hash_profile": self.fleet.description["hash_profile"]})
            if rc != OK:
                fail(f"register {engine['name']}: {rc}")
        self.wait_live()

    def connect(self):
        poll("the RPC port", lambda: self.client.setup(self.daemon.address) == OK)

    def services(self):
        return (self.daemon.ctl("services") or {"services": []})["services"]

    def wait_live(self):
        poll("live streams", lambda: [s["StreamState"] for s in self.services()] ==
             ["live"] * len(self.fleet.engines))

    # --- routing ---------------------------------------------------------------------------------
    def route(self, request):
        tokens = self.prompts.expand(request["hash_ids"], request["input_length"])
        begin = time.perf_counter()
        answer = self.client.query(MODEL, block_size=BLOCK_SIZE, token_ids=tokens)
        self.latencies_us.append((time.perf_counter() - begin) * 1e6)
        if answer["ret"] != OK:
            fail(f"query: {answer['ret']}")
        best = max(self.fleet.engines, key=lambda e: (
            answer["hits"].get(e["name"], {}).get("longest_matched", 0), -self.load[e["engine"]]))
        return best["engine"]

    def serve(self, request, engine):
        reply = self.fleet.serve(engine, request)
        self.load[engine] += request["input_length"] - reply["hit_tokens"]
        other = self.baseline.serve(self.random.randrange(self.options.engines), request)
        self.requests += 1
        self.tokens += request["input_length"]
        self.hit_tokens += reply["hit_tokens"]
        self.baseline_hit_tokens += other["hit_tokens"]

    def row(self):
        recent = sorted(self.latencies_us[-200:])
        blocks = [s["Blocks"]["device"] for s in self.services()]
        p50 = statistics.median(recent)
        p99 = recent[min(len(recent) - 1, int(len(recent) * 0.99))]
        print(f"{self.requests:8d} {self.hit_tokens:12d} "
              f"{100 * self.hit_tokens / max(1, self.tokens):8.1f}% "
              f"{100 * self.baseline_hit_tokens / max(1, self.tokens):8.1f}% "
              f"{p50:8.0f} {p99:8.0f}   {' '.join(f'{b:6d}' for b in blocks)}", flush=True)

    def run(self, requests):
        for i, request in enumerate(requests, 1):
            self.serve(request, self.route(request))
            if i % self.options.every == 0:
                self.row()

    # --- the kills -----------------------------------------------------------------------------
    def settle(self):
        """Waits until everything the engines have published is applied."""
        published = {e["name"]: self.last_number(e["engine"]) for e in self.fleet.engines}
        poll("catching up", lambda: {s["InstanceID"]: s["LastSeq"] for s in self.services()} ==
             published)
        for service in self.services():
            if service["LostRanges"]:
                fail(f"{service['InstanceID']} lost {service['LostRanges']}")

    def last_number(self, engine):
        """The engine's last sequence number, None before the first."""
        next_number = self.fleet.ask(f"{engine} stats")["next_seq"]
        return next_number - 1 if next_number else None

    def state(self, sample):
        answers = []
        for request in sample:
            tokens = self.prompts.expand(request["hash_ids"], request["input_length"])
            answers.append(self.client.query(MODEL, block_size=BLOCK_SIZE, token_ids=tokens))
        return self.daemon.ctl("status")["digest"], answers

    def kill_and_compare(self, sample):
        self.settle()
        digest, answers = self.state(sample)
        print(f"\n-- kill -9 of the daemon; digest {digest}", flush=True)
        self.daemon.kill()
        begin = time.monotonic()
        self.daemon.start()
        self.connect()
        self.daemon.wait_ready()
        took = time.monotonic() - begin
        digest_after, answers_after = self.state(sample)
        print(f"-- back and ready after {took:.2f} s;  digest {digest_after}")
        if digest_after != digest:
            fail("the digest differs after the restart")
        if answers_after != answers:
            fail("answers differ after the restart")
        hit = sum(1 for a in answers if any(h["longest_matched"] for h in a["hits"].values()))
        print(f"-- same digest, same answers to {len(answers)} prompts ({hit} with a hit)")

    def kill_and_miss(self, requests):
        before = [self.last_number(e["engine"]) for e in self.fleet.engines]
        self.daemon.kill()
        for i, request in enumerate(requests):
            self.serve(request, i % self.options.engines)
        after = [self.last_number(e["engine"]) for e in self.fleet.engines]
        missed = sum(b - (-1 if a is None else a) for a, b in zip(before, after) if b is not None)
        print(f"-- killed again; {len(requests)} requests served while it was down "
              f"({missed} batches published)", flush=True)
        self.daemon.start()
        self.connect()
        self.daemon.wait_ready()
        self.settle()
        print(f"-- caught up: all {missed} batches replayed, nothing lost\n", flush=True)

    # --- the whole ---------------------------------------------------------------------------------
    def main(self, trace):
        print(f"{len(trace)} requests, {self.options.engines} engines of {self.options.blocks} "
              f"blocks of {BLOCK_SIZE} tokens; data and logs in {self.directory}\n")
        print("                           hit rate  random   query us      blocks of each engine")
        print("requests   hit tokens    routed   routing     p50      p99", flush=True)
        half = len(trace) // 2
        missed = min(50, max(1, len(trace) // 20))
        self.run(trace[:half])
        self.kill_and_compare(trace[max(0, half - 40):half])
        self.kill_and_miss(trace[half:half + missed])
        self.run(trace[half + missed:])
        self.settle()
        digest = self.daemon.ctl("status")["digest"]
        routed = 100 * self.hit_tokens / max(1, self.tokens)
        by_chance = 100 * self.baseline_hit_tokens / max(1, self.tokens)
        latencies = sorted(self.latencies_us)
        print(f"\nsummary: {self.requests} requests, {self.tokens} prompt tokens; hit rate "
              f"{routed:.1f}% routed by Conductor, {by_chance:.1f}% by chance "
              f"(x {routed / max(by_chance, 0.1):.2f})")
        print(f"         query p50 {statistics.median(latencies):.0f} us, "
              f"p99 {latencies[int(len(latencies) * 0.99)]:.0f} us through the Python client; "
              f"final digest {digest}")
        if routed < by_chance:
            fail("routing by Conductor was not better than chance")

    def show_how_to_look(self):
        ports = self.daemon.ports
        print(f"""
still running; look at it with
  {CONDUCTORCTL} --address {self.daemon.address} status
  {CONDUCTORCTL} --address {self.daemon.address} services
  {CONDUCTORCTL} --address {self.daemon.address} doctor
  curl 'http://127.0.0.1:{ports['http_port']}/services?detail=1&format=json'
  curl http://127.0.0.1:{ports['http_port']}/metrics
stop it with
  kill {self.daemon.process.pid} {self.fleet.process.pid} {self.baseline.process.pid}""")

    def stop(self):
        self.client.close()
        self.daemon.stop()
        for fleet in (self.fleet, self.baseline):
            if fleet:
                fleet.stop()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def read_trace(path, requests_max):
    requests = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if requests_max and len(requests) >= requests_max:
                break
            try:
                request = json.loads(line)
                requests.append({"hash_ids": request["hash_ids"],
                                 "input_length": request["input_length"]})
            except (ValueError, KeyError) as error:
                fail(f"{path} line {number}: {error}")
    if len(requests) < 10:
        fail(f"{path}: expected at least 10 requests, got {len(requests)}")
    return requests


def main():
    parser = argparse.ArgumentParser(prog="demo.sh", description=__doc__.splitlines()[0])
    parser.add_argument("--trace", default=os.path.join(ROOT, "examples", "trace_small.jsonl"),
                        help="a Mooncake-format trace (default: the bundled one)")
    parser.add_argument("--requests", type=int, default=0, help="stop after so many (0: all)")
    parser.add_argument("--engines", type=int, default=4, help="simulated engines (default 4)")
    parser.add_argument("--blocks", type=int, default=40000,
                        help="KV blocks of each engine (default 40000)")
    parser.add_argument("--every", type=int, default=100, help="requests per table row")
    parser.add_argument("--keep", action="store_true", help="leave everything running at the end")
    options = parser.parse_args()
    trace = read_trace(options.trace, options.requests)
    demo = Demo(options)
    keep = False
    try:
        demo.start()
        demo.main(trace)
        keep = options.keep
    except SystemExit:
        demo.log.flush()
        print(f"--- last lines of {demo.log.name}", file=sys.stderr)
        with open(demo.log.name, encoding="utf-8") as file:
            print("".join(file.readlines()[-20:]), file=sys.stderr)
        raise
    finally:
        if keep:
            demo.show_how_to_look()
        else:
            demo.stop()


if __name__ == "__main__":
    main()
