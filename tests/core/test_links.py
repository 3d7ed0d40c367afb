"""Links without sockets: what a peer of another release gets, and what reaches nobody."""

from __future__ import annotations

import pytest
from tests.core.bus_cluster import BusCluster

from disqueue.core import links
from disqueue.wire.job_records import Want


class Later(Want, tag=16):
    """A record that the next release brings, of a shape that this one can decode."""

    since = 2


def test_a_peer_one_release_behind_is_not_sent_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = BusCluster(2)
    cluster.join_all()
    first, second = cluster.nodes
    monkeypatch.setattr(links, "PROTOCOL_VERSION", 2)
    first.run(lambda: first.peer(second).outbox.extend([Later(b"new", 1), Want(b"old", 1)]))
    cluster.run(10)
    assert second.frames == [Want(b"old", 1)]
    first.peer(second).version = 2
    first.run(lambda: first.peer(second).outbox.append(Later(b"new", 1)))
    cluster.run(10)
    assert [record.queue for record in second.frames if isinstance(record, Want)] == [b"old", b"new"]


def test_records_for_a_peer_without_a_link_go_nowhere() -> None:
    cluster = BusCluster(2)
    cluster.join_all()
    first, second = cluster.nodes
    second.kill()
    cluster.run(100)
    first.run(lambda: first.peer(second).outbox.append(Want(b"q", 1)))
    assert not first.peer(second).outbox


def test_a_pass_that_comes_after_the_bus_was_closed_sends_nothing() -> None:
    cluster = BusCluster(2)
    cluster.join_all()
    first, second = cluster.nodes
    first.bus.close()
    first.run(lambda: first.peer(second).outbox.append(Want(b"q", 1)))
    assert not first.peer(second).outbox


def test_a_record_that_is_too_long_costs_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = BusCluster(2)
    cluster.join_all()
    first, second = cluster.nodes

    def refuse(*_: object) -> list[bytes]:
        raise links.BusError("too long")

    with monkeypatch.context() as patch:
        patch.setattr(links, "encode_frames", refuse)
        first.run(lambda: first.peer(second).outbox.append(Want(b"q", 1)))
        assert not first.peer(second).link_up
    cluster.run(5_000, cluster.full_mesh)
    assert cluster.full_mesh()


def test_strangers_do_not_fill_the_log() -> None:
    cluster = BusCluster(1)
    node = cluster.nodes[0]
    for _ in range(500):
        node.bus._log_refusal("10.0.0.9", "no handshake")
    for number in range(2_000):
        node.bus._log_refusal(f"10.1.{number >> 8}.{number & 255}", "no handshake")
    assert len(node.logged("bus connection refused")) == links.MAX_REFUSAL_LOGS
    cluster.run(links.REFUSAL_LOG_MS)
    node.run()
    node.bus._log_refusal("10.0.0.9", "no handshake")
    assert len(node.logged("bus connection refused")) == links.MAX_REFUSAL_LOGS + 1
    assert node.membership.stats.links_refused == 2_501
