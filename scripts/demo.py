"""The demo's driver: starts the processes, routes the trace, kills the daemon, compares.

Run it through demo.sh, which builds everything and sets PYTHONPATH. Needs only Debian's python3,
python3-zmq and the client built here.
"""

import argparse
import os
import random
import sys

from demo_mixed import MixedDemo
from demo_processes import ROOT, Base, Load, fail, poll, read_trace

MODEL = "demo-model"
BLOCK_SIZE = 16
ENGINES = 4
BLOCKS = {"vllm": 40_000, "mixed": 1_000}


class VllmDemo(Base):
    """Equal vLLM engines, and the same ones again that are routed by chance."""

    def __init__(self, options):
        super().__init__(options)
        self.random = random.Random(1)
        self.load = Load(range(options.engines))
        self.requests = self.hit_tokens = self.baseline_hit_tokens = self.tokens = 0

    # --- set-up --------------------------------------------------------------------------------
    def start(self):
        engines = ["--engines", self.options.engines, "--model", MODEL, "--era", "c",
                   "--block-size", BLOCK_SIZE, "--blocks", self.options.blocks]
        self.fleet = self.simulate(*engines)
        self.baseline = self.simulate(*engines)
        self.daemon.start()
        self.connect()
        self.daemon.wait_ready()
        for engine in self.fleet.engines:
            self.register({
                "instance_id": engine["name"], "endpoint": engine["live"],
                "replay_endpoint": engine["replay"], "model_name": MODEL,
                "block_size": BLOCK_SIZE, "hash_profile": self.fleet.description["hash_profile"]})
        poll("live streams", lambda: [s["StreamState"] for s in self.services()] ==
             ["live"] * len(self.fleet.engines))

    # --- routing ---------------------------------------------------------------------------------
    def route(self, request):
        hits = self.query(MODEL, BLOCK_SIZE, request)
        return self.load.choose({
            e["engine"]: request["input_length"] - hits.get(e["name"], {}).get("longest_matched", 0)
            for e in self.fleet.engines})

    def serve(self, request, engine):
        reply = self.fleet.serve(engine, request)
        self.load.add(engine, request["input_length"] - reply["hit_tokens"])
        other = self.baseline.serve(self.random.randrange(self.options.engines), request)
        self.requests += 1
        self.tokens += request["input_length"]
        self.hit_tokens += reply["hit_tokens"]
        self.baseline_hit_tokens += other["hit_tokens"]

    def row(self):
        blocks = [s["Blocks"]["device"] for s in self.services()]
        print(f"{self.requests:8d} {self.hit_tokens:12d} "
              f"{100 * self.hit_tokens / max(1, self.tokens):8.1f}% "
              f"{100 * self.baseline_hit_tokens / max(1, self.tokens):8.1f}% "
              f"{self.latency_us(0.5, 200):8.0f} {self.latency_us(0.99, 200):8.0f}   "
              f"{' '.join(f'{b:6d}' for b in blocks)}", flush=True)

    def run(self, requests):
        for i, request in enumerate(requests, 1):
            self.serve(request, self.route(request))
            if i % self.options.every == 0:
                self.row()

    # --- the kills -----------------------------------------------------------------------------
    def settle(self):
        """Waits until everything the engines have published is applied."""
        published = {e["name"]: self.fleet.last_number(e["engine"]) for e in self.fleet.engines}
        poll("catching up", lambda: {s["InstanceID"]: s["LastSeq"] for s in self.services()} ==
             published)
        for service in self.services():
            if service["LostRanges"]:
                fail(f"{service['InstanceID']} lost {service['LostRanges']}")

    def kill_and_compare(self, sample):
        self.settle()
        self.restart_and_compare(lambda: (
            self.daemon.ctl("status")["digest"],
            [self.query(MODEL, BLOCK_SIZE, request) for request in sample]))

    def kill_and_miss(self, requests):
        before = [self.fleet.last_number(e["engine"]) for e in self.fleet.engines]
        self.daemon.kill()
        for i, request in enumerate(requests):
            self.serve(request, i % self.options.engines)
        after = [self.fleet.last_number(e["engine"]) for e in self.fleet.engines]
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
        print(f"\nsummary: {self.requests} requests, {self.tokens} prompt tokens; hit rate "
              f"{routed:.1f}% routed by Conductor, {by_chance:.1f}% by chance "
              f"(x {routed / max(by_chance, 0.1):.2f})")
        print(f"         query p50 {self.latency_us(0.5):.0f} us, "
              f"p99 {self.latency_us(0.99):.0f} us through the Python client; "
              f"final digest {digest}")
        if routed < by_chance:
            fail("routing by Conductor was not better than chance")


def main():
    parser = argparse.ArgumentParser(prog="demo.sh", description=__doc__.splitlines()[0])
    parser.add_argument("--trace", default=os.path.join(ROOT, "examples", "trace_small.jsonl"),
                        help="a Mooncake-format trace (default: the bundled one)")
    parser.add_argument("--requests", type=int, default=0, help="stop after so many (0: all)")
    parser.add_argument("--fleet", choices=["vllm", "mixed"], default="vllm",
                        help="equal vLLM engines (default), or vLLM, SGLang and a store together")
    parser.add_argument("--engines", type=int, default=ENGINES,
                        help=f"simulated engines of the vllm fleet (default {ENGINES})")
    parser.add_argument("--blocks", type=int, default=0,
                        help="KV blocks of each engine (default: 40000, mixed 1000)")
    parser.add_argument("--every", type=int, default=100, help="requests per table row")
    parser.add_argument("--keep", action="store_true", help="leave everything running at the end")
    options = parser.parse_args()
    trace = read_trace(options.trace, options.requests)
    options.blocks = options.blocks or BLOCKS[options.fleet]
    demo = MixedDemo(options) if options.fleet == "mixed" else VllmDemo(options)
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
