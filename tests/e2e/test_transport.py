"""Field case BL-46: a consumer that stood still. PUB drops at its high-water mark, silently."""

import signal

from conductor_e2e import poll_until
from e2e_wire import S

BATCHES = 20_000
HWM = 500  # of the publisher's live socket: what is above it vanishes
PADDING = [0] * 128  # the prompt's tail: a burst must not fit into the kernel's buffers


def burst(daemon, p):
    """BATCHES small batches while the daemon stands still; some of them vanish."""
    daemon.register(p, block_size=132)
    daemon.wait_state("live")
    p.send(S([1], prompt(0), block_size=132))
    daemon.wait_seq(0)
    daemon.signal(signal.SIGSTOP)
    try:
        for i in range(1, BATCHES):
            p.send(S([i + 1], prompt(i), block_size=132))
    finally:
        daemon.signal(signal.SIGCONT)
    assert p.vanished > 0, "the socket's queue was behind"

    def taken():  # a last frame that does arrive, so that the gap before it is seen
        before = p.vanished
        p.send(S([BATCHES + 1], prompt(BATCHES), block_size=132))
        return p.vanished == before

    poll_until(taken, "the queue has room again")
    daemon.wait_seq(p.next_seq - 1)


def prompt(i):
    return [i % 1000, i // 1000, 1, 1] + PADDING


def test_bl_46_slow_consumer_heals_from_a_large_ring(new_daemon, publisher):
    daemon = new_daemon()
    p = publisher(ring=2 * BATCHES, hwm=HWM)
    burst(daemon, p)
    service = daemon.service()
    assert service["Counters"]["gaps_total"] > 0
    assert service["Counters"]["replay_requests_total"] > 1
    assert service["LostRanges"] == [] and service["StreamState"] == "live"
    assert service["Blocks"]["device"] == BATCHES + 1
    undisturbed = new_daemon()
    undisturbed.register(p, block_size=132)
    undisturbed.wait_seq(p.next_seq - 1)
    assert undisturbed.global_view() == daemon.global_view()
    assert undisturbed.status()["digest"] == daemon.status()["digest"]
    for i in (0, 1, HWM, BATCHES // 2, BATCHES):
        assert daemon.matched(prompt(i), block_size=132) == 132
    assert daemon.metric("conductor_queue_frames") == 0


def test_bl_46_what_a_small_ring_cannot_heal_is_said(daemon, publisher):
    p = publisher(ring=1000, hwm=HWM)
    burst(daemon, p)
    service = daemon.service()
    assert service["Counters"]["gaps_total"] > 0
    daemon.wait_state("degraded")  # it may ask for what came last
    service = daemon.service()
    lost = sum(to - first + 1 for first, to in service["LostRanges"])
    assert lost > 0 and lost == service["Counters"]["lost_total"]
    assert service["Counters"]["frames_total"] == p.next_seq - lost
    assert daemon.matched(prompt(BATCHES), block_size=132) == 132
    answer = daemon.ask(prompt(BATCHES), block_size=132)
    assert "i1" in answer.headers["Conductor-Degraded"]
