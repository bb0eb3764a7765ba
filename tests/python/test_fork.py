"""BL-60: a client that was made, and used, before fork(). A child gets a right answer or an error
within the timeout; the parent is undisturbed; nobody hangs in any of 100 rounds."""

import gc
import multiprocessing
import os
import signal
import threading

import pytest

from mooncake.conductor import HEALTH_OK, OK, RPC_FAIL, RPC_TIMEOUT, ConductorClient

ROUNDS = 100
TOKENS = list(range(8))


@pytest.fixture
def shared(server):
    client = ConductorClient()
    assert client.setup(server.address, request_timeout_ms=2000) == OK
    return client


def right_answer(client):
    result = client.query("echo", block_size=4, token_ids=TOKENS)
    return result["ret"] == OK and next(iter(result["hits"])).startswith("n=8 sum=28 ")


def in_child(function):
    """True when `function` returned true in a forked child that then ended by itself."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # a hang becomes a signal
        try:
            os._exit(0 if function() else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(pid, 0)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0


def test_used_before_the_fork(shared):
    assert right_answer(shared)
    for _ in range(ROUNDS):
        assert in_child(lambda: right_answer(shared) and right_answer(shared))
        assert right_answer(shared), "the parent is undisturbed"


def test_made_but_not_used_before_the_fork(shared):
    for _ in range(ROUNDS // 4):
        assert in_child(lambda: right_answer(shared))
    assert right_answer(shared)


def test_while_threads_of_the_parent_call(shared):
    stop = threading.Event()
    wrong = []

    def work():
        while not stop.is_set():
            if not right_answer(shared):
                wrong.append(shared.last_error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(ROUNDS):
            assert in_child(lambda: right_answer(shared))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_deleting_the_client_in_the_child(shared):
    assert right_answer(shared)
    holder = [shared]

    def child():
        holder.clear()
        gc.collect()
        return True

    for _ in range(ROUNDS // 4):
        assert in_child(child)
    assert right_answer(shared)


def test_closing_and_setting_up_in_the_child(server, shared):
    def child():
        return (
            shared.close() == OK
            and shared.setup(server.address) == OK
            and shared.health_check() == HEALTH_OK
        )

    assert in_child(child)
    assert right_answer(shared)


def test_a_child_of_a_child(shared):
    assert in_child(lambda: right_answer(shared) and in_child(lambda: right_answer(shared)))


def test_a_child_that_ends_normally(shared):
    """Through the interpreter's own exit, with the client still alive."""
    process = multiprocessing.get_context("fork").Process(target=right_answer, args=(shared,))
    process.start()
    process.join(timeout=20)
    assert process.exitcode == 0


def pool_work(_):
    return right_answer(pool_work.client)


def test_a_pool_of_workers(shared):
    assert right_answer(shared)
    pool_work.client = shared
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert all(pool.map_async(pool_work, range(40)).get(timeout=60))
    assert right_answer(shared)


def test_a_server_that_is_gone_is_an_error_within_the_timeout(server):
    client = ConductorClient()
    assert client.setup(server.address, request_timeout_ms=500) == OK
    os.kill(server.pid, signal.SIGSTOP)
    try:
        assert in_child(
            lambda: client.query("echo", block_size=4, token_ids=TOKENS)["ret"]
            in (RPC_TIMEOUT, RPC_FAIL)
        )
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert right_answer(client)
