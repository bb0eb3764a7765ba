"""setup, close, with, health_check, and the codes of a client that is not connected."""

import inspect

import pytest

from conftest import ScriptedServer
from mooncake import conductor
from mooncake.conductor import (
    CONDUCTOR_UNAVAILABLE,
    HEALTH_NOT_INITIALIZED,
    HEALTH_OK,
    HEALTH_UNREACHABLE,
    INVALID_PARAMS,
    OK,
    RPC_FAIL,
    RPC_TIMEOUT,
    ConductorClient,
)


def test_the_constants_have_their_published_values():
    assert {name: getattr(conductor, name) for name in conductor.__all__ if name.isupper()} == {
        "OK": 0,
        "INTERNAL_ERROR": -1,
        "INVALID_PARAMS": -600,
        "RPC_FAIL": -900,
        "RPC_TIMEOUT": -901,
        "CONDUCTOR_UNAVAILABLE": -2000,
        "SERVICE_NOT_FOUND": -2001,
        "HEALTH_OK": 0,
        "HEALTH_NOT_INITIALIZED": 1,
        "HEALTH_UNREACHABLE": 2,
    }


@pytest.mark.parametrize(
    "method, signature",
    [
        ("setup", "(self, conductor_addr, connect_timeout_ms=1000, request_timeout_ms=3000)"),
        ("close", "(self)"),
        ("health_check", "(self)"),
        (
            "query",
            "(self, model_name, *, lora_name='', block_size, tenant_id='default', token_ids, "
            "cache_salt='', instance_filter='')",
        ),
        ("register", "(self, config)"),
        ("unregister", "(self, instance_id, tenant_id='default', dp_rank=0)"),
        ("get_global_view", "(self)"),
    ],
)
def test_the_signatures_are_the_published_ones(method, signature):
    assert str(inspect.signature(getattr(ConductorClient, method))) == signature


def test_every_public_thing_says_what_it_does():
    for name, method in inspect.getmembers(ConductorClient):
        if not name.startswith("_"):
            assert method.__doc__, name


def expect_not_connected(client, config):
    assert client.query("m", block_size=16, token_ids=[1]) == {
        "ret": CONDUCTOR_UNAVAILABLE,
        "hits": {},
    }
    assert client.query_detailed("m", block_size=16, token_ids=[1])["ret"] == CONDUCTOR_UNAVAILABLE
    assert client.register(config) == CONDUCTOR_UNAVAILABLE
    assert client.unregister("i") == CONDUCTOR_UNAVAILABLE
    assert client.get_global_view() == {
        "ret": CONDUCTOR_UNAVAILABLE,
        "context_count": 0,
        "contexts": [],
    }
    assert client.list_services() == {"ret": CONDUCTOR_UNAVAILABLE, "count": 0, "services": []}
    assert client.health_check() == HEALTH_NOT_INITIALIZED
    assert "setup()" in client.last_error


def test_a_new_client_is_not_connected(config):
    expect_not_connected(ConductorClient(), config)


def test_a_closed_client_is_not_connected(client, config):
    assert client.health_check() == HEALTH_OK
    assert client.close() == OK
    expect_not_connected(client, config)
    assert client.close() == OK, "repeated calls are safe"


def test_setup_takes_its_arguments_in_order(server):
    client = ConductorClient()
    assert client.setup(server.address, 500, 600) == OK
    assert client.setup(conductor_addr=server.address, request_timeout_ms=600) == OK


def test_setup_can_follow_close_and_a_failure(server, refused_address):
    client = ConductorClient()
    assert client.setup(refused_address) == RPC_FAIL
    assert client.setup(server.address) == OK
    client.close()
    assert client.setup(server.address) == OK
    assert client.health_check() == HEALTH_OK


def test_each_setup_replaces_the_connection(server, client, config):
    other = ScriptedServer()
    assert client.register(config) == OK
    assert client.setup(other.address) == OK
    assert client.list_services()["count"] == 0
    other.stop()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost",
        "127.0.0.1",
        ":50052",
        "127.0.0.1:",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "127.0.0.1:port",
        "http://127.0.0.1:50052",
        "bad\udc80:1",
    ],
)
def test_a_bad_address_is_invalid_and_leaves_the_client_unconnected(client, address, config):
    assert client.setup(address) == INVALID_PARAMS
    assert client.last_error
    expect_not_connected(client, config)


@pytest.mark.parametrize("value", [0, -1, 2**31, 2**70])
@pytest.mark.parametrize("name", ["connect_timeout_ms", "request_timeout_ms"])
def test_a_bad_timeout_is_invalid_and_leaves_the_client_unconnected(client, server, name, value):
    assert client.setup(server.address, **{name: value}) == INVALID_PARAMS
    assert name in client.last_error
    assert client.health_check() == HEALTH_NOT_INITIALIZED


@pytest.mark.parametrize(
    "arguments", [(None,), (b"127.0.0.1:1",), ("h:1", 1.5), ("h:1", True), ("h:1", 1, "3")]
)
def test_wrong_types_in_setup_are_type_errors(client, arguments):
    with pytest.raises(TypeError):
        client.setup(*arguments)
    assert client.health_check() == HEALTH_OK, "the connection is kept"


def test_nobody_listening_is_rpc_fail(client, refused_address, config):
    assert client.setup(refused_address) == RPC_FAIL
    expect_not_connected(client, config)


def test_a_silent_peer_is_rpc_fail_within_the_timeout(silent_address, stopwatch):
    client = ConductorClient()
    assert client.setup(silent_address, connect_timeout_ms=200) == RPC_FAIL
    assert 0.2 <= stopwatch() < 2


def test_a_name_that_does_not_exist_is_rpc_fail():
    assert ConductorClient().setup("no-such-host.invalid:1") == RPC_FAIL


def test_localhost_works(server):
    assert ConductorClient().setup(f"localhost:{server.port}") == OK


def test_with_returns_the_client_and_closes_it(server):
    client = ConductorClient()
    with client as entered:
        assert entered is client
        assert client.health_check() == HEALTH_NOT_INITIALIZED, "entering does not connect"
        client.setup(server.address)
        assert client.health_check() == HEALTH_OK
    assert client.health_check() == HEALTH_NOT_INITIALIZED


def test_with_closes_after_an_exception_and_lets_it_pass(server):
    client = ConductorClient()
    with pytest.raises(KeyError):
        with client:
            client.setup(server.address)
            raise KeyError("body")
    assert client.health_check() == HEALTH_NOT_INITIALIZED


def test_closing_leaves_the_registrations_alone(server, client, config):
    assert client.register(config) == OK
    client.close()
    assert client.setup(server.address) == OK
    assert client.list_services()["count"] == 1


def test_a_server_that_went_away_is_rpc_fail_and_comes_back(config):
    server = ScriptedServer()
    client = ConductorClient()
    assert client.setup(server.address) == OK
    server.stop()
    assert client.health_check() == HEALTH_UNREACHABLE
    assert client.query("echo", block_size=16, token_ids=[1]) == {"ret": RPC_FAIL, "hits": {}}
    assert client.register(config) == RPC_FAIL
    assert client.unregister("i") == RPC_FAIL
    assert client.list_services() == {"ret": RPC_FAIL, "count": 0, "services": []}
    assert client.get_global_view() == {"ret": RPC_FAIL, "context_count": 0, "contexts": []}
    again = ScriptedServer(server.port)
    assert client.health_check() == HEALTH_OK
    again.stop()


def test_a_peer_that_never_answers_is_rpc_timeout(muted_address, config, stopwatch):
    client = ConductorClient()
    assert client.setup(muted_address, request_timeout_ms=100) == OK
    assert client.query("m", block_size=16, token_ids=[1]) == {"ret": RPC_TIMEOUT, "hits": {}}
    assert client.register(config) == RPC_TIMEOUT
    assert client.unregister("i") == RPC_TIMEOUT
    assert client.list_services()["ret"] == RPC_TIMEOUT
    assert client.get_global_view()["ret"] == RPC_TIMEOUT
    assert client.health_check() == HEALTH_UNREACHABLE
    assert stopwatch() < 5


def test_a_handler_that_blocks_is_rpc_timeout_and_the_client_goes_on(server, stopwatch):
    client = ConductorClient()
    assert client.setup(server.address, request_timeout_ms=200) == OK
    assert client.query("block", block_size=16, token_ids=[1])["ret"] == RPC_TIMEOUT
    assert 0.2 <= stopwatch() < 2
    assert client.query("echo", block_size=16, token_ids=[1])["ret"] == OK


def test_last_error_is_that_of_the_last_call(client):
    client.query("internal", block_size=16, token_ids=[])
    assert "the disk is on fire" in client.last_error
    client.query("echo", block_size=16, token_ids=[])
    assert client.last_error == ""
