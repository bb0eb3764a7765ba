"""What every demo drives: simulators and the daemon as processes, prompts, and the one way to wait."""

import array
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import zmq

from mooncake.conductor import OK, ConductorClient

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build")
DAEMON = os.path.join(BUILD, "mooncake-conductor", "mooncake_conductor")
CONDUCTORCTL = os.path.join(BUILD, "mooncake-conductor", "conductorctl")
ENGINESIM = os.path.join(BUILD, "tools", "conductor-enginesim")
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


class Simulator:
    """Simulated engines or stores in one process, driven over its control socket."""

    def __init__(self, log, *options):
        self.process = subprocess.Popen(
            [ENGINESIM, "--base-port", "0", "--host", "127.0.0.1",
             "--control", "tcp://127.0.0.1:*", *[str(option) for option in options]],
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

    def serve(self, target, request):
        """A prompt for an engine, or for ENGINE.RANK."""
        ids = json.dumps(request["hash_ids"], separators=(",", ":"))
        return self.ask(f"{target} prompt_ids {ids} {request['input_length']}")

    def last_number(self, target):
        """The last sequence number that went out, None before the first."""
        first = 1 if self.description["type"] == "Mooncake" else 0
        next_number = self.ask(f"{target} stats")["next_seq"]
        return next_number - 1 if next_number > first else None

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


class Load:
    """The router's rule: least work, that is what a prompt leaves to compute plus what waits.

    A prefix alone would be no rule: prompts that share their first block would all follow the
    first of them. What an engine was given counts less with every request since.
    """

    DECAY, WEIGHT = 0.98, 0.1

    def __init__(self, engines):
        self._tokens = dict.fromkeys(engines, 0.0)

    def choose(self, to_compute):
        """`to_compute`: tokens by engine."""
        return min(to_compute, key=lambda e: to_compute[e] + self.WEIGHT * self._tokens[e])

    def add(self, engine, tokens):
        for name in self._tokens:
            self._tokens[name] *= self.DECAY
        self._tokens[engine] += tokens


class Base:
    """What every demo has: a directory, a daemon, a client, and simulators to stop at the end."""

    def __init__(self, options):
        self.options = options
        self.directory = tempfile.mkdtemp(prefix="conductor-demo-")
        self.log = open(os.path.join(self.directory, "log.txt"), "w", encoding="utf-8")
        self.daemon = Daemon(self.directory, self.log)
        self.prompts = Prompts()
        self.client = ConductorClient()
        self.simulators = []
        self.latencies_us = []

    def simulate(self, *options):
        self.simulators.append(Simulator(self.log, *options))
        return self.simulators[-1]

    def connect(self):
        poll("the RPC port", lambda: self.client.setup(self.daemon.address) == OK)

    def register(self, config):
        rc = self.client.register(config)
        if rc != OK:
            fail(f"register {config['instance_id']}: {rc} {self.client.last_error}")

    def services(self):
        return (self.daemon.ctl("services") or {"services": []})["services"]

    def query(self, model, block_size, request):
        tokens = self.prompts.expand(request["hash_ids"], request["input_length"])
        begin = time.perf_counter()
        answer = self.client.query(model, block_size=block_size, token_ids=tokens)
        self.latencies_us.append((time.perf_counter() - begin) * 1e6)
        if answer["ret"] != OK:
            fail(f"query: {answer['ret']}")
        return answer["hits"]

    def latency_us(self, share, newest=None):
        latencies = sorted(self.latencies_us[-newest:] if newest else self.latencies_us)
        return latencies[min(len(latencies) - 1, int(len(latencies) * share))]

    def restart_and_compare(self, state):
        """kill -9, start, and the same state() as before."""
        before = state()
        print(f"\n-- kill -9 of the daemon; digest {before[0]}", flush=True)
        self.daemon.kill()
        begin = time.monotonic()
        self.daemon.start()
        self.connect()
        self.daemon.wait_ready()
        took = time.monotonic() - begin
        after = state()
        print(f"-- back and ready after {took:.2f} s;  digest {after[0]}")
        if after[0] != before[0]:
            fail("the digest differs after the restart")
        if after[1] != before[1]:
            fail("answers differ after the restart")
        hit = sum(1 for hits in after[1] if any(h["longest_matched"] for h in hits.values()))
        print(f"-- same digest, same answers to {len(after[1])} prompts ({hit} with a hit)")

    def show_how_to_look(self):
        ports = self.daemon.ports
        pids = " ".join(str(p.process.pid) for p in [self.daemon, *self.simulators])
        print(f"""
still running; look at it with
  {CONDUCTORCTL} --address {self.daemon.address} status
  {CONDUCTORCTL} --address {self.daemon.address} services
  {CONDUCTORCTL} --address {self.daemon.address} doctor
  curl 'http://127.0.0.1:{ports['http_port']}/services?detail=1&format=json'
  curl http://127.0.0.1:{ports['http_port']}/metrics
stop it with
  kill {pids}""")

    def stop(self):
        self.client.close()
        self.daemon.stop()
        for simulator in self.simulators:
            simulator.stop()
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
