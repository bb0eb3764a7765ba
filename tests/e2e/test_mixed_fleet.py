"""The worked example of docs/publishers.md, with the same numbers: two ranks of one vLLM instance,
another vLLM, an SGLang engine and a Mooncake Store, in two contexts of one model."""

import hashlib
import struct
import time

import msgpack
import pytest

from conductor_e2e import poll_until
from e2e_wire import R, S

PROMPT = list(range(1, 25))
BLOCK, PAGE = 4, 8
SGLANG_PROFILE = {
    "strategy": "sglang",
    "algorithm": "sha256_raw",
    "index_projection": "first64_be",
}
TIERS = ("device", "cpu_local", "cpu_share", "disk")


def vllm_digests(tokens):
    """sha256_cbor with PYTHONHASHSEED 0: SHA-256 over CBOR of (parent, tokens, nothing)."""
    assert all(0 <= token < 24 for token in tokens[:-1]) and tokens[-1] <= 24
    parent, digests = hashlib.sha256(b"\x610").digest(), []
    for first in range(0, len(tokens), BLOCK):
        ints = b"".join(
            bytes([token]) if token < 24 else bytes([24, token])
            for token in tokens[first : first + BLOCK]
        )
        body = b"\x83\x58\x20" + parent + bytes([0x80 + BLOCK]) + ints + b"\xf6"
        parent = hashlib.sha256(body).digest()
        digests.append(parent)
    return digests


def sglang_names(tokens):
    """The first 8 bytes, as the signed integers that SGLang publishes; a short last page too."""
    prior, names = b"", []
    for first in range(0, len(tokens), PAGE):
        page = tokens[first : first + PAGE]
        prior = hashlib.sha256(prior + struct.pack(f"<{len(page)}I", *page)).digest()
        names.append(struct.unpack(">q", prior[:8])[0])
    return names


class Store:
    """The newest era of a store's master: only the object's key tells the block."""

    def __init__(self, publisher):
        self.publisher = publisher
        self.publisher.next_seq = 1  # a master's first number
        self.event_id = 0

    def event(self, kind, medium=None, digest=None, rank=0):
        self.event_id += 1
        event = {
            "event_id": self.event_id,
            "timestamp": self.now_ms,
            "event_type": kind,
            "model_name": "chat",
            "block_size": BLOCK,
            "additional_salt": None,
            "lora_name": None,
            "tenant_id": "default",
            "backend_id": "pool-a",
            "medium": medium,
            "dp_rank": 0,
        }
        if digest is not None:
            key = f"chat@tp_rank:{rank}@pcp0@dcp0@pp_rank:0@{digest.hex()}"
            event.update(group_id=None, object_key=key, seq_hashes=[], base_block_idx=None)
        return event

    def send(self, *events):
        """One batch of (kind, medium, digest, rank) tuples."""
        self.now_ms = int(time.time() * 1000)
        payload = msgpack.packb([self.now_ms, [self.event(*event) for event in events], 0])
        return self.publisher.send_payload(payload, ring=False)


class Fleet:
    def __init__(self, daemon, publisher):
        self.daemon = daemon
        self.a0, self.a1, self.b, self.c = publisher(), publisher(), publisher(), publisher()
        self.pool = publisher(replay=False)
        vllm = {"modelname": "chat", "block_size": BLOCK}
        daemon.register(self.a0, "vllm-a", 0, **vllm).register(self.a1, "vllm-a", 1, **vllm)
        daemon.register(self.b, "vllm-b", **vllm)
        sglang = {"modelname": "chat", "block_size": PAGE, "hash_profile": SGLANG_PROFILE}
        daemon.register(self.c, "sglang-c", type="SGLang", **sglang)
        daemon.register(self.pool, "pool", type="Mooncake", pool_parts={"tp": 2}, **vllm)
        self.store = Store(self.pool)
        self.digests = vllm_digests(PROMPT)
        self.names = [int.from_bytes(digest[-8:], "big") for digest in self.digests]

    def fill(self):
        """The table "who holds what" of the page."""
        h, d, t = self.names, self.digests, PROMPT
        self.a0.send(S(h[0:3], t[0:12], era="map"), rank=0)
        self.a1.send(
            S(h[0:2], t[0:8], era="map"), S(h[2:4], [], medium="CPU", era="map"), rank=1
        )
        self.b.send(S(h[0:1], t[0:4], era="array"), rank=0)
        pages = sglang_names(t[:22])
        self.c.send(
            S(pages[0:1], t[0:8], block_size=8, era="map"),
            S(pages[1:2], t[8:16], p=pages[0], medium="CPU_PINNED", block_size=8, era="map"),
            S(pages[2:3], t[16:22], p=pages[1], medium="EXTERNAL", block_size=6, era="map"),
            rank=0,
        )
        self.store.send(
            *[("stored", "cpu", d[block], rank) for block in (3, 4) for rank in (0, 1)],
            ("stored", "cpu", d[5], 0),
            *[("stored", "disk", d[5], rank) for rank in (0, 1)],
        )
        self.settle()

    def settle(self):
        for instance, rank, one in (
            ("vllm-a", 0, self.a0),
            ("vllm-a", 1, self.a1),
            ("vllm-b", 0, self.b),
            ("sglang-c", 0, self.c),
            ("pool", 0, self.pool),
        ):
            self.daemon.wait_seq(one.next_seq - 1, instance, rank)

    def answer(self, tokens, block_size):
        """Instance -> rank -> (device, cpu_local, cpu_share, disk)."""
        body = self.daemon.ok(self.daemon.ask(tokens, "chat", block_size))
        return {
            instance: {
                int(rank): tuple(match[tier] for tier in TIERS)
                for rank, match in hits["rank_matches"].items()
            }
            for instance, hits in body["instances"].items()
        }


@pytest.fixture
def fleet(daemon, publisher):
    fleet = Fleet(daemon, publisher)
    fleet.fill()
    return fleet


FULL = {
    "vllm-a": {0: (12, 12, 20, 24), 1: (8, 16, 20, 24)},
    "vllm-b": {0: (4, 4, 4, 4)},
}


def test_the_answer_of_the_page(fleet):
    assert fleet.answer(PROMPT, BLOCK) == FULL
    instances = fleet.daemon.ok(fleet.daemon.ask(PROMPT, "chat", BLOCK))["instances"]
    best = instances["vllm-a"]
    assert best["longest_matched"] == 24 and best["dp"] == {"0": 12, "1": 8}
    assert [best[tier] for tier in TIERS] == [12, 16, 20, 24], "the best rank, tier by tier"
    fleet.daemon.restart()
    assert fleet.answer(PROMPT, BLOCK) == FULL
    fleet.daemon.verify()


def test_the_other_context_has_pages_and_a_short_last_one(fleet):
    assert fleet.answer(PROMPT[:22], PAGE) == {"sglang-c": {0: (8, 16, 22, 22)}}
    assert fleet.answer(PROMPT, PAGE) == {"sglang-c": {0: (8, 16, 16, 16)}}
    assert fleet.answer(PROMPT[:21], PAGE) == {"sglang-c": {0: (8, 16, 16, 16)}}


def test_blocks_that_were_only_names_are_counted_once_when_they_are_known(fleet):
    """Block 3 is a name of vllm-a's host and a name of the store until an engine computes it."""
    fleet.b.send(S(fleet.names[0:4], PROMPT[0:16], era="map"), rank=0)
    fleet.settle()
    assert fleet.answer(PROMPT, BLOCK) == {**FULL, "vllm-b": {0: (16, 16, 20, 24)}}
    view = fleet.daemon.global_view()["contexts"]
    assert {one["block_size"]: one["prefix_count"] for one in view} == {BLOCK: 6, PAGE: 3}


def test_one_part_less_and_the_block_is_gone(fleet):
    fleet.store.send(("removed", "cpu", fleet.digests[4], 1))
    fleet.settle()
    assert fleet.answer(PROMPT, BLOCK)["vllm-a"] == {0: (12, 12, 16, 16), 1: (8, 16, 16, 16)}
    fleet.a1.send(R(fleet.names[2:4], medium="CPU", era="map"), rank=1)
    fleet.settle()
    assert fleet.answer(PROMPT, BLOCK)["vllm-a"] == {0: (12, 12, 16, 16), 1: (8, 8, 8, 8)}


def test_a_cleared_store_leaves_what_the_engines_hold(fleet):
    fleet.store.send(("cleared",))
    fleet.settle()
    assert fleet.answer(PROMPT, BLOCK) == {
        "vllm-a": {0: (12, 12, 12, 12), 1: (8, 16, 16, 16)},
        "vllm-b": {0: (4, 4, 4, 4)},
    }


def test_what_the_store_lost_is_said_of_those_who_need_it(fleet):
    lost = fleet.pool.next_seq
    fleet.pool.next_seq += 2
    fleet.store.send(("stored", "cpu", fleet.digests[0], 0))
    fleet.settle()
    pool = fleet.daemon.service("pool")
    assert (pool["StreamState"], pool["LostRanges"]) == ("degraded", [[lost, lost + 1]])
    answer = fleet.daemon.ask(PROMPT, "chat", BLOCK)
    assert answer.headers["Conductor-Degraded"] == "vllm-a"
    assert fleet.answer(PROMPT, BLOCK) == FULL
    # A block that it does not count for is nobody's trouble.
    assert fleet.daemon.ask(PROMPT[:8], "chat", BLOCK).headers["Conductor-Degraded"] is None
    fleet.store.send(("cleared",))
    fleet.settle()
    poll_until(lambda: fleet.daemon.service("pool")["StreamState"] == "live", "the pool is live")
    assert fleet.daemon.service("pool")["LostRanges"] == []
