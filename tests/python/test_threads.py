"""One client, many threads: a slow call holds up neither the interpreter nor the other calls."""

import threading

from mooncake.conductor import HEALTH_OK, OK, ConductorClient


def run_all(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()


def test_the_gil_is_released_while_a_call_waits(server, client):
    results = []
    slow = threading.Thread(
        target=lambda: results.append(client.query("block", block_size=16, token_ids=[1])["ret"])
    )
    slow.start()
    # Each of these runs Python code and a call while the slow one waits inside the native module.
    for _ in range(20):
        assert client.query("echo", block_size=16, token_ids=[1])["ret"] == OK
    assert client.health_check() == HEALTH_OK
    assert slow.is_alive()
    server.release()
    slow.join(timeout=10)
    assert results == [OK]


def test_threads_get_their_own_answers(client):
    wrong = []

    def work(number):
        for _ in range(50):
            hits = client.query("echo", block_size=16, token_ids=[number] * number)["hits"]
            if not next(iter(hits), "").startswith(f"n={number} sum={number * number} "):
                wrong.append(hits)

    run_all([threading.Thread(target=work, args=(number,)) for number in range(1, 9)])
    assert wrong == []


def test_the_client_may_be_closed_and_set_up_while_others_call(server):
    client = ConductorClient()
    assert client.setup(server.address) == OK
    codes = set()
    stop = threading.Event()

    def work():
        while not stop.is_set():
            codes.add(client.query("echo", block_size=16, token_ids=[1])["ret"])

    def renew():
        for _ in range(50):
            client.close()
            assert client.setup(server.address) == OK
        stop.set()

    run_all([threading.Thread(target=work) for _ in range(4)] + [threading.Thread(target=renew)])
    assert codes <= {OK, -2000}


def test_last_error_is_the_threads_own(client):
    seen = []
    client.query("internal", block_size=16, token_ids=[])
    thread = threading.Thread(target=lambda: seen.append(client.last_error))
    run_all([thread])
    assert seen == [""]
    assert client.last_error
