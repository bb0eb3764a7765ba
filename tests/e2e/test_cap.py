"""The caps of the index: what an operator sees when more is published than the index may hold."""

import pytest

from conductor_e2e import DEADLINE_S, Daemon, poll_until
from e2e_wire import ERAS, R, S

MAX_BLOCKS = 1_000
PROMPTS = 200
BLOCKS = 16  # of one prompt


def prompt(i):
    return [i] + [1] * (4 * BLOCKS - 1)


def names(i):
    first = 1 + i * BLOCKS
    return list(range(first, first + BLOCKS))


@pytest.mark.parametrize("era", ERAS)
def test_a_flood_stays_below_max_blocks(new_daemon, publisher, era):
    daemon = new_daemon(limits={"max_blocks": MAX_BLOCKS})
    p = publisher()
    daemon.register(p)
    for i in range(PROMPTS):
        p.send(S(names(i), prompt(i), era=era))
    daemon.wait_seq(PROMPTS - 1)

    def settled():
        return daemon.metric("conductor_blocks") < MAX_BLOCKS

    poll_until(settled, "the index is below its cap")
    blocks = daemon.metric("conductor_blocks")
    assert blocks >= MAX_BLOCKS * 0.9, "no more is given up than has to be"
    evicted = PROMPTS * BLOCKS - blocks
    assert daemon.metric("conductor_evicted_blocks_total") == evicted
    assert daemon.counter("evictions_total") == evicted
    status = daemon.status()
    assert (status["max_blocks"], status["evicted_blocks"]) == (MAX_BLOCKS, evicted)

    # Every block that is left is the beginning of its prompt, so the answers name all of them.
    hits = [daemon.matched(prompt(i)) for i in range(PROMPTS)]
    assert sum(hits) == 4 * blocks
    gone = hits.index(0)
    p.send(R(names(gone)))
    daemon.wait_seq(PROMPTS)
    assert daemon.counter("remove_unknown_total") == BLOCKS

    digest = daemon.status()["digest"]
    daemon.verify()
    daemon.restart()
    assert daemon.status()["digest"] == digest
    assert [daemon.matched(prompt(i)) for i in range(PROMPTS)] == hits
    findings = str(daemon.ctl("doctor", code=1))
    assert "limits.max_blocks" in findings, findings


def test_a_cap_that_makes_no_sense_is_refused(tmp_path):
    daemon = Daemon(tmp_path, limits={"max_bytes": 1}).launch()
    assert daemon.process.wait(timeout=DEADLINE_S) == 2
    assert "limits.max_bytes: expected 0 (no cap) or at least 16777216, got 1" in daemon.log()
