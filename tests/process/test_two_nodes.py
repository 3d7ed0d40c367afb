"""Jobs that go from one healthy server to another over real sockets: each comes once, and nothing stays."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from disqueue.simulation.replies import ReplyReader, encode_request
from disqueue.testing.server import Cluster, Server, wait_for

JOBS = 10_000
A_BATCH = 500


class Pipe:
    """A connection that sends many requests at once."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        self._reader = ReplyReader()

    def call(self, *requests: list[bytes]) -> list[Any]:
        """Send requests; return their replies."""
        self._socket.sendall(b"".join(encode_request(request) for request in requests))
        replies: list[Any] = []
        while len(replies) < len(requests):
            data = self._socket.recv(1 << 20)
            assert data, "connection closed"
            replies += self._reader.feed(data)
        return replies

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def two() -> Iterator[Cluster]:
    with Cluster(2) as cluster:
        yield cluster


@pytest.fixture
def pipes(two: Cluster) -> Iterator[tuple[Pipe, Pipe]]:
    with ExitStack() as stack:
        pair = [Pipe(server) for server in two.servers]
        for pipe in pair:
            stack.callback(pipe.close)
        yield pair[0], pair[1]


def figures(cluster: Cluster) -> list[int]:
    found = []
    for server in cluster.servers:
        with server.client() as client:
            found.append(int(client.info()["registered_jobs"]))
    return found


def add_many(pipe: Pipe, count: int, *options: bytes) -> None:
    for start in range(0, count, A_BATCH):
        bodies = range(start, min(start + A_BATCH, count))
        replies = pipe.call(*([b"ADDJOB", b"q", b"%d" % body, b"0", *options] for body in bodies))
        assert all(isinstance(reply, bytes) for reply in replies), replies[0]


@pytest.mark.parametrize("copies", [b"1", b"2"])
def test_ten_thousand_jobs_go_over_once(two: Cluster, pipes: tuple[Pipe, Pipe], copies: bytes) -> None:
    producer, consumer = pipes
    add_many(producer, JOBS, b"REPLICATE", copies, b"RETRY", b"2")
    seen: list[bytes] = []
    while len(seen) < JOBS:
        jobs = consumer.call([b"GETJOB", b"TIMEOUT", b"10000", b"COUNT", b"1000", b"FROM", b"q"])[0]
        assert jobs is not None, f"only {len(seen)} came"
        seen += [body for _queue, _id, body in jobs]
        assert consumer.call([b"ACKJOB", *(job[1] for job in jobs)]) == [len(jobs)]
    assert len(set(seen)) == len(seen) == JOBS
    wait_for(lambda: figures(two) == [0, 0], "nothing is registered anywhere", 10.0)
    assert consumer.call([b"GETJOB", b"TIMEOUT", b"2600", b"FROM", b"q"]) == [None], "one came back"
    assert figures(two) == [0, 0]


def test_pauses_and_jobs_survive_with_a_journal(tmp_path: Path) -> None:
    options = ("--appendonly", "yes", "--appendfsync", "always")
    with Server(*options, directory=tmp_path) as server:
        with server.client() as client:
            client.execute("PAUSE", "q", "in")
            job = client.execute("ADDJOB", "other", "x", 0)
        server.restart()
        with server.client() as client:
            assert client.execute("PAUSE", "q", "state") == b"in"
            assert client.execute("GETJOB", "NOHANG", "FROM", "other")[0][1] == job
