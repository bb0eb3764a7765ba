"""The published Quick Start against the real daemon, started as an operator starts it."""

import json
import os
import select
import signal
import socket
import subprocess
import time

import pytest

from mooncake.conductor import CONDUCTOR_UNAVAILABLE, OK, SERVICE_NOT_FOUND, ConductorClient

START_S = 30


def free_ports(count):
    """Ports that were free a moment ago: the Quick Start names its ports in the configuration."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def await_ready(client, address, process):
    """Polls until the daemon answers queries; each attempt waits inside setup or a call."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "the daemon ended"
        if client.setup(address) == OK:
            if client.query("m", block_size=16, token_ids=[])["ret"] != CONDUCTOR_UNAVAILABLE:
                return
        select.select([], [], [], 0.05)  # an interval between attempts, bounded by the deadline
    pytest.fail(f"not ready after {START_S} s: {client.last_error}")


@pytest.fixture
def address(tmp_path):
    http_port, rpc_port = free_ports(2)
    config = tmp_path / "conductor.json"
    config.write_text(
        json.dumps(
            {
                "http_server_port": http_port,
                "rpc_server_port": rpc_port,
                "kvevent_instance": {},
            }
        )
    )
    environment = dict(
        os.environ,
        CONDUCTOR_CONFIG_PATH=str(config),
        CONDUCTOR_DATA_DIR=str(tmp_path / "data"),
    )
    environment.pop("LD_PRELOAD", None)
    process = subprocess.Popen([os.environ["CONDUCTOR_DAEMON"]], env=environment)
    address = f"127.0.0.1:{rpc_port}"
    with ConductorClient() as client:
        await_ready(client, address, process)
    yield address
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 0


def test_the_quick_start(address):
    with ConductorClient() as client:
        rc = client.setup(address)
        if rc != OK:
            raise RuntimeError(f"Conductor setup failed: {rc}")
        result = client.query("my-model", block_size=16, token_ids=list(range(32)))
        if result["ret"] != OK:
            raise RuntimeError(f"Conductor query failed: {result['ret']}")
        assert result["hits"] == {}


def test_a_publisher_is_registered_seen_and_unregistered(address, config):
    with ConductorClient() as client:
        assert client.setup(address) == OK
        assert client.register(config) == OK, client.last_error
        assert client.list_services()["count"] == 1
        (context,) = client.get_global_view()["contexts"]
        assert context["instances"] == {"vllm-0": {0}}
        hits = client.query("my-model", block_size=16, token_ids=list(range(32)))["hits"]
        assert hits["vllm-0"]["longest_matched"] == 0
        assert hits["vllm-0"]["dp"] == {"0": 0}
        assert client.unregister("vllm-0") == OK
        assert client.unregister("vllm-0") == SERVICE_NOT_FOUND
        assert client.list_services()["services"] == []
