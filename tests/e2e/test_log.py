"""Field cases of the log: a torn write, and a rebuild that takes its time."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from conductor_e2e import CTL, SLOWNESS, Daemon, poll_until
from e2e_publisher import Publisher
from e2e_wire import S

# 1,200,000 blocks: the rebuild takes more than a second, however idle the machine.
LOG_BATCHES = 50_000
BLOCKS_PER_BATCH = 24
TOKENS_PER_BATCH = 4 * BLOCKS_PER_BATCH
# BL-45 wants /healthz within 1 s of the start. The best attempt counts: the machine may be busy.
HEALTHY_S = 1.0 * SLOWNESS
ATTEMPTS = 3
PROGRESS_LINE_S = 5.0  # how often a rebuild is logged
RING = LOG_BATCHES + 1_000


def prompt(i):
    return [i] + [1] * (TOKENS_PER_BATCH - 1)


def stored(i):
    """One chain of its own; its tokens begin with its number."""
    first = 1 + i * BLOCKS_PER_BATCH
    return S(list(range(first, first + BLOCKS_PER_BATCH)), prompt(i))


def newest_wal(daemon):
    files = pathlib.Path(daemon.data_dir).glob("*.log")
    return max(files, key=lambda file: int(file.stem))


def last_opened(daemon):
    """What the newest start said of the log it opened."""
    line = [line for line in daemon.log().splitlines() if "event=log_opened" in line][-1]
    return line, {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)(?: |$)", line)}


def test_bl_40_a_torn_end_of_the_log(new_daemon, publisher):
    daemon, twin = new_daemon(), new_daemon()
    p = publisher()
    daemon.register(p)
    twin.register(p)
    for i in range(200):
        p.send(stored(i))
        if i % 50 == 49:
            daemon.wait_seq(i)  # several records, not one
    twin.wait_seq(199)
    answers = [daemon.hits(prompt(i)) for i in range(200)]
    assert answers == [{"i1": TOKENS_PER_BATCH}] * 200

    def check(went_to):
        daemon.wait_seq(went_to)
        daemon.wait_state("live")
        assert [daemon.hits(prompt(i)) for i in range(200)] == answers
        service = daemon.service()
        assert service["Counters"]["frames_total"] == went_to + 1, "no batch twice, none missing"
        assert service["LostRanges"] == [] and service["Epoch"] == 1
        assert daemon.global_view() == twin.global_view()
        assert daemon.status()["digest"] == twin.status()["digest"]
        daemon.verify()

    daemon.kill()
    wal = newest_wal(daemon)
    size = wal.stat().st_size
    assert size > 7
    os.truncate(wal, size - 7)
    daemon.start()
    line, opened = last_opened(daemon)
    assert opened["dropped_bytes"] > 0, line
    assert "level=warn" in line, "what is gone is a warning"
    for name, said in (("dropped_bytes", opened["dropped_bytes"]),
                       ("missing_records", opened.get("synced_records_missing", 0))):
        assert daemon.status()[f"log_opening_{name}"] == said, line
        assert daemon.metric(f"conductor_log_opening_{name}") == said, line
    check(199)

    p.wait_subscribed(2).send(stored(200))
    daemon.wait_seq(200)
    twin.wait_seq(200)
    daemon.kill()
    with open(newest_wal(daemon), "ab") as file:
        file.write(b"\0" * 4096)
    daemon.start()
    check(200)
    daemon.restart()
    check(200)
    line, opened = last_opened(daemon)
    assert opened["dropped_bytes"] == 0 and "level=info" in line, line


@pytest.fixture(scope="module")
def large_log(tmp_path_factory):
    """A stopped daemon with a log of LOG_BATCHES batches, and its publisher."""
    daemon = Daemon(tmp_path_factory.mktemp("large_log"), limits={"replay_jitter_ms_max": 0})
    p = Publisher(ring=RING)
    daemon.start().register(p)
    for i in range(LOG_BATCHES):
        p.send(stored(i))
        if i % 5_000 == 4_999:
            daemon.wait_seq(i)
    daemon.wait_state("live")
    daemon.stop()
    yield daemon
    if daemon.process is not None:
        daemon.kill()
    p.stop()


def sane(daemon, answer):
    """Before the log is rebuilt 503, from then on the right answer; never a plain zero."""
    if answer.status == 503:
        assert answer.body["reason"] == "not_ready"
        return False
    assert answer.body["instances"]["i1"]["longest_matched"] == TOKENS_PER_BATCH
    return True


def ask_by_rpc(daemon, tokens):
    """The exit code and the answer of a query over gRPC."""
    address = ["--address", f"127.0.0.1:{daemon.ports['rpc_port']}"]
    query = ["query", "--model", "m", "--block-size", "4", "--tokens", ",".join(map(str, tokens))]
    done = subprocess.run([CTL, *address, "-o", "json", *query], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


def rebuilding(daemon):
    """What /readyz says while the log is rebuilt; None before and after."""
    answer = daemon.get("/readyz")
    assert (answer.status == 200) == answer.body["ready"]
    if answer.body["phase"] != "rebuilding":
        return None
    assert answer.status == 503
    return answer.body


def hold_for_a_progress_line(daemon):
    """However fast the machine: the rebuild stands still until its progress is due in the log."""
    due = time.monotonic() + PROGRESS_LINE_S
    daemon.signal(signal.SIGSTOP)
    poll_until(lambda: time.monotonic() > due, "a line is due")
    daemon.signal(signal.SIGCONT)


def launch_alive(daemon):
    """Launched anew until /healthz answered in time; fails when it never did."""
    for attempt in range(ATTEMPTS):
        begin = time.monotonic()
        daemon.launch()
        poll_until(daemon.listening, "the daemon listens")
        assert daemon.get("/healthz").status == 200
        took = time.monotonic() - begin
        if took < HEALTHY_S:
            return
        if attempt + 1 < ATTEMPTS:
            daemon.kill()
    raise AssertionError(f"/healthz answered after {took} s")


def test_bl_45_alive_at_once_ready_when_rebuilt(large_log):
    daemon = large_log
    launch_alive(daemon)
    before = len(daemon.log())
    phases, steps, refused, by_rpc = [], [], [], []

    def look():
        assert daemon.get("/healthz").status == 200
        ready = daemon.get("/readyz")
        phases.append(ready.body["phase"])
        assert (ready.status == 200) == ready.body["ready"]
        answered = sane(daemon, daemon.ask(prompt(LOG_BATCHES - 1)))
        assert answered or ready.status == 503
        if ready.body["phase"] == "rebuilding":
            steps.append(ready.body)
        still = rebuilding(daemon)
        if still and not answered:
            refused.append(still)
        if still and len(by_rpc) < 2:
            rpc = ask_by_rpc(daemon, prompt(7))
            if rebuilding(daemon):
                by_rpc.append(rpc)
        if still and len(refused) == 1:
            hold_for_a_progress_line(daemon)
        return ready.status == 200

    poll_until(look, "the daemon is ready", deadline_s=120 * SLOWNESS)
    assert len(refused) >= 2, f"queries during the rebuild: {phases}"
    assert by_rpc, f"gRPC during the rebuild: {phases}"
    for code, reply in by_rpc:
        assert code != 0 and reply["reason"] == "not_ready", reply
    code, reply = ask_by_rpc(daemon, prompt(7))
    assert code == 0 and reply["instances"]["i1"]["longest_matched"] == TOKENS_PER_BATCH

    # The numbers grow up to one total, and so does what is behind them.
    (total,) = {step["total"] for step in steps}
    assert len({step["replayed"] for step in steps}) >= 3, steps
    assert all(0 <= step["replayed"] <= total for step in steps)
    for name in ("replayed", "blocks_done", "percent"):
        values = [step[name] for step in steps]
        assert values == sorted(values) and values[-1] > values[0], (name, values)
    assert any(0 < step["percent"] < 100 for step in steps)
    assert any(step["blocks_per_s"] and step["seconds_left"] is not None for step in steps), steps

    lines = [line for line in daemon.log()[before:].splitlines() if "event=rebuilding " in line]
    assert lines, daemon.log()[before:]
    for line in lines:
        fields = dict(re.findall(r"(\w+)=(\S+)", line))
        assert fields["phase"] == "rebuilding" and int(fields["of"]) == total, line
        assert 0 < int(fields["seq"]) <= total and 0 < float(fields["percent"]) <= 100, line
        assert int(fields["blocks"]) > 0 and float(fields["blocks_per_s"]) > 0, line
    assert daemon.matched(prompt(0)) == TOKENS_PER_BATCH
    daemon.stop()


def test_bl_45_a_signal_during_the_rebuild(large_log):
    daemon = large_log
    for _ in range(ATTEMPTS):
        before = len(daemon.log())
        daemon.launch()
        poll_until(daemon.listening, "the daemon listens")

        def half_way():
            body = daemon.get("/readyz").body
            return body["phase"] != "rebuilding" or 2 * body["replayed"] >= body["total"] > 0

        poll_until(half_way, "half of the log is rebuilt", deadline_s=120 * SLOWNESS)
        daemon.stop()
        said = daemon.log()[before:]
        if "event=rebuilt " not in said:  # else this process was kept waiting for long
            break
    assert "event=rebuilt " not in said and "event=stopped" in said, said
    daemon.start()
    assert daemon.matched(prompt(LOG_BATCHES // 2)) == TOKENS_PER_BATCH
    daemon.stop()


def test_bl_45_registering_during_the_rebuild_is_not_lost(large_log, publisher):
    daemon = large_log
    p2 = publisher()
    daemon.launch()
    poll_until(daemon.listening, "the daemon listens")
    answer = daemon.post("/register", daemon.registration(p2, "i2"))
    assert answer.status == 503 and answer.body["reason"] == "not_ready", answer.body
    daemon.wait_ready()
    daemon.register(p2, "i2")
    assert sorted(s["InstanceID"] for s in daemon.services()) == ["i1", "i2"]
    daemon.unregister("i2")
    daemon.stop()
