"""Field case BL-40: kill -9 of the real daemon in a loop, against a twin that nobody disturbs.

A publisher streams without end: chains, second copies, removals, clears. The daemon is killed after
a random number of further batches, whether it is serving, catching up, still rebuilding, or writing
a snapshot, and is started again from the newest one. In the end both have seen the same stream, so both must have the same facts: equal
answers, equal views, equal digests, nothing lost, nothing applied twice.

CONDUCTOR_KILLS (default 20; 200 before a release) and CONDUCTOR_SEED choose the run.
"""

import os
import random
import re
import threading

from conductor_e2e import poll_until
from e2e_wire import CLEAR, R, S

KILLS = int(os.environ.get("CONDUCTOR_KILLS", "20"))
SEED = int(os.environ.get("CONDUCTOR_SEED", str(random.SystemRandom().randrange(2**32))))
BATCHES_PER_KILL_MAX = 1_500
PACE_S = 0.002  # between two bursts of the stream
BURST = 4
RING = 2_000_000
CHAINS = 400
SNAPSHOT_EVENTS = 800
CHAIN_BLOCKS_MAX = 24


class Stream:
    """What an engine does, chosen by a seed: a batch of one to three events at a time.

    A chain grows and shrinks by whole events. So every parent is the last block of an event, whose
    recomputed hash the log keeps, and the recorded comparisons do not depend on a cache that a
    killed process has lost: the digests of both daemons must be equal.
    """

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._ends = {}  # chain -> where each of its events ends

    @staticmethod
    def name(chain, depth):
        return chain * 100 + depth + 1

    @staticmethod
    def tokens(chain, depth):
        return [chain, depth, 3, 4]

    @classmethod
    def prompt(cls, chain):
        return [token for i in range(CHAIN_BLOCKS_MAX) for token in cls.tokens(chain, i)]

    def batch(self):
        if self._random.random() < 0.0005:
            self._ends.clear()
            return [CLEAR()]
        return [self._event() for _ in range(self._random.randint(1, 3))]

    def _event(self):
        chain = self._random.randrange(CHAINS)
        ends = self._ends.setdefault(chain, [0])
        choice = self._random.random()
        if len(ends) > 1 and choice < 0.3:  # the last event's blocks are evicted, or one copy
            end = ends.pop()
            return R([self.name(chain, depth) for depth in range(ends[-1], end)])
        if len(ends) > 1 and choice < 0.4:  # announced again
            return self._stored(chain, ends[-2], ends[-1])
        if ends[-1] >= CHAIN_BLOCKS_MAX:
            return R([self.name(chain, 99)])  # nobody knows it
        end = min(ends[-1] + self._random.randint(1, 4), CHAIN_BLOCKS_MAX)
        ends.append(end)
        return self._stored(chain, ends[-2], end)

    def _stored(self, chain, first, end):
        depths = range(first, end)
        return S(
            [self.name(chain, depth) for depth in depths],
            [token for depth in depths for token in self.tokens(chain, depth)],
            p=self.name(chain, first - 1) if first else None,
        )


class Streaming(threading.Thread):
    """Publishes until it is told to stop."""

    def __init__(self, publisher, stream):
        super().__init__(name="streaming")
        self._publisher, self._stream = publisher, stream
        self._stop_asked = threading.Event()

    def run(self):
        while not self._stop_asked.wait(PACE_S):  # the engine's pace, not a wait for anything
            for _ in range(BURST):
                self._publisher.send(*self._stream.batch())

    def finish(self):
        self._stop_asked.set()
        self.join()


def test_bl_40_killed_in_a_loop(new_daemon, publisher):
    print(f"CONDUCTOR_SEED={SEED} CONDUCTOR_KILLS={KILLS}")
    moments = random.Random(SEED)
    # The one that is killed takes snapshots all the time, the other none.
    daemon = new_daemon(snapshot_interval_events=SNAPSHOT_EVENTS)
    twin = new_daemon(snapshot_interval_events=0, snapshot_interval_s=0)
    p = publisher(ring=RING)
    daemon.register(p)
    twin.register(p)
    streaming = Streaming(p, Stream(SEED))
    streaming.start()
    try:
        for _ in range(KILLS):
            how_far = moments.random()  # a third dies wherever the start has got to
            if how_far < 0.66:
                poll_until(daemon.listening, "the daemon listens")
            if how_far < 0.33:
                daemon.wait_ready()
            moment = p.next_seq + moments.randrange(BATCHES_PER_KILL_MAX)
            poll_until(lambda: p.next_seq >= moment, "the stream goes on")
            daemon.kill()
            daemon.launch()
        poll_until(daemon.listening, "the daemon listens")
        daemon.wait_ready()
    finally:
        streaming.finish()
    last = p.next_seq - 1
    print(f"batches={p.next_seq} restarts={daemon.log().count('event=starting')}")

    for each in (daemon, twin):
        each.wait_seq(last)
        each.wait_state("live")
        service = each.service()
        assert service["LostRanges"] == [] and service["HistoryFrom"] is None
        assert service["Epoch"] == 1, "one life"
        assert service["Counters"]["frames_total"] == last + 1, "each batch once"
        assert service["Counters"]["decode_errors_total"] == 0
        each.verify()
    assert compare(daemon, twin)
    daemon.restart()
    assert compare(daemon, twin)
    made = daemon.log().count("event=snapshot ")
    used = len(re.findall(r"event=rebuilt snapshot=[1-9]", daemon.log()))
    print(f"snapshots={made} starts_from_one={used}")
    assert made >= KILLS / 4 and used >= KILLS / 4


def compare(daemon, twin):
    assert daemon.global_view() == twin.global_view()
    for chain in range(CHAINS):
        prompt = Stream.prompt(chain)
        assert daemon.ok(daemon.ask(prompt)) == twin.ok(twin.ask(prompt)), f"chain {chain}"
    assert daemon.service()["Blocks"] == twin.service()["Blocks"]
    assert daemon.status()["digest"] == twin.status()["digest"]
    return True
