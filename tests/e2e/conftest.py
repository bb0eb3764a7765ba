"""Fixtures: daemons on directories of their own, and publishers. All of them end with the test."""

import pytest

from conductor_e2e import Daemon
from e2e_publisher import Publisher


@pytest.fixture
def new_daemon(tmp_path):
    """Makes daemons that run; at the end each one that still does must stop in good order."""
    made = []

    def make(**config):
        daemon = Daemon(tmp_path / f"daemon{len(made)}", **config)
        made.append(daemon)
        return daemon.start()

    yield make
    running = [daemon for daemon in made if daemon.process is not None]
    try:
        for daemon in running:
            daemon.stop()
    finally:
        for daemon in running:
            if daemon.process is not None:
                daemon.kill()


@pytest.fixture
def daemon(new_daemon):
    return new_daemon()


@pytest.fixture
def publisher():
    made = []

    def make(**options):
        made.append(Publisher(**options))
        return made[-1]

    yield make
    for one in made:
        one.stop()
