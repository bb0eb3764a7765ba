"""The mixed fleet: two ranks of one vLLM instance, another vLLM, an SGLang engine, and a store.

Two models, so two contexts. What the vLLM engines evict goes into the store, which says so with
events of its own; a prompt finds it there as cpu_share, whichever engine computed it. The store
has no replay socket: what it says while nobody listens is lost, and Conductor must say that.
"""

import collections
import random

from demo_processes import Base, Load, fail, poll, splitmix64

VLLM_MODEL, SGLANG_MODEL = "vllm-model", "sglang-model"
BLOCK_SIZE, PAGE_SIZE = 16, 64
STORE_RANKS = 2  # a block is in the store when the objects of both are
STORE = "store"
STORE_SIZE = 4  # times an engine's blocks
HOST_SIZE = 2
SGLANG_SHARE = 4  # one conversation in so many goes to the SGLang model
LOAD_COST = 0.1  # of a token from another tier, where computing it is 1
SAMPLE = 40

# A rank that serves prompts: its simulator, its name there, and as Conductor knows it.
Rank = collections.namedtuple("Rank", "simulator baseline target instance dp_rank")


class MixedDemo(Base):
    def __init__(self, options):
        super().__init__(options)
        self.random = random.Random(1)
        self.requests = self.tokens = self.device = self.local = self.share = self.chance = 0
        self.best_shared = None
        self.store_lost = False

    # --- set-up --------------------------------------------------------------------------------
    def start(self):
        blocks = self.options.blocks
        vllm = ["--model", VLLM_MODEL, "--block-size", BLOCK_SIZE, "--blocks", blocks,
                "--era", "c", "--show-removed"]
        pages = blocks * BLOCK_SIZE // PAGE_SIZE
        sglang = ["--type", "sglang", "--model", SGLANG_MODEL, "--block-size", PAGE_SIZE,
                  "--blocks", pages, "--host-blocks", HOST_SIZE * pages, "--era", "s4"]
        ranked = self.simulate(*vllm, "--dp-ranks", 2), self.simulate(*vllm, "--dp-ranks", 2)
        single = self.simulate(*vllm), self.simulate(*vllm)
        paged = self.simulate(*sglang), self.simulate(*sglang)
        self.store = self.simulate(
            "--type", "mooncake", "--era", "m3", "--keys", "vllm", "--tp", STORE_RANKS,
            "--model", VLLM_MODEL, "--block-size", BLOCK_SIZE, "--blocks", STORE_SIZE * blocks)
        self.vllm_ranks = [Rank(*ranked, "0.0", "vllm-a", 0), Rank(*ranked, "0.1", "vllm-a", 1),
                           Rank(*single, "0.0", "vllm-b", 0)]
        self.sglang_rank = Rank(*paged, "0.0", "sglang-c", 0)
        self.ranks = [*self.vllm_ranks, self.sglang_rank]
        self.load = Load(self.ranks)
        self.daemon.start()
        self.connect()
        self.daemon.wait_ready()
        self.register_all()
        poll("live streams", lambda: {s["StreamState"] for s in self.services()} == {"live"})

    def register_all(self):
        for rank in self.ranks:
            described = rank.simulator.description
            own = described["engines"][0]["ranks"][rank.dp_rank]
            self.register({
                "instance_id": rank.instance, "publisher_type": described["type"],
                "endpoint": own["live"], "replay_endpoint": own["replay"],
                "model_name": described["model"], "block_size": described["block_size"],
                "dp_rank": rank.dp_rank, "hash_profile": described["hash_profile"]})
        self.register({
            "instance_id": STORE, "publisher_type": "Mooncake",
            "endpoint": self.store.engines[0]["live"], "model_name": VLLM_MODEL,
            "block_size": BLOCK_SIZE, "pool_parts": {"tp": STORE_RANKS},
            "hash_profile": self.store.description["hash_profile"]})

    # --- routing ---------------------------------------------------------------------------------
    @staticmethod
    def is_sglang(request):
        """All turns of a conversation go to the same model: they agree in the second id."""
        return splitmix64(request["hash_ids"][:2][-1]) % SGLANG_SHARE == 0

    def ask(self, request):
        if self.is_sglang(request):
            return self.query(SGLANG_MODEL, PAGE_SIZE, request)
        return self.query(VLLM_MODEL, BLOCK_SIZE, request)

    def route(self, request):
        """The rank to serve a prompt, and what Conductor says it finds in each tier."""
        hits = self.ask(request)
        nothing = {"device": 0, "cpu_local": 0, "cpu_share": 0, "disk": 0}

        def tiers(rank):
            matches = hits.get(rank.instance, {}).get("rank_matches", {})
            return matches.get(str(rank.dp_rank), nothing)

        if self.is_sglang(request):
            return self.sglang_rank, tiers(self.sglang_rank)
        # What is in the store has to be loaded: that is less work than computing it, but some.
        best = self.load.choose({rank: request["input_length"] - tiers(rank)["disk"] + LOAD_COST *
                                 (tiers(rank)["disk"] - tiers(rank)["device"])
                                 for rank in self.vllm_ranks})
        return best, tiers(best)

    def serve(self, request, rank, tiers=None):
        reply = rank.simulator.serve(rank.target, request)
        if reply.get("removed"):
            self.store.ask("put " + str(reply["removed"]).replace("'", '"'))
        device = reply["hit_tokens"]
        local = max(0, reply.get("host_hit_tokens", 0) - device)
        share = max(0, tiers["cpu_share"] - tiers["cpu_local"]) if tiers else 0
        self.load.add(rank, request["input_length"] - device - local - share)
        others = [self.sglang_rank] if self.is_sglang(request) else self.vllm_ranks
        other = self.random.choice(others)
        reply = other.baseline.serve(other.target, request)
        self.chance += max(reply["hit_tokens"], reply.get("host_hit_tokens", 0))
        self.requests += 1
        self.tokens += request["input_length"]
        self.device += device
        self.local += local
        self.share += share

    def run(self, requests):
        for i, request in enumerate(requests, 1):
            rank, tiers = self.route(request)
            shared = tiers["cpu_share"] - tiers["cpu_local"]
            if tiers["device"] and (self.best_shared is None or shared > self.best_shared[0]):
                self.best_shared = shared, request, rank, tiers
            self.serve(request, rank, tiers)
            if i % self.options.every == 0:
                self.row()

    def percent(self, tokens):
        return 100 * tokens / max(1, self.tokens)

    def row(self):
        blocks = {self.name(s): s["Blocks"] for s in self.services()}
        held = [blocks[rank.instance, rank.dp_rank]["device"] for rank in self.ranks]
        print(f"{self.requests:8d} {self.percent(self.device):7.1f}% "
              f"{self.percent(self.local):8.1f}% {self.percent(self.share):8.1f}% "
              f"{self.percent(self.chance):7.1f}% "
              f"{self.latency_us(0.5, 200):7.0f} {self.latency_us(0.99, 200):7.0f}  "
              f"{' '.join(f'{b:6d}' for b in held)} {blocks[STORE, 0]['cpu_share']:7d}",
              flush=True)

    # --- what is published, applied, lost --------------------------------------------------------
    @staticmethod
    def name(service):
        return service["InstanceID"], service["DPRank"]

    def published(self):
        """The last number of every stream."""
        numbers = {(r.instance, r.dp_rank): r.simulator.last_number(r.target) for r in self.ranks}
        return {**numbers, (STORE, 0): self.store.last_number("0")}

    def settle(self):
        """Waits until all that was published is applied, and counts what everybody holds."""
        published = self.published()
        poll("catching up", lambda: {self.name(s): s["LastSeq"] for s in self.services()} ==
             published)
        services = {self.name(s): s for s in self.services()}
        for rank in self.ranks:
            service = services[rank.instance, rank.dp_rank]
            cached = rank.simulator.ask(f"{rank.target} stats")["cached_blocks"]
            if service["LostRanges"] or service["Blocks"]["device"] != cached:
                fail(f"{rank.instance}: lost {service['LostRanges']}, it has {cached} blocks, "
                     f"Conductor knows {service['Blocks']}")
        if not self.store_lost:
            store, cached = services[STORE, 0], self.store.ask("stats")["cached_blocks"]
            if store["LostRanges"] or store["Blocks"]["cpu_share"] != cached:
                fail(f"the store has {cached} blocks, Conductor knows {store['Blocks']}")
        return services

    def kill_and_miss(self, requests):
        before = self.published()
        self.daemon.kill()
        turn = {True: 0, False: 0}
        for request in requests:
            sglang = self.is_sglang(request)
            ranks = [self.sglang_rank] if sglang else self.vllm_ranks
            self.serve(request, ranks[turn[sglang] % len(ranks)])
            turn[sglang] += 1
        after = self.published()
        unheard = (after[STORE, 0] or 0) - (before[STORE, 0] or 0)
        missed = sum(after[name] - (-1 if before[name] is None else before[name])
                     for name in after if name != (STORE, 0) and after[name] is not None)
        print(f"-- killed again; {len(requests)} requests served while it was down: the engines "
              f"published {missed} batches, the store {unheard}", flush=True)
        self.daemon.start()
        self.connect()
        self.daemon.wait_ready()
        # Only its next number tells that a store without replay has spoken in between.
        self.store_lost = unheard > 0
        self.store.ask(f'put ["{0:064x}"]')
        store = self.settle()[STORE, 0]
        print("-- the engines' batches were all replayed, nothing of them is lost")
        if not unheard:
            return
        lost = [(before[STORE, 0] or 0) + 1, after[STORE, 0]]
        if store["LostRanges"] != [lost] or store["StreamState"] != "degraded":
            fail(f"the store lost {lost}, Conductor says {store['LostRanges']}, "
                 f"{store['StreamState']}")
        print(f"-- the store has no replay socket: batches {lost[0]} to {lost[1]} are lost, its "
              f"stream is `degraded`:\n"
              f"   blocks it took in meanwhile are not found, blocks it dropped may still be; "
              f"an answer that rests\n   on it alone carries Conductor-Degraded")
        self.restart_store()

    def restart_store(self):
        """What clears a lost range: a new life of the store (or `cleared`, or a registration)."""
        held = self.store.ask("stats")["cached_blocks"]
        self.store.ask("restart")
        self.store.ask(f'put ["{0:064x}"]')
        self.store_lost = False
        store = self.settle()[STORE, 0]
        if store["LostRanges"] or store["StreamState"] != "live":
            fail(f"the store's new life: {store['LostRanges']}, {store['StreamState']}")
        print(f"-- the store's master is restarted: a new life, its {held} blocks are forgotten, "
              f"its stream is `live`\n", flush=True)

    # --- the whole ---------------------------------------------------------------------------------
    def show_shared(self):
        shared, request, rank, tiers = self.best_shared
        print(f"\nan answer: a prompt of {request['input_length']} tokens went to {rank.instance} "
              f"rank {rank.dp_rank}: {tiers['device']} tokens in its device,\n"
              f"           {shared} more in the store ({STORE_RANKS} objects for each block), "
              f"{request['input_length'] - tiers['disk']} to compute")

    def main(self, trace):
        print(f"{len(trace)} requests; vllm-a (2 ranks), vllm-b: {self.options.blocks} blocks of "
              f"{BLOCK_SIZE} tokens each; sglang-c: as many tokens in pages of {PAGE_SIZE}, twice "
              f"that on its host;\na store of what the vLLM engines evict; data and logs in "
              f"{self.directory}\n")
        print("                hit rate, routed       chance,    query us       blocks of")
        print("requests  device cpu_local cpu_share no store    p50     p99"
              "     a.0    a.1      b      c   store", flush=True)
        half = len(trace) // 2
        missed = min(50, max(1, len(trace) // 20))
        self.run(trace[:half])
        self.settle()
        sample = trace[max(0, half - SAMPLE):half]
        self.restart_and_compare(lambda: (self.daemon.ctl("status")["digest"],
                                          [self.ask(request) for request in sample]))
        self.kill_and_miss(trace[half:half + missed])
        self.run(trace[half + missed:])
        self.settle()
        if self.best_shared and self.best_shared[0] > 0:
            self.show_shared()
        found = self.device + self.local + self.share
        print(f"\nsummary: {self.requests} requests, {self.tokens} prompt tokens; hit rate "
              f"{self.percent(found):.1f}% (device {self.percent(self.device):.1f}%, cpu_local "
              f"{self.percent(self.local):.1f}%, cpu_share {self.percent(self.share):.1f}%), "
              f"by chance and without the store {self.percent(self.chance):.1f}%")
        print(f"         query p50 {self.latency_us(0.5):.0f} us, p99 {self.latency_us(0.99):.0f} "
              f"us through the Python client; final digest {self.daemon.ctl('status')['digest']}")
        if found < self.chance:
            fail("routing by Conductor was not better than chance")
        if len(trace) >= 1000 and not self.share:
            fail("nothing was found in the store")
