"""Field case BL-60: the Python client before and after fork(), against the real daemon."""

import os
import subprocess
import sys

from e2e_wire import A, S

ROUNDS = 100
# The interpreter is not instrumented: a sanitizer build's module needs its library before it.
PRELOAD = os.environ.get("CONDUCTOR_PRELOAD", "")


def test_bl_60_client_used_before_and_after_fork(daemon, publisher):
    p1 = publisher()
    daemon.register(p1)
    p1.send(S([1], A))
    daemon.wait_matched(4, A)
    program = os.path.join(os.path.dirname(__file__), "fork_client.py")
    address = f"127.0.0.1:{daemon.ports['rpc_port']}"
    environment = dict(os.environ)
    if PRELOAD:
        environment.update(LD_PRELOAD=PRELOAD, ASAN_OPTIONS="detect_leaks=0")
    done = subprocess.run(
        [sys.executable, program, address, str(ROUNDS), "4"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert daemon.matched(A) == 4
