"""Field case BL-53: bodies that are large, larger than allowed, and without end."""

import json
import socket
import threading

import msgpack
import pytest

from conductor_e2e import DEADLINE_S, poll_until
from e2e_wire import A, S

BODY_MAX = 64 << 20  # the documented defaults
HEADER_MAX = 16 << 10
# After a refusal the rest is thrown away for a while, so that the client gets to read the answer.
LINGER_MAX = 64 << 20
SLACK = 16 << 20  # the kernel's buffers
TOKENS_MAX = 1_000_000
LONG = 32_768
# One body may be held twice for a moment: as it came in, and decoded.
RSS_RISE_MAX = 3 * BODY_MAX
MIB = 1 << 20
FORMATS = ["application/json", "application/msgpack"]


@pytest.fixture
def served(daemon, publisher):
    p1 = publisher()
    daemon.register(p1)
    p1.send(S([1], A))
    daemon.wait_matched(4, A)
    return daemon


def encoded(count, content_type):
    body = {"model": "m", "block_size": 4, "token_ids": A + [100_000] * (count - 4)}
    return msgpack.packb(body) if "msgpack" in content_type else json.dumps(body).encode()


def connect(daemon):
    sock = socket.create_connection(("127.0.0.1", daemon.ports["http_port"]), timeout=DEADLINE_S)
    return sock


def head(path, *lines):
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: conductor", *lines, "", ""]).encode()


def push(sock, chunk, limit):
    """Sends `chunk` again and again, until the peer has had enough or `limit` bytes are out."""
    sent = 0
    try:
        while sent < limit:
            sock.sendall(chunk)
            sent += len(chunk)
    except OSError:
        pass
    return sent


def reply(sock):
    """What the server said before it closed; empty when the reset came first."""
    data = b""
    try:
        while more := sock.recv(65_536):
            data += more
            if b"\r\n\r\n" in data and data.endswith(b"}"):
                break
    except OSError:
        pass
    return data


def status_of(data):
    return int(data.split()[1]) if data.startswith(b"HTTP/1.") else None


@pytest.mark.parametrize("content_type", FORMATS)
def test_bl_53_long_prompts_fit(served, content_type):
    for count in (LONG, TOKENS_MAX):
        answer = served.post(
            "/query", encoded(count, content_type), headers={"Content-Type": content_type}
        )
        assert served.ok(answer)["instances"]["i1"]["longest_matched"] == 4
    over = served.post(
        "/query", encoded(TOKENS_MAX + 1, content_type), headers={"Content-Type": content_type}
    )
    assert over.status in (400, 413) and over.body["reason"] == "too_large"


@pytest.mark.parametrize("line", [[], ["Content-Type: application/x-www-form-urlencoded"]])
def test_bl_53_what_plain_curl_sends(served, line):
    body = encoded(LONG, "application/json")
    with connect(served) as sock:
        sock.sendall(head("/query", f"Content-Length: {len(body)}", "Connection: close", *line))
        sock.sendall(body)
        answer = reply(sock)
    assert status_of(answer) == 200, answer[:200]
    instances = json.loads(answer.split(b"\r\n\r\n", 1)[1])["instances"]
    assert instances["i1"]["longest_matched"] == 4


@pytest.mark.parametrize("content_type", FORMATS)
def test_bl_53_a_declared_10_gb_is_refused_before_it_is_read(served, content_type):
    before = served.rss_bytes()
    with connect(served) as sock:
        sock.sendall(
            head("/query", f"Content-Length: {10 << 30}", f"Content-Type: {content_type}")
        )
        answer = reply(sock)
    assert status_of(answer) == 413, answer[:200]
    assert served.rss_bytes() - before < MIB * 8
    assert served.matched(A) == 4


@pytest.mark.parametrize("content_type", FORMATS)
def test_bl_53_chunks_without_end(served, content_type):
    before = served.rss_bytes()
    chunk = b"%x\r\n" % MIB + b" " * MIB + b"\r\n"
    if "msgpack" in content_type:  # one binary of 4 GB that never ends
        first = b"\x81\xa9token_ids\xc6\xff\xff\xff\xff"
        first_chunk = b"%x\r\n" % len(first) + first + b"\r\n"
    else:
        first_chunk = b"1\r\n{\r\n"
    others = Others(served)
    for limit in (BODY_MAX + MIB, 4 * BODY_MAX):
        with connect(served) as sock:
            sock.sendall(
                head("/query", "Transfer-Encoding: chunked", f"Content-Type: {content_type}")
            )
            sock.sendall(first_chunk)
            sent = push(sock, chunk, limit)
            status = status_of(reply(sock))
        # The second client never stops to read; its connection is reset in the end.
        assert status == 413 or (status is None and limit > BODY_MAX + LINGER_MAX)
    assert sent < BODY_MAX + LINGER_MAX + SLACK, "reading ends"
    assert others.answers() > 0, "others are answered meanwhile"
    assert served.rss_bytes() - before < RSS_RISE_MAX
    assert served.matched(A) == 4


def test_bl_53_a_header_line_without_end(served):
    before = served.rss_bytes()
    for start in (b"", b"POST /query HTTP/1.1\r\nHost: conductor\r\nX-Long: "):
        for limit in (2 * HEADER_MAX, 1 << 30):
            with connect(served) as sock:
                sock.sendall(start)
                sent = push(sock, b"x" * HEADER_MAX, limit)
                status = status_of(reply(sock))
            assert status in (400, 414, 431) or (status is None and limit > LINGER_MAX)
        assert sent < LINGER_MAX + SLACK, "reading ends"
    assert served.rss_bytes() - before < MIB * 8
    assert served.matched(A) == 4


def test_every_series_of_the_metrics_is_there_once(served):
    lines = [line for line in served.get("/metrics").body.splitlines() if not line.startswith("#")]
    series = [line.rsplit(" ", 1)[0] for line in lines]
    assert len(series) > 50
    assert sorted(series) == sorted(set(series))


class Others:
    """Somebody else who asks the same server all the time."""

    def __init__(self, daemon):
        self._daemon = daemon
        self._stop = threading.Event()
        self._count = 0
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        poll_until(lambda: self._count > 0, "the first answer")
        self._count = 0

    def _work(self):
        while not self._stop.is_set():
            if self._daemon.matched(A) == 4:
                self._count += 1

    def answers(self):
        self._stop.set()
        self._thread.join()
        return self._count
