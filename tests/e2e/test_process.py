"""The daemon as the system sees it: whom its threads may interrupt (docs/decisions/0013), and its
memory."""

import collections
import os
import pathlib

from e2e_wire import A, S


def policies(daemon):
    """The scheduling policies of the daemon's threads, by name."""
    found = collections.defaultdict(set)
    for task in pathlib.Path(f"/proc/{daemon.process.pid}/task").iterdir():
        text = (task / "stat").read_text()
        name = text[text.index("(") + 1 : text.rindex(")")]
        found[name].add(int(text[text.rindex(")") + 2 :].split()[38]))
    return found


def test_threads_that_take_events_in_do_not_interrupt_queries(daemon, publisher):
    p1 = publisher()
    daemon.register(p1)
    p1.send(S([1], A))
    daemon.wait_matched(4, A)
    found = policies(daemon)
    for name in ("apply", "sync", "stream-0", "ZMQbg/IO/0", "ZMQbg/Reaper"):
        assert found[name] == {os.SCHED_BATCH}, (name, found)
    assert found["http-0"] == {os.SCHED_OTHER}, found


def test_resident_memory_is_what_the_system_says(daemon):
    says = daemon.metric("conductor_resident_bytes")
    assert says > 0
    if daemon.rss_bytes() > 0:  # an instrumented build does not say
        assert abs(says - daemon.rss_bytes()) < 8 << 20
