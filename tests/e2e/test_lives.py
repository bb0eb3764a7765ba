"""Field cases of a publisher's life: it restarts, it leaves, it was never there."""

import signal
import time

import pytest

from conductor_e2e import SLOWNESS, poll_until
from e2e_publisher import Publisher
from e2e_wire import A, B, S, chain

# BL-11 wants a publisher that comes up found within 2 s. The best attempt counts: the machine may
# be busy with something else.
FOUND_S = 2.0 * SLOWNESS
ATTEMPTS = 3


@pytest.mark.parametrize("replay", [False, True])
def test_bl_06_engine_restarts_in_place(daemon, publisher, replay):
    p1 = publisher(replay=replay)
    daemon.register(p1)
    events, x = chain(100, 8, per_event=1)
    for event in events:
        p1.send(event)
    daemon.wait_matched(32, x)
    p1.restart()
    p1.wait_subscribed()
    p1.send(S([91], A))
    daemon.wait_matched(4, A)

    def check():
        assert daemon.matched(x) == 0 and daemon.matched(A) == 4
        service = daemon.service()
        assert service["Epoch"] == 2 and service["LastSeq"] == 0
        assert service["LostRanges"] == []

    check()
    assert daemon.counter("epoch_changes_total") == 1
    daemon.restart()
    check()
    assert daemon.counter("epoch_changes_total") == 1, "of the state, so it survives"
    daemon.verify()


def test_bl_06_the_new_life_overtook_the_old_number_unseen(daemon, publisher):
    """The replay probe tells the lives apart although the numbers never fall."""
    p1 = publisher()
    daemon.register(p1)
    daemon.wait_state("live")
    events, x = chain(100, 8, per_event=1)
    for event in events:
        p1.send(event)
    daemon.wait_matched(32, x)
    p1.stop()
    p1.new_life()
    for seq in range(12):
        p1.send(S([200 + seq], [seq] * 4), live=False)
    p1.start()
    daemon.wait_matched(4, [11] * 4)
    assert daemon.matched(x) == 0 and daemon.matched([0] * 4) == 4
    assert daemon.service()["Epoch"] == 2


@pytest.mark.parametrize("restart_between", [False, True])
def test_bl_08_registered_again_starts_fresh(daemon, publisher, restart_between):
    p1 = publisher()
    daemon.register(p1)
    events, tokens = chain(100, 11, per_event=1)
    for event in events[:10]:
        p1.send(event)
    daemon.wait_matched(40, tokens)
    daemon.unregister()
    assert daemon.hits(tokens) == {}
    if restart_between:
        daemon.restart()
        assert daemon.hits(tokens) == {}
    poll_until(lambda: p1.subscribers() == 0, "nobody listens any more")
    asked = len(p1.replay_starts)
    daemon.register(p1)
    p1.send(events[10])
    daemon.wait_matched(44, tokens)
    assert p1.replay_starts[asked] == 0, "replay from the start"
    assert [s["InstanceID"] for s in daemon.services()] == ["i1"]
    assert daemon.service()["LostRanges"] == []
    daemon.restart()
    assert daemon.matched(tokens) == 44
    assert [s["InstanceID"] for s in daemon.services()] == ["i1"]


def test_bl_11_an_endpoint_that_comes_and_goes(daemon):
    p1 = Publisher(start=False)  # its ports are chosen, nobody listens on them
    try:
        daemon.register(p1, wait=False)
        service = daemon.service()
        assert service["StreamState"] == "connecting" and service["LastFrameAgeMs"] is None
        fastest = comes_up(daemon, p1)
        for _ in range(ATTEMPTS):
            assert daemon.service()["LastError"] == ""
            p1.stop()
            daemon.wait_state("connecting")
            assert daemon.service()["DisconnectedForMs"] is not None
            daemon.signal(signal.SIGSTOP)
            daemon.signal(signal.SIGCONT)
            fastest = min(fastest, comes_up(daemon, p1))
            if fastest < FOUND_S:
                break
        assert fastest < FOUND_S
        assert daemon.service()["Epoch"] == 1, "one life"
        p1.wait_subscribed().send(S([99], A))
        daemon.wait_matched(4, A)
        assert daemon.service()["LastFrameAgeMs"] is not None
    finally:
        p1.stop()


def comes_up(daemon, p):
    """How long it takes until a block is found that it stored while nobody listened."""
    tokens = [p.next_seq, 7, 7, 7]
    retries = daemon.counter("connect_retries_total")
    # Long enough for a back-off without a sensible ceiling to have grown. The next try is then the
    # whole of one interval away.
    poll_until(lambda: daemon.counter("connect_retries_total") >= retries + 6, "it tries again")
    assert daemon.service()["LastError"] != ""
    p.send(S([p.next_seq + 1], tokens), live=False)
    p.start()
    begin = time.monotonic()
    daemon.wait_matched(4, tokens)
    took = time.monotonic() - begin
    daemon.wait_state("live")
    return took


def test_bl_11_without_replay(daemon):
    p1 = Publisher(start=False, replay=False)
    try:
        daemon.register(p1, wait=False)
        poll_until(lambda: daemon.counter("connect_retries_total") >= 2, "it tries again")
        p1.start()
        p1.wait_subscribed().send(S([1], A))
        daemon.wait_matched(4, A)
    finally:
        p1.stop()
