"""Fixtures for pytest. In a conftest.py: `pytest_plugins = ["disqueue.testing.fixtures"]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from disqueue.client.sync import Client
from disqueue.testing.broker import MemoryBroker
from disqueue.testing.server import Cluster, Server


@pytest.fixture
def disqueue_broker() -> MemoryBroker:
    """A broker inside the process, with virtual time: see `disqueue.testing.MemoryBroker`."""
    return MemoryBroker(virtual_time=True)


@pytest.fixture(scope="session")
def disqueue_server() -> Iterator[Server]:
    """A server for the whole run of tests. Use a queue of your own in each test, or `disqueue_client`."""
    with Server() as server:
        yield server


@pytest.fixture
def disqueue_client(disqueue_server: Server) -> Iterator[Client]:
    """A client of `disqueue_server`, with every job and queue of earlier tests gone."""
    with disqueue_server.client() as client:
        client.execute("DEBUG", "FLUSHALL")
        yield client


@pytest.fixture
def start_server() -> Iterator[Callable[..., Server]]:
    """A function that starts servers of their own for one test; it takes the arguments of `Server`."""
    servers: list[Server] = []

    def start(*options: str, **arguments: object) -> Server:
        server = Server(*options, **arguments)  # type: ignore[arg-type]
        servers.append(server)
        return server.start()

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def start_cluster() -> Iterator[Callable[[int], Cluster]]:
    """A function that starts a cluster of so many nodes for one test."""
    clusters: list[Cluster] = []

    def start(size: int) -> Cluster:
        cluster = Cluster(size)
        clusters.append(cluster)
        return cluster.start()

    yield start
    for cluster in clusters:
        cluster.close()
