"""P: a small fake engine. A live socket and an optional replay socket with a ring, exact frames.

The test chooses every number. The live socket is an XPUB (the bytes of PUB; it knows who listens)
under a lock; the replay socket belongs to one thread. A batch is in the ring before it is sent.
With a high-water mark, what a PUB would drop without a sign is dropped and counted.
"""

import collections
import struct
import threading

import zmq

from conductor_e2e import poll_until
from e2e_wire import batch

END_SEQ = b"\xff" * 8
POLL_MS = 20
SEND_HWM = 0  # no limit, unless a test wants frames to vanish


class Publisher:
    """`layout` is that of replay answers: "old" [seq, payload] or "new" [topic, seq, payload]."""

    def __init__(self, replay=True, ring=10_000, layout="old", topic=b"", hwm=SEND_HWM, start=True):
        self.layout, self.topic, self.hwm = layout, topic, hwm
        self.mode = "ok"  # ok, never, late (until release()), cut (half, no end), hole
        self.has_replay = replay
        self.ring = collections.deque(maxlen=ring)
        self.next_seq = 0
        self.replay_starts = []  # of well-formed requests
        self.replay_refused = 0  # of another shape: no answer, as the engines do
        self.vanished = 0
        self.endpoint = self.replay_endpoint = ""
        self._lock = threading.Lock()
        self._ring_lock = threading.Lock()
        self._live = self._context = self._thread = None
        self._subscribers = 0
        self._released = threading.Event()
        self.start()
        if not start:
            self.stop()

    # --- life

    def start(self):
        """Opens the sockets, at the same addresses as before."""
        assert self._live is None
        self._context = zmq.Context()
        self._stopping = threading.Event()
        self._subscribers = 0
        self._live = self._bind(zmq.XPUB, self.endpoint)
        self.endpoint = self._live.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")
        if self.has_replay:
            router = self._bind(zmq.ROUTER, self.replay_endpoint)
            self.replay_endpoint = router.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")
            self._thread = threading.Thread(target=self._serve, args=(router,), name="replay")
            self._thread.start()

    def stop(self):
        """Closes the sockets as a killed process does. Numbers and ring stay."""
        if self._live is None:
            return
        self._stopping.set()
        if self._thread:
            self._thread.join()
            self._thread = None
        with self._lock:
            self._live.close(linger=0)
            self._live = None
        self._context.destroy(linger=0)

    def new_life(self):
        """What a restarted process knows: nothing."""
        with self._ring_lock:
            self.ring.clear()
        self.next_seq = 0

    def restart(self):
        self.stop()
        self.new_life()
        self.start()

    def bounce(self):
        """The TCP connection breaks; the process goes on."""
        self.stop()
        self.start()

    def _bind(self, kind, address):
        socket = self._context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SNDHWM, self.hwm if kind == zmq.XPUB else 0)
        if kind == zmq.XPUB:
            socket.setsockopt(zmq.XPUB_VERBOSER, 1)
            socket.setsockopt(zmq.XPUB_NODROP, 1)
            if self.hwm:
                socket.setsockopt(zmq.SNDBUF, 16 << 10)

        def bound():
            try:
                socket.bind(address or "tcp://127.0.0.1:*")
                return True
            except zmq.ZMQError as error:
                if error.errno != zmq.EADDRINUSE:
                    raise
                return False  # the socket before it is still being closed

        poll_until(bound, f"{address} is free")
        return socket

    # --- live

    def subscribers(self):
        with self._lock:
            while self._live is not None:
                try:
                    message = self._live.recv(zmq.NOBLOCK)
                except zmq.Again:
                    break
                self._subscribers += 1 if message[:1] == b"\x01" else -1
            return self._subscribers

    def wait_subscribed(self, count=1):
        poll_until(lambda: self.subscribers() >= count, f"{self.endpoint} has {count} subscribers")
        return self

    def send(self, *events, live=True, ring=True, seq=None, rank=0):
        return self.send_payload(batch(events, rank), live=live, ring=ring, seq=seq)

    def send_payload(self, payload, live=True, ring=True, seq=None):
        """One batch. Its number is the next one, or `seq`, which the next one follows."""
        seq = self.next_seq if seq is None else seq
        self.next_seq = seq + 1
        if ring:
            with self._ring_lock:
                self.ring.append((seq, payload))
        if live:
            self.send_frames([self.topic, struct.pack(">Q", seq), payload])
        return seq

    def send_frames(self, frames):
        """A message verbatim: no number, not in the ring."""
        with self._lock:
            if self._live is None:
                return
            try:
                self._live.send_multipart(frames, zmq.NOBLOCK)
            except zmq.Again:
                self.vanished += 1

    # --- replay

    def release(self):
        """Late answers are given now."""
        self._released.set()

    def _serve(self, router):
        late = []
        while not self._stopping.is_set():
            if self._released.is_set():
                for identity, start in late:
                    self._answer(router, identity, start, "ok")
                late.clear()
                self._released.clear()
            if not router.poll(POLL_MS):
                continue
            identity, *request = router.recv_multipart()
            if len(request) != 2 or request[0] != b"" or len(request[1]) != 8:
                self.replay_refused += 1
                continue
            start = struct.unpack(">Q", request[1])[0]
            self.replay_starts.append(start)
            if self.mode == "late":
                late.append((identity, start))
            else:
                self._answer(router, identity, start, self.mode)
        router.close(linger=0)

    def _answer(self, router, identity, start, mode):
        if mode == "never":
            return
        with self._ring_lock:
            batches = [(seq, payload) for seq, payload in self.ring if seq >= start]
        if mode == "cut":
            batches = batches[: len(batches) // 2]
        elif mode == "hole" and batches:
            del batches[len(batches) // 2]
        topic = [self.topic] if self.layout == "new" else []
        for seq, payload in batches:
            router.send_multipart([identity, b"", *topic, struct.pack(">Q", seq), payload])
        if mode != "cut":
            empty_topic = [b""] if self.layout == "new" else []
            router.send_multipart([identity, b"", *empty_topic, END_SEQ, b""])
