"""How many copies a plain ADDJOB makes: as many as there are nodes to reach, three at the most."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .server_process import ServerProcess
from .socket_session import Connection

WAIT_S = 30.0


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; fail after a while."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def priorities(client: Connection) -> list[int]:
    """The priorities of all nodes, the best first."""
    return sorted(int(entry.items[3].data) for entry in client.call("HELLO").items[2:])


def copies(client: Connection, *options: str) -> int:
    """The `repl` of a job that was just added."""
    job = client.call("ADDJOB", "q", "x", "5000", *options)
    assert job.kind == "+", str(job)
    return client.call(b"SHOW", job.data).fields()[b"repl"].number


@pytest.mark.differs("addjob-default-replicate")
def test_the_default_counts_nodes_that_can_be_reached(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        servers = []
        for name in "abc":
            (tmp_path / name).mkdir()
            servers.append(ServerProcess(tmp_path / name, ("--cluster-node-timeout", "600")))
            stack.callback(servers[-1].stop)
        client = Connection(servers[0].port)
        stack.callback(client.close)
        assert copies(client) == 1
        for other in servers[1:]:
            assert str(client.call("CLUSTER", "MEET", "127.0.0.1", str(other.port))) == "+OK"
        wait_until(lambda: b"cluster_reachable_nodes:2\r\n" in client.call("CLUSTER", "INFO").data)
        assert copies(client) == 3
        servers[2].process.kill()
        wait_until(lambda: priorities(client)[2:] > [5])
        assert copies(client) == 2
        assert str(client.call("ADDJOB", "q", "x", "5000", "REPLICATE", "3")).startswith("-NOREPL Not enough reachable nodes")
