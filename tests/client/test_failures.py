"""Nodes that die, hang, leave and come back, under both clients."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from disqueue.client import (
    AuthenticationError,
    CommandError,
    NodeLeavingError,
    NoNodeError,
    UnknownOutcomeError,
)
from disqueue.client.errors import ClientClosedError
from disqueue.testing import Cluster, Server, free_port
from disqueue.testing.server import wait_for

from .conftest import Connect

# What fails fails in the same way in both protocols.
pytestmark = pytest.mark.parametrize("connect", ["sync-resp2", "async-resp3"], indirect=True)


def in_background(function: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Run it in a thread; the list gets what it returns or raises."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(function())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


def blocked_clients(server: Server) -> int:
    with server.client() as probe:
        return int(probe.info("clients")["blocked_clients"])


def test_no_server_at_all(connect: Connect) -> None:
    port = free_port()
    client = connect(f"127.0.0.1:{port}", retry_for=0.2)
    with pytest.raises(NoNodeError, match=str(port)):
        client.ping()
    with pytest.raises(NoNodeError, match=str(port)):
        client.add("q", b"x")


def test_a_name_that_does_not_resolve(connect: Connect) -> None:
    client = connect("no-such-host.invalid", retry_for=0.1)
    with pytest.raises(NoNodeError, match=r"no-such-host\.invalid"):
        client.ping()


def test_a_closed_client_says_so(connect: Connect, disqueue_server: Server) -> None:
    client = connect(disqueue_server.url)
    client.ping()
    client.close()
    with pytest.raises(ClientClosedError):
        client.ping()


def test_a_client_that_is_closed_while_it_waits(connect: Connect, start_server: Callable[..., Server], queue: str) -> None:
    server = start_server()
    client = connect(server.url)
    thread, outcome = in_background(lambda: client.get(queue, timeout=30))
    wait_for(lambda: blocked_clients(server) == 1, "GETJOB waits")
    client.close()
    thread.join()
    assert isinstance(outcome[0], ClientClosedError)


def test_a_job_that_is_done_when_all_nodes_are_gone(
    connect: Connect, start_server: Callable[..., Server], queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = start_server()
    client = connect(server.url, retry_for=0.2)
    client.add(queue, b"x")
    with client.get_one(queue, timeout=5) as job:
        server.kill()
    assert f"{job.id} from" in caplog.text
    assert "will be delivered again" in caplog.text
    with pytest.raises(NoNodeError):
        job.ack()


def test_a_node_that_hangs_does_not_take_the_jobs(connect: Connect, start_cluster: Callable[[int], Cluster], queue: str) -> None:
    """Leases are renewed through another node in time, though the one that delivered the job says nothing more."""
    cluster = start_cluster(2)
    client = connect(cluster.url)
    client.add(queue, b"x", replicate=2, retry=3)
    with client.get_one(queue, timeout=5) as job:
        here = next(server for server in cluster.servers if server.port == client.node.port)
        there = next(server for server in cluster.servers if server is not here)
        here.pause()
        with there.client() as watcher:
            assert watcher.get(queue, timeout=5) == []
        assert not job.lease_lost
        here.resume()


def test_killed_while_getjob_waits_then_restarted(connect: Connect, start_server: Callable[..., Server], queue: str) -> None:
    server = start_server()
    client = connect(server.url)
    thread, outcome = in_background(lambda: client.get(queue, timeout=30))
    wait_for(lambda: blocked_clients(server) == 1, "GETJOB waits")
    server.restart()
    wait_for(lambda: blocked_clients(server) == 1, "GETJOB was sent again")
    with server.client() as other:
        other.add(queue, b"x")
    thread.join()
    assert [job.body for job in outcome[0]] == [b"x"]


def test_killed_while_addjob_waits(connect: Connect, start_cluster: Callable[[int], Cluster], queue: str) -> None:
    first, second = start_cluster(2).servers
    client = connect(first.url, discover=False, retry_for=1.0)
    client.ping()
    second.pause()
    thread, outcome = in_background(lambda: client.add(queue, b"x", replicate=2, timeout=30))
    wait_for(lambda: blocked_clients(first) == 1, "ADDJOB waits")
    first.kill()
    thread.join()
    assert isinstance(outcome[0], UnknownOutcomeError)
    assert "may have been carried out or not" in str(outcome[0])


def test_addjob_goes_on_elsewhere_when_duplicates_are_fine(
    connect: Connect, start_cluster: Callable[[int], Cluster], queue: str
) -> None:
    first, second, third = start_cluster(3).servers
    client = connect([first.url, third.url], discover=False)
    first_id = client.execute("CLUSTER", "MYID")
    holder = first if client.node.port == first.port else third
    other = third if holder is first else first
    assert first_id
    second.pause()
    other.pause()
    thread, outcome = in_background(lambda: client.add(queue, b"x", replicate=2, timeout=60, duplicates_ok=True))
    wait_for(lambda: blocked_clients(holder) == 1, "ADDJOB waits")
    second.resume()
    other.resume()
    holder.kill()
    thread.join()
    assert isinstance(outcome[0], str)


def test_a_node_that_hangs_is_left(connect: Connect, start_cluster: Callable[[int], Cluster], queue: str) -> None:
    cluster = start_cluster(2)
    client = connect(cluster.url, response_timeout=0.5, connect_timeout=0.5)
    client.ping()
    here = next(server for server in cluster.servers if server.port == client.node.port)
    there = next(server for server in cluster.servers if server is not here)
    here.pause()
    assert client.queue_length(queue) == 0
    assert client.node.port == there.port
    here.resume()


def test_an_add_to_a_node_that_hangs_has_an_unknown_outcome(
    connect: Connect, start_server: Callable[..., Server], queue: str
) -> None:
    server = start_server()
    client = connect(server.url, response_timeout=0.3)
    client.ping()
    server.pause()
    with pytest.raises(UnknownOutcomeError, match=r"[Tt]imeout"):
        client.add(queue, b"x", timeout=0.1)
    server.resume()


def test_a_dead_node_is_passed_over_at_the_start(connect: Connect, disqueue_server: Server, queue: str) -> None:
    client = connect([f"127.0.0.1:{free_port()}", disqueue_server.url])
    client.ack(client.add(queue, b"x"))
    assert client.node.port == disqueue_server.port


def test_other_nodes_are_discovered(connect: Connect, start_cluster: Callable[[int], Cluster], queue: str) -> None:
    cluster = start_cluster(3)
    client = connect(cluster.servers[0].url)
    client.ping()
    cluster.servers[0].kill()
    client.add(queue, b"x", replicate=1)
    assert client.node.port in {server.port for server in cluster.servers[1:]}


def test_a_leaving_node_is_left(connect: Connect, start_cluster: Callable[[int], Cluster], queue: str) -> None:
    cluster = start_cluster(2)
    first, second = cluster.servers
    client = connect(first.url)
    client.ping()
    thread, outcome = in_background(lambda: client.get(queue, timeout=30))
    wait_for(lambda: blocked_clients(first) == 1, "GETJOB waits at the first node")
    with first.client() as admin:
        admin.cluster("leaving", "yes")
    wait_for(lambda: blocked_clients(second) == 1, "GETJOB waits at the second node")
    with second.client() as other:
        other.add(queue, b"x", replicate=1)
    thread.join()
    assert [job.body for job in outcome[0]] == [b"x"]
    assert client.node.port == second.port


def test_the_only_node_leaves(connect: Connect, start_server: Callable[..., Server], queue: str) -> None:
    server = start_server()
    client = connect(server.url, retry_for=0.3)
    client.cluster("leaving", "yes")
    with pytest.raises(NodeLeavingError):
        client.get(queue, timeout=5)


def test_restarted_on_the_same_port(connect: Connect, start_server: Callable[..., Server], queue: str) -> None:
    server = start_server()
    client = connect(server.url)
    client.add(queue, b"before")
    server.restart()
    # The connection in the pool is dead; that is seen before anything is sent.
    client.add(queue, b"after")
    assert client.queue_length(queue) >= 1


def test_passwords(connect: Connect, start_server: Callable[..., Server], queue: str) -> None:
    server = start_server(password="s3cret")
    client = connect(server.url)
    client.ack(client.add(queue, b"x"))
    for url in (f"disque://127.0.0.1:{server.port}", f"disque://:wrong@127.0.0.1:{server.port}"):
        with pytest.raises(AuthenticationError):
            connect(url).ping()


def test_a_password_that_nobody_asked_for(connect: Connect, disqueue_server: Server) -> None:
    with pytest.raises((AuthenticationError, CommandError)):
        connect(f"disque://:secret@127.0.0.1:{disqueue_server.port}").ping()


def test_unix_socket(connect: Connect, start_server: Callable[..., Server], tmp_path: Path, queue: str) -> None:
    path = tmp_path / "node.sock"
    start_server("--unixsocket", str(path))
    client = connect(f"unix://{path}")
    job_id = client.add(queue, b"x")
    with client.get_one(queue, timeout=5) as job:
        assert job.id == job_id
    assert client.node.path == str(path)


def test_ipv6(connect: Connect, start_server: Callable[..., Server], queue: str) -> None:
    server = start_server("--bind", "127.0.0.1", "::1")
    client = connect(f"disque://[::1]:{server.port}")
    client.ack(client.add(queue, b"x"))
    assert client.node.host == "::1"
