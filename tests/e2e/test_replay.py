"""Field cases of the event stream: what was missed is fetched, what cannot be is said."""

import struct

import pytest

from conductor_e2e import poll_until
from e2e_wire import A, B, C, CLEAR, D, R, S, chain


def test_bl_01_first_batch_is_not_batch_0(daemon, publisher):
    p1 = publisher()
    p1.send(S([11], A), live=False)
    p1.send(S([12], B, p=11), live=False)
    p1.send(S([13], C, p=12), live=False)
    daemon.register(p1)
    p1.send(S([14], D, p=13))
    daemon.wait_matched(16, A + B + C + D)
    service = daemon.service()
    assert service["LastSeq"] == 3 and service["HistoryFrom"] is None
    assert service["LostRanges"] == [] and service["Counters"]["frames_total"] == 4
    assert p1.replay_starts == [0] and p1.replay_refused == 0
    daemon.restart()
    assert daemon.matched(A + B + C + D) == 16
    assert set(p1.replay_starts[1:]) <= {3}, "from the last applied number, not from the start"


def test_bl_01_replay_on_connect_without_traffic(daemon, publisher):
    p1 = publisher()
    p1.send(S([11], A), live=False)
    p1.send(S([12], B, p=11), live=False)
    p1.send(S([13], C, p=12), live=False)
    daemon.register(p1)
    daemon.wait_matched(12, A + B + C + D)
    assert p1.replay_starts == [0]
    daemon.restart()
    assert daemon.matched(A + B + C + D) == 12


def five_batches(p, live):
    """#0 to #4 of one chain; `live` are the numbers that reach the live stream."""
    events, tokens = chain(100, 5, per_event=1)
    for seq, event in enumerate(events):
        p.send(event, seq=seq, live=seq in live)
    return tokens


@pytest.mark.parametrize("layout", ["old", "new"])
def test_bl_02_both_reply_layouts_are_drained(daemon, publisher, layout):
    p = publisher(layout=layout, topic=b"kv@10.0.0.1@m")
    daemon.register(p)
    daemon.wait_state("live")
    before = len(p.replay_starts)
    tokens = five_batches(p, live={0, 4})
    daemon.wait_matched(20, tokens)
    assert p.replay_refused == 0, "a request is '' and 8 bytes"
    assert len(p.replay_starts) == before + 1 and p.replay_starts[-1] in (0, 1)
    service = daemon.service()
    assert service["StreamState"] == "live" and service["LostRanges"] == []
    assert service["Counters"]["blocks_rejected_total"] == 0, "applied in order"
    daemon.restart()
    assert daemon.matched(tokens) == 20


def test_bl_02_a_publisher_that_never_answers_costs_one_bounded_timeout(daemon, publisher):
    p = publisher()
    p.mode = "never"
    daemon.register(p)
    five_batches(p, live={0, 4})
    # 2 s without any reply, once; then the live stream goes on without what is missing.
    daemon.wait_seq(4)
    for seq in range(5, 105):  # were there a timeout for each, this would take minutes
        p.send(S([900], A), seq=seq)
    daemon.wait_matched(4, A)
    daemon.wait_seq(104)
    service = daemon.service()
    assert service["StreamState"] == "degraded" and service["LostRanges"] == [[1, 3]]
    assert service["Counters"]["replay_failures_total"] >= 1
    p.mode = "ok"  # a later answer settles the life; what is below the cursor stays lost
    poll_until(lambda: daemon.counter("replay_frames_total") > 0, "the probe is answered")
    assert daemon.service()["LostRanges"] == [[1, 3]]
    assert daemon.matched(A) == 4


@pytest.mark.parametrize("mode", ["cut", "hole"])
def test_bl_02_an_answer_that_is_not_whole_is_asked_again(new_daemon, publisher, mode):
    daemon = new_daemon(limits={"replay_progress_ms": 1000})  # how long a cut answer is waited for
    p = publisher()
    daemon.register(p)
    daemon.wait_state("live")
    p.mode = mode
    before = len(p.replay_starts)
    tokens = five_batches(p, live={0, 4})
    poll_until(lambda: len(p.replay_starts) > before, "a replay is asked for")
    p.mode = "ok"
    daemon.wait_matched(20, tokens)
    assert daemon.service()["LostRanges"] == []


def test_bl_04_the_cursor_is_where_the_recovery_ended(daemon, publisher):
    p = publisher()
    daemon.register(p)
    daemon.wait_state("live")
    events, tokens = chain(100, 18, per_event=1)
    for seq in range(11):
        p.send(events[seq], seq=seq)
    daemon.wait_seq(10)
    before = daemon.counter("replay_requests_total")
    for seq in range(11, 14):
        p.send(events[seq], seq=seq, live=False)
    p.send(events[14], seq=14)  # it is in the ring too
    daemon.wait_seq(14)
    for seq in range(15, 18):
        p.send(events[seq], seq=seq)
    daemon.wait_matched(72, tokens)
    service = daemon.service()
    assert service["LastSeq"] == 17
    assert service["Counters"]["frames_total"] == 18, "each number once"
    assert service["Counters"]["replay_requests_total"] == before + 1
    assert p.replay_starts[-1] in (10, 11)
    daemon.restart()
    assert daemon.matched(tokens) == 72


def test_bl_05_replayed_and_live_is_counted_once(daemon, publisher):
    p = publisher()
    daemon.register(p)
    daemon.wait_state("live")
    for seq, event in enumerate(chain(100, 4, per_event=1)[0]):
        p.send(event, seq=seq)
    daemon.wait_seq(3)
    p.send(S([22], B), seq=4, live=False)
    p.send(S([21], A), seq=5)
    daemon.wait_seq(5)
    p.send(R([21]), seq=6)
    daemon.wait_seq(6)
    assert daemon.matched(A) == 0 and daemon.matched(B) == 4

    log_before = daemon.status()["log_last"]
    dropped_before = daemon.counter("duplicates_dropped_total")
    again = [(seq, payload) for seq, payload in p.ring if seq in (5, 6)]
    p.bounce()
    p.wait_subscribed()
    daemon.wait_state("live")
    for seq, payload in again:
        p.send_frames([b"", struct.pack(">Q", seq), payload])
    poll_until(
        lambda: daemon.counter("duplicates_dropped_total") >= dropped_before + 2,
        "the repeated frames are dropped and counted",
    )
    assert daemon.status()["log_last"] == log_before, "not logged a second time"
    assert daemon.matched(A) == 0 and daemon.matched(B) == 4
    assert daemon.counter("epoch_changes_total") == 0
    daemon.restart()
    assert daemon.matched(A) == 0 and daemon.matched(B) == 4


def lose_11_to_35(daemon, p):
    """The ring has 4 batches; #2 stored [31], and #20, which is lost, would have removed it."""
    daemon.register(p)
    daemon.wait_state("live")
    for seq in range(11):
        p.send(S([31], A) if seq == 2 else S([500 + seq], [seq] * 4), seq=seq)
    daemon.wait_seq(10)
    for seq in range(11, 40):
        p.send(R([31]) if seq == 20 else S([500 + seq], [seq] * 4), seq=seq, live=False)
    p.send(S([540], [40] * 4), seq=40)
    daemon.wait_seq(40)


def test_bl_09_gap_older_than_the_ring(daemon, publisher):
    p = publisher(ring=5)  # #36 to #40
    lose_11_to_35(daemon, p)
    asked = len(p.replay_starts)

    def check():
        service = daemon.service()
        assert service["LostRanges"] == [[11, 35]] and service["StreamState"] == "degraded"
        assert service["Counters"]["lost_total"] == 25
        answer = daemon.ask(A)
        assert answer.body["instances"]["i1"]["longest_matched"] == 4, "kept, and marked"
        assert "i1" in answer.headers["Conductor-Degraded"]

    check()
    assert 'conductor_stream_lost_total{instance="i1"' in daemon.get("/metrics").body
    assert daemon.matched([36] * 4) == 4, "what the ring still had is applied"
    for seq in (41, 42, 43):
        p.send(S([500 + seq], [seq] * 4), seq=seq)
    daemon.wait_seq(43)
    assert len(p.replay_starts) == asked, "what is lost is not asked for again"
    daemon.restart()
    daemon.wait_state("degraded")
    check()
    p.send(CLEAR())
    daemon.wait_state("live")
    assert daemon.service()["LostRanges"] == []
    answer = daemon.ask(A)
    assert answer.body["instances"]["i1"]["longest_matched"] == 0
    assert answer.headers["Conductor-Degraded"] is None
    daemon.restart()
    daemon.wait_state("live")
    assert daemon.service()["LostRanges"] == [] and daemon.matched(A) == 0


def test_bl_09_a_new_epoch_ends_the_degradation(daemon, publisher):
    p = publisher(ring=5)
    lose_11_to_35(daemon, p)
    daemon.wait_state("degraded")
    p.restart()
    p.send(S([600], B))
    daemon.wait_matched(4, B)
    daemon.wait_state("live")
    service = daemon.service()
    assert service["LostRanges"] == [] and daemon.matched(A) == 0
    assert service["Counters"]["epoch_changes_total"] == 1
