"""The program that test_fork.py runs: BL-60, a client used before and after fork().

A process of its own, with nothing in it but the client. It prints what went wrong and exits with 1,
or prints nothing and exits with 0. Arguments: HOST:PORT, rounds, matched tokens of the prompt.
"""

import gc
import multiprocessing
import os
import signal
import sys

from mooncake.conductor import OK, ConductorClient

TIMEOUT_MS = 2000
HANG_S = 20  # far beyond the timeout: a hang becomes a signal
PROMPT = [1, 2, 3, 4]


def right(client, matched):
    result = client.query("m", block_size=4, token_ids=PROMPT)
    return result["ret"] == OK and result["hits"]["i1"]["longest_matched"] == matched


def in_child(function):
    pid = os.fork()
    if pid == 0:
        signal.alarm(HANG_S)
        try:
            os._exit(0 if function() else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


def ends_normally(client, matched):
    """A child that leaves through the interpreter's own exit, the client still alive."""
    process = multiprocessing.get_context("fork").Process(target=right, args=(client, matched))
    process.start()
    process.join(HANG_S)
    return process.exitcode == 0


def pool_work(matched):
    return right(pool_work.client, matched)


def connect(address):
    client = ConductorClient()
    assert client.setup(address, request_timeout_ms=TIMEOUT_MS) == OK, client.last_error
    return client


def main(address, rounds, matched):
    unused = connect(address)
    client = connect(address)
    holder = [connect(address)]
    assert right(client, matched) and right(holder[0], matched)

    def delete():
        holder.clear()
        gc.collect()
        return True

    for number in range(rounds):
        for name, work in (
            ("used before the fork", lambda: right(client, matched)),
            ("not used before the fork", lambda: right(unused, matched)),
            ("deleted in the child", delete),
        ):
            assert in_child(work), f"round {number}: the child, client {name}"
        assert right(client, matched), f"round {number}: the parent"
    assert ends_normally(client, matched)
    pool_work.client = client
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert all(pool.map_async(pool_work, [matched] * 40).get(timeout=3 * HANG_S))
    assert right(client, matched) and right(holder[0], matched)


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
