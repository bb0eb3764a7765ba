"""Fixtures: the scripted gRPC server as a process, and peers that are no gRPC server at all."""

import os
import socket
import subprocess
import threading
import time

import pytest

from mooncake.conductor import OK, ConductorClient

# Instrumented builds are slower by so much; only for deadlines that a healthy run never meets.
SLOWNESS = 10 if os.environ.get("CONDUCTOR_INSTRUMENTED") else 1


class ScriptedServer:
    """Serves until it is stopped or this process ends (its standard input is a pipe of ours)."""

    def __init__(self, port=0):
        self._process = subprocess.Popen(
            [os.environ["CONDUCTOR_SCRIPTED_SERVER"], str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.port = int(self._process.stdout.readline())
        self.address = f"127.0.0.1:{self.port}"
        self.pid = self._process.pid

    def release(self):
        """Lets the queries of the model "block" go on."""
        self._process.stdin.write(b"r")
        self._process.stdin.flush()

    def stop(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=10 * SLOWNESS)


@pytest.fixture
def server():
    server = ScriptedServer()
    yield server
    server.stop()


@pytest.fixture
def client(server):
    with ConductorClient() as client:
        timeout_ms = 3_000 * SLOWNESS
        rc = client.setup(server.address, request_timeout_ms=timeout_ms)
        assert rc == OK, client.last_error
        yield client


@pytest.fixture
def offline():
    """A client without a server: for what is judged before any connection."""
    return ConductorClient()


@pytest.fixture
def silent_address():
    """A listening socket: the kernel accepts, nobody answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield "127.0.0.1:%d" % listener.getsockname()[1]


@pytest.fixture
def muted_address():
    """A peer that sends its HTTP/2 settings and then nothing: usable, and it never answers."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    accepted = []

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            accepted.append(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    yield "127.0.0.1:%d" % listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    listener.close()
    for connection in accepted:
        connection.close()


@pytest.fixture
def refused_address():
    """A port that nobody listens on."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield "127.0.0.1:%d" % unused.getsockname()[1]


@pytest.fixture
def stopwatch():
    start = time.monotonic()
    return lambda: time.monotonic() - start


@pytest.fixture
def config():
    """A registration that the server takes."""
    return {
        "instance_id": "vllm-0",
        "endpoint": "tcp://127.0.0.1:5557",
        "publisher_type": "vLLM",
        "model_name": "my-model",
        "block_size": 16,
        "dp_rank": 0,
        "hash_profile": {
            "strategy": "vllm_v1",
            "algorithm": "sha256_cbor",
            "python_hash_seed": "0",
            "index_projection": "low64_be",
        },
    }
