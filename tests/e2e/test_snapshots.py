"""Snapshots as an operator meets them, and endless churn: BL-35, bounded memory and disk.

CONDUCTOR_CHURN (default 200000, the field case's own) is the number of tails that come and go.
CONDUCTOR_SEED chooses their order.
"""

import os
import pathlib
import random
import subprocess

from conductor_e2e import CTL, DEADLINE_S, INSTRUMENTED, SLOWNESS, Daemon, poll_until
from e2e_wire import R, S, batch

SMALLER = 10 if INSTRUMENTED else 1
CHURN = int(os.environ.get("CONDUCTOR_CHURN", "200000")) // SMALLER
SEED = int(os.environ.get("CONDUCTOR_SEED", "35"))
ROOT_BLOCKS = 8
TAIL_BLOCKS = 10
LIVE_TAILS = 500 // SMALLER
SAMPLES = 10  # the first after the warm-up: a tenth
SNAPSHOT_EVENTS = 5_000 // SMALLER
TAILS_PER_SNAPSHOT = 2_800 // SMALLER  # two events each
MIB = 1 << 20
EMPTY_SLACK_BYTES = MIB // 2  # lists of free places keep their length
# The log of two intervals and RocksDB's own files. The uncut log of 200,000 tails is 65 MiB.
LOG_BYTES_MAX = 16 * MIB
# What the heaps of the daemon's threads and RocksDB's buffers still take after a tenth of the run:
# 2 to 7 MB were seen, and no more with a million tails. (One byte that each block of a tail leaves
# behind would be 1.8 MB.)
HEAPS_BYTES = 6 * MIB


def directory_bytes(path):
    total = 0
    for file in pathlib.Path(path).rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:  # files come and go
            pass
    return total


def snapshot_files(daemon):
    return sorted(pathlib.Path(daemon.data_dir, "snapshots").glob("*.snapshot"))


def root_tokens():
    return [token for block in range(ROOT_BLOCKS) for token in (1, block, 2, 3)]


def tail_names(tail):
    return [1_000 + tail * TAIL_BLOCKS + i for i in range(TAIL_BLOCKS)]


def stored_tail(tail):
    tokens = [token for i in range(TAIL_BLOCKS) for token in (tail, i, 4, 5)]
    return S(tail_names(tail), tokens, p=ROOT_BLOCKS)


def removed_tail(tail, chance):
    names = tail_names(tail)
    chance.shuffle(names)
    if chance.random() < 0.1:
        names.insert(chance.randrange(len(names)), 999_999_999)  # nobody has it
    if chance.random() < 0.34:
        return [R(names[:4]), R(names[4:])]
    return [R(names)]


def test_bl_35_endless_churn_keeps_memory_and_disk(new_daemon, publisher):
    print(f"CONDUCTOR_SEED={SEED} CONDUCTOR_CHURN={CHURN}")
    chance = random.Random(SEED)
    daemon = new_daemon(snapshot_interval_events=SNAPSHOT_EVENTS)
    snapshots = pathlib.Path(daemon.data_dir, "snapshots")
    empty_bytes = daemon.metric("conductor_index_bytes")
    p = publisher(ring=100)
    daemon.register(p)
    p.send(S(list(range(1, ROOT_BLOCKS + 1)), root_tokens()))
    daemon.wait_seq(0)
    daemon.wait_state("live")  # the ring is small: nothing is to be fetched from it
    live, samples, made, sent_bytes = list(range(LIVE_TAILS)), [], 0, 0
    for tail in live:
        p.send(stored_tail(tail))
        if tail % 256 == 255:
            daemon.wait_seq(p.next_seq - 1)  # no more on the way than the buffers take
    for turn in range(1, CHURN + 1):
        tail = LIVE_TAILS + turn
        live.append(tail)
        gone = live.pop(chance.randrange(len(live)))
        payload = batch([stored_tail(tail), *removed_tail(gone, chance)])
        sent_bytes += len(payload)
        p.send_payload(payload)
        if turn % 256 == 0:
            daemon.wait_seq(p.next_seq - 1)
        if turn % TAILS_PER_SNAPSHOT == 0:
            # Nor more in the log than between two snapshots, however slow the disk is: a part of it
            # is in memory.
            before = made
            poll_until(lambda: daemon.metric("conductor_snapshots_total") > before, "a snapshot")
            made = daemon.metric("conductor_snapshots_total")
        if turn % (CHURN // SAMPLES) == 0:
            daemon.wait_seq(p.next_seq - 1)
            samples.append(
                {
                    "rss": daemon.rss_bytes(),
                    "index": daemon.metric("conductor_index_bytes"),
                    "log": directory_bytes(daemon.data_dir) - directory_bytes(snapshots),
                    "snapshots": directory_bytes(snapshots),
                    "blocks": daemon.metric("conductor_blocks"),
                }
            )
    print(*samples, f"sent {sent_bytes}", sep="\n")
    assert {sample["blocks"] for sample in samples} == {ROOT_BLOCKS + LIVE_TAILS * TAIL_BLOCKS}
    warm, half = samples[0], samples[SAMPLES // 2]
    warm_snapshot = max(file.stat().st_size for file in snapshot_files(daemon))
    for sample in samples:
        # An instrumented process keeps what it freed for a while.
        assert INSTRUMENTED or sample["rss"] <= warm["rss"] * 1.05 + HEAPS_BYTES
        assert sample["index"] <= warm["index"] * 1.05
        assert sample["log"] <= LOG_BYTES_MAX
        # Two, and one more that is being written or removed.
        assert sample["snapshots"] <= 3.5 * warm_snapshot
    for sample in samples[SAMPLES // 2 :]:
        assert INSTRUMENTED or sample["rss"] <= half["rss"] * 1.05
    # A log that is never cut would be larger than what was sent.
    assert samples[-1]["log"] <= sent_bytes / 2
    assert warm["index"] > empty_bytes + EMPTY_SLACK_BYTES, "or the end says nothing"
    status = daemon.status()
    assert status["snapshots_made"] >= 4, status
    assert status["log_first"] > 1, "the log is cut"
    assert len(snapshot_files(daemon)) == 2
    assert daemon.service()["LostRanges"] == []
    digest = status["digest"]
    daemon.verify()
    daemon.restart()
    assert daemon.status()["digest"] == digest

    for tail in live:
        p.send(*removed_tail(tail, chance))
    daemon.wait_seq(p.next_seq - 1)
    assert daemon.metric("conductor_blocks") == ROOT_BLOCKS, "the root alone"
    daemon.unregister()
    assert daemon.metric("conductor_blocks") == 0
    status = daemon.status()
    assert (status["blocks"], status["contexts"], status["fragments"]) == (0, 0, 0), status
    poll_until(
        lambda: daemon.metric("conductor_index_bytes") <= empty_bytes + EMPTY_SLACK_BYTES,
        "the memory of what was unregistered is given back",
    )
    assert daemon.global_view()["contexts"] == []


def fill(daemon, p, chains):
    for chain in range(chains):
        p.send(S([1 + chain * 8 + i for i in range(8)], [chain] * 32))
    daemon.wait_seq(p.next_seq - 1)


def start_expecting_exit(daemon, code):
    daemon.launch()
    assert daemon.process.wait(timeout=DEADLINE_S) == code, daemon.log()[-2000:]
    daemon.process = None


def flip_byte(path):
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(size // 2)
        byte = file.read(1)
        file.seek(size // 2)
        file.write(bytes([byte[0] ^ 0x55]))


def test_a_damaged_snapshot_falls_back_to_the_one_before(new_daemon, publisher):
    daemon = new_daemon(snapshot_interval_events=0, snapshot_interval_s=0)
    p = publisher()
    daemon.register(p)
    made = []
    for _ in range(3):
        fill(daemon, p, 50)
        made.append(daemon.ctl("snapshot", "create")["seq"])
    fill(daemon, p, 50)
    digest = daemon.status()["digest"]
    assert daemon.status()["log_first"] == made[1] + 1
    older, newer = snapshot_files(daemon)
    daemon.stop()

    flip_byte(newer)
    daemon.start()
    assert "event=snapshot_unusable" in daemon.log() and str(newer) in daemon.log()
    assert f"event=rebuilt snapshot={made[1]} " in daemon.log()
    assert daemon.status()["digest"] == digest
    daemon.verify()
    assert snapshot_files(daemon) == [older]
    assert len(list(newer.parent.glob("*.damaged"))) == 1, "kept for whoever wants to look"
    daemon.stop()

    # The last one, and the log behind it alone says too little: an error with a name, each time.
    flip_byte(older)
    for _ in range(2):
        start_expecting_exit(daemon, 4)
        assert "no snapshot reaches it" in daemon.log()
        assert str(older) in daemon.log()


def test_an_export_made_while_serving_starts_elsewhere(new_daemon, publisher, tmp_path):
    daemon = new_daemon(snapshot_interval_events=0, snapshot_interval_s=0)
    p = publisher()
    daemon.register(p)
    for _ in range(2):
        fill(daemon, p, 50)
        daemon.ctl("snapshot", "create")
    fill(daemon, p, 20)
    digest = daemon.status()["digest"]
    target = tmp_path / "exported"
    daemon.ctl("snapshot", "export", str(target))
    assert not list(pathlib.Path(daemon.data_dir, "checkpoints").glob("*")), "nothing is left behind"
    fill(daemon, p, 20)
    assert daemon.status()["digest"] != digest

    elsewhere = Daemon(tmp_path / "elsewhere")
    imported = subprocess.run(
        [CTL, "--data-dir", elsewhere.data_dir, "-o", "json", "snapshot", "import", str(target)],
        capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert imported.returncode == 0, imported.stderr
    p.stop()  # nobody is there to go on from
    elsewhere.start(ready=False)
    poll_until(lambda: elsewhere.get("/services").status == 200, "the state is back")
    assert elsewhere.status()["digest"] == digest
    elsewhere.stop()


def growing_snapshots(daemon):
    return list(pathlib.Path(daemon.data_dir, "snapshots").glob("*.growing"))


def test_kill_while_snapshots_are_written(new_daemon, publisher):
    """Whatever moment it is, what is there afterwards is a whole snapshot or none."""
    daemon = new_daemon(snapshot_interval_events=0, snapshot_interval_s=0)
    p = publisher()
    daemon.register(p)
    fill(daemon, p, 8_000 // SMALLER)
    made = [daemon.ctl("snapshot", "create")["seq"]]
    moments = random.Random(SEED)
    cut_short = 0
    for attempt in range(6 if SLOWNESS == 1 else 3):
        fill(daemon, p, 20)
        digest = daemon.status()["digest"]
        command = [CTL, "--address", f"127.0.0.1:{daemon.ports['rpc_port']}", "snapshot", "create"]
        taking = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # poll_until would look too rarely. It may be over before this process had a turn.
        while not growing_snapshots(daemon) and taking.poll() is None:
            pass
        if attempt % 3 == 2:  # later, and now and then when it has its name
            for _ in range(moments.randrange(4)):
                daemon.get("/healthz")  # about a millisecond each
        daemon.kill()
        cut_short += len(growing_snapshots(daemon))
        taking.wait(timeout=DEADLINE_S)
        daemon.start()
        assert daemon.status()["digest"] == digest
        daemon.wait_seq(p.next_seq - 1)
        daemon.verify()
        assert not growing_snapshots(daemon)
        listed = daemon.ctl("snapshot", "list")["snapshots"]
        assert not [snapshot for snapshot in listed if snapshot.get("damage")], listed
        assert max(snapshot["seq"] for snapshot in listed) >= made[-1], "one was acknowledged"
        if attempt % 2 == 1:  # undisturbed, beside what the kills left
            fill(daemon, p, 20)
            made.append(daemon.ctl("snapshot", "create")["seq"])
    assert cut_short > 0, "no kill met a snapshot that was being written"
    assert made == sorted(set(made)) and len(made) >= 2
