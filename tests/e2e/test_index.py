"""Field cases of the index: cycles, clears, copies, unknown names, orphans, ranks."""

import threading
import time

import pytest

from conductor_e2e import DEADLINE_S, SLOWNESS, poll_until
from e2e_wire import A, B, C, CLEAR, D, ERAS, FX9, R, S

ORPHANS = 100_000
# A sanitizer's build takes a tenth: what it looks for is there as well.
LARGE_BLOCKS = 1_000_000 if SLOWNESS == 1 else 100_000
PER_BATCH = 1_000
LARGE_S = 120 * SLOWNESS  # until so many are applied
# BL-30 wants a registration within 1 s beside a large unregister, and so do queries. The best
# attempt counts: the machine may be busy with something else.
BESIDE_S = 1.0 * SLOWNESS
ATTEMPTS = 3


@pytest.mark.parametrize("era", ERAS)
def test_bl_18_cycles_and_repeated_content(daemon, publisher, era):
    p1 = publisher()
    daemon.register(p1)
    p1.send(S([7], A, p=7, era=era))
    p1.send(S([8], B, p=9, era=era))
    p1.send(S([9], C, p=8, era=era))
    daemon.wait_seq(2)
    assert daemon.counter("blocks_rejected_total") == 3, "with the orphan that was on the cycle"
    assert daemon.metric("conductor_fragments") == 0
    p1.send(S([21, 22, 23], A + A + A, era=era))
    daemon.wait_matched(12, A * 3)
    p1.send(S([5, 5], A + A, era=era))
    daemon.wait_seq(4)

    def check():
        assert daemon.matched(A) == 4 and daemon.matched(A * 3) == 12
        assert daemon.matched(A * 20) == 12, "no further than #3"
        assert daemon.matched(A + B + C) == 4 and daemon.matched(B + C) == 0
        assert daemon.counter("blocks_rejected_total") == 4

    check()
    daemon.restart()
    check()
    daemon.verify()


def test_bl_18_a_block_twice_in_one_event(daemon, publisher):
    p1 = publisher()
    daemon.register(p1)
    p1.send(S([5, 5], A + A))
    daemon.wait_seq(0)
    assert 4 <= daemon.matched(A * 50) <= 8
    p1.send(R([5]))
    daemon.wait_seq(1)
    assert daemon.matched(A * 50) <= 4
    daemon.restart()
    assert daemon.matched(A * 50) <= 4


@pytest.mark.parametrize("clear", [FX9, None], ids=["array", "rfc"])
def test_bl_25_all_blocks_cleared(daemon, publisher, clear):
    p1, p2 = publisher(), publisher()
    daemon.register(p1, "i1").register(p2, "i2")
    p1.send(S([1, 2], A + B))
    p2.send(S([1, 2], A + B))
    daemon.wait_matched(8, A + B, "i1")
    daemon.wait_matched(8, A + B, "i2")

    def send_clear():
        return p1.send_payload(clear) if clear else p1.send({"event_type": "cleared"})

    daemon.wait_seq(send_clear())
    assert daemon.hits(A + B) == {"i1": 0, "i2": 8}
    daemon.wait_seq(send_clear())
    assert daemon.hits(A + B) == {"i1": 0, "i2": 8}, "a second clear is harmless"
    p1.send(S([1], A))
    daemon.wait_matched(4, A + B, "i1")
    assert daemon.hits(A + B) == {"i1": 4, "i2": 8}
    assert daemon.counter("clears_total") == 2 and daemon.counter("decode_errors_total") == 0
    daemon.restart()
    assert daemon.hits(A + B) == {"i1": 4, "i2": 8}
    assert daemon.global_view()["contexts"][0]["prefix_count"] == 3


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("reset", [None, "clear", "life"])
def test_bl_28_stored_twice_removed_once(daemon, publisher, era, reset):
    p1 = publisher(replay=False)
    daemon.register(p1)
    prompt = A + B + C

    def after(*events):
        daemon.wait_seq(p1.send(*events))
        return daemon.matched(prompt)

    assert after(S([71, 72, 73], prompt, era=era)) == 12
    assert after(S([73], C, p=72, era=era)) == 12
    if reset:  # a clear or a new life resets the count
        if reset == "clear":
            assert after(CLEAR(era)) == 0
        else:
            p1.restart()
            p1.wait_subscribed().send(S([70], D, era=era))
            daemon.wait_matched(0, prompt)
        assert after(S([71, 72, 73], prompt, era=era)) == 12
        assert after(R([73], era=era)) == 8
    else:
        assert after(R([73], era=era)) == 12
        daemon.restart()
        p1.wait_subscribed()
        assert after(R([73], era=era)) == 8, "the count survived"
    unknown = daemon.counter("remove_unknown_total")
    assert after(R([73], era=era)) == 8
    assert daemon.counter("remove_unknown_total") == unknown + 1
    assert after(S([73], C, p=72, era=era)) == 12, "it did not go below zero"
    assert after(R([73], era=era)) == 8
    daemon.restart()
    assert daemon.matched(prompt) == 8
    daemon.verify()


@pytest.mark.parametrize("era", ERAS)
def test_bl_30_a_remove_list_with_an_unknown_name(daemon, publisher, era):
    p1 = publisher()
    daemon.register(p1)
    p1.send(S([81, 82, 83], A + B + C, era=era))
    p1.send(R([81, 999, 83], era=era))
    daemon.wait_seq(1)

    def check():
        assert daemon.matched(A) == 0 and daemon.matched(A + B + C) == 0
        service = daemon.service()
        assert service["Counters"]["remove_unknown_total"] == 1
        assert service["Blocks"]["device"] == 1, "82 is kept"

    check()
    daemon.restart()
    check()
    p1.wait_subscribed().send(S([81], A, era=era))
    daemon.wait_matched(8, A + B + C)


def test_bl_30_registering_beside_a_large_unregister(daemon, publisher):
    p1, p2, p3 = publisher(), publisher(), publisher()
    daemon.register(p3, "i3")
    p3.send(S([1, 2], D + C))
    daemon.register(p1)
    for first in range(0, LARGE_BLOCKS, PER_BATCH):
        tokens = [token for i in range(first, first + PER_BATCH) for token in (i, 1, 2, 3)]
        p1.send(S(list(range(first + 1, first + PER_BATCH + 1)), tokens))

    def timed(call):
        begin = time.monotonic()
        call()
        return time.monotonic() - begin

    for _ in range(ATTEMPTS):
        daemon.wait_seq(LARGE_BLOCKS // PER_BATCH - 1, deadline_s=LARGE_S)
        assert daemon.service()["Blocks"]["device"] == LARGE_BLOCKS
        unregister = threading.Thread(target=daemon.unregister)
        unregister.start()
        took = [timed(lambda: daemon.register(p2, "i2", wait=False))]
        # As long as anything of it is left in memory.
        deadline = time.monotonic() + LARGE_S
        while unregister.is_alive() or daemon.metric("conductor_index_entries") > 8:
            assert time.monotonic() < deadline, "it is never cleaned up"
            took.append(timed(lambda: daemon.matched(D + C, "i3") == 8 or pytest.fail("i3")))
        unregister.join(DEADLINE_S)
        if max(took) < BESIDE_S:
            break
        daemon.unregister("i2")
        daemon.register(p1, wait=False)
    assert max(took) < BESIDE_S and len(took) > 1
    p2.wait_subscribed().send(S([1], A))
    daemon.wait_matched(4, A, "i2")
    assert daemon.global_view()["contexts"][0]["prefix_count"] == 3
    daemon.restart()
    assert daemon.hits(A) == {"i2": 4, "i3": 0}
    daemon.verify()


@pytest.mark.parametrize("era", ERAS)
def test_bl_32_a_child_before_its_parent(daemon, publisher, era):
    p1 = publisher(replay=False)
    daemon.register(p1)
    p1.send(S([12], B, p=11, era=era), seq=50)
    p1.send(S([13], C, p=12, era=era))
    daemon.wait_seq(51)

    def check():
        assert daemon.matched(A + B + C) == 0
        assert daemon.matched(B + C) == 0, "not a prefix"
        assert daemon.metric("conductor_fragments") == 2
        assert daemon.service()["HistoryFrom"] == 50

    check()
    daemon.restart()
    check()
    p1.wait_subscribed().send(S([11], A, era=era))
    daemon.wait_matched(12, A + B + C)
    assert daemon.matched(B + C) == 0
    assert daemon.metric("conductor_fragments") == 0
    assert daemon.service()["StreamState"] == "live"
    daemon.restart()
    assert daemon.matched(A + B + C) == 12
    daemon.verify()


def test_bl_32_the_parent_arrives_by_replay(daemon, publisher):
    p1 = publisher()
    p1.send(S([12], B, p=11), seq=50, live=False)
    daemon.register(p1)
    p1.send(S([13], C, p=12))
    daemon.wait_seq(51)
    daemon.wait_state("live")
    assert daemon.matched(A + B + C) == 0 and daemon.matched(B + C) == 0
    p1.send(S([11], A), live=False)
    p1.send(S([90], D))  # exposes the gap
    daemon.wait_matched(12, A + B + C)
    assert daemon.matched(D) == 4 and daemon.service()["LostRanges"] == []


def test_bl_32_orphans_whose_parents_never_come(daemon, publisher):
    p1 = publisher()
    daemon.register(p1)
    for first in range(0, ORPHANS, PER_BATCH):
        p1.send(*(S([2 * i + 10**9], [i, 1, 2, 3], p=2 * i + 1)
                  for i in range(first, first + PER_BATCH)))  # fmt: skip
    p1.send(S([2], A))
    daemon.wait_matched(4, A)
    assert daemon.metric("conductor_fragments") == ORPHANS
    assert daemon.matched([5, 1, 2, 3]) == 0
    daemon.restart()
    assert daemon.metric("conductor_fragments") == ORPHANS and daemon.matched(A) == 4
    p1.wait_subscribed().send(CLEAR())
    poll_until(lambda: daemon.metric("conductor_fragments") == 0, "a clear takes them along")


def test_bl_33_data_parallel_ranks(daemon, publisher):
    p0, p1 = publisher(topic=b"kv@i1@m"), publisher(topic=b"kv@i1@m")
    daemon.register(p0, rank=0).register(p1, rank=1)
    prompt = A + B + C

    def ranks():
        hits = daemon.ok(daemon.ask(prompt))["instances"]["i1"]
        assert hits["longest_matched"] == max(hits["dp"].values())
        return hits["dp"]

    p0.send(S([1, 2], A + B), rank=0)
    p1.send(S([1, 2, 3], prompt), rank=1)
    daemon.wait_seq(0, rank=0)
    daemon.wait_seq(0, rank=1)
    assert ranks() == {"0": 8, "1": 12}
    p0.send(R([2]), rank=0)
    daemon.wait_seq(1, rank=0)
    assert ranks() == {"0": 4, "1": 12}
    assert (daemon.service(rank=0)["LastSeq"], daemon.service(rank=1)["LastSeq"]) == (1, 0)

    p0.send(S([1, 2, 3], prompt), rank=5)  # contradicts the registration: rejected and counted
    daemon.wait_seq(2, rank=0)
    assert ranks() == {"0": 4, "1": 12}
    assert daemon.counter("ignored_rank_mismatch_total", rank=0) == 1
    assert any("rank" in f["code"] for f in daemon.ctl("doctor", code=1)["findings"])
    daemon.restart()
    assert ranks() == {"0": 4, "1": 12}

    daemon.unregister(rank=1)
    assert ranks() == {"0": 4}
    assert daemon.global_view()["contexts"][0]["instances"] == {"i1": [0]}
    daemon.restart()
    assert ranks() == {"0": 4}
    daemon.unregister(rank=0)
    assert daemon.hits(prompt) == {} and daemon.global_view()["context_count"] == 0
    assert daemon.status()["blocks"] == 0
