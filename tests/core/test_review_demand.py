"""What nodes know of each other's waiting consumers stays true, so that nobody waits while there are jobs elsewhere."""

from __future__ import annotations

import pytest
from tests.cluster.lone_node import UNKNOWN_ID, LoneNode
from tests.cluster.nodes import Nodes, OneNode

from disqueue.core.client import NOT_BLOCKED, Client
from disqueue.wire import job_records as wire
from disqueue.wire.bus import decode_frame, encode_frames

HUGE = 1 << 40


def wait_at(one: LoneNode, queue: bytes = b"q") -> Client:
    client = one.client()
    one.run(lambda: one.node.get_jobs(client, [queue], 1, 0, False, False))
    return client


def asked_of(one: LoneNode, index: int) -> int:
    demand = one.node.queues[b"q"].demand
    return demand.asked.get(one.peers[index], 0) if demand is not None else 0


def test_what_a_node_sends_is_what_its_peers_accept_whatever_a_client_asks_for() -> None:
    one = LoneNode()
    client = one.client()
    one.run(lambda: one.node.get_jobs(client, [b"q"], HUGE, 0, True, False))
    one.run(lambda: one.node.get_jobs(client, [b"q"], HUGE, 0, False, False))
    sent = one.sent()
    assert any(isinstance(record, wire.Want) for record in sent)
    for frame in encode_frames(sent):
        decode_frame(frame[4:])


@pytest.mark.parametrize("consumers", [1, 2, 3, 4, 5, 7, 20, 600])
def test_every_waiting_consumer_gets_a_job_that_is_elsewhere(consumers: int) -> None:
    nodes = Nodes(2)
    a, b = nodes
    waiting = [b.caller() for _ in range(consumers)]
    for consumer in waiting:
        consumer.send("GETJOB", "FROM", "q")
    nodes.wait(20)
    a.add_many(consumers, "q", "REPLICATE", 1)
    nodes.until(lambda: all(consumer.replies for consumer in waiting), 5000)


def test_a_job_that_comes_in_vain_uses_up_what_was_asked_for() -> None:
    one = LoneNode()
    wait_at(one)
    assert asked_of(one, 0) == 1
    one.receive(one.peers[0], wire.Batch(wire.DELETE, [UNKNOWN_ID], []))
    one.sent()
    one.receive(one.peers[0], wire.Move([one.record(UNKNOWN_ID)]))
    assert asked_of(one, 0) == 1
    assert any(isinstance(record, wire.Want) for record in one.sent()), "the peer may send nothing any more: it is asked again"


def test_a_job_that_the_receiver_has_no_copy_of_gives_its_credit_back() -> None:
    one = LoneNode()
    peer = one.peers[0]
    job_id = one.replica()
    one.receive(peer, wire.Want(b"q", 1))
    one.receive(one.peers[1], wire.Batch(wire.HANDOFF, [job_id], []))
    assert any(record.kind == wire.HANDOFF for record in one.sent() if isinstance(record, wire.Batch))
    one.receive(peer, wire.Batch(wire.MISSING, [job_id], []))
    moves = [record for record in one.sent() if isinstance(record, wire.Move)]
    assert len(moves) == 1, "the job is sent whole"


def break_link(nodes: Nodes, source: OneNode, target: OneNode) -> None:
    """Break the connection that carries the records of `source` to `target`; the other direction stands."""
    peer = source.node.members.find(target.id)
    assert peer is not None
    assert peer.link is not None
    endpoint = peer.link.transport
    nodes.cluster.network.reset(endpoint, half=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("toward_consumer", [True, False])
def test_a_consumer_is_served_after_one_direction_of_a_link_broke(toward_consumer: bool) -> None:
    nodes = Nodes(2)
    a, b = nodes
    consumer = b.caller()
    consumer.send("GETJOB", "FROM", "q")
    nodes.wait(10_000)
    break_link(nodes, *((a, b) if toward_consumer else (b, a)))
    nodes.wait(2000)
    nodes.joined()
    job = a.add("q", "REPLICATE", 1)
    assert consumer.reply(1000)[0][1] == job


def test_jobs_that_waited_for_a_link_are_sent_when_it_is_there() -> None:
    one = LoneNode()
    peer = one.peers[0]
    one.add()
    one.lose(peer)
    one.receive(peer, wire.Want(b"q", 1))
    one.sent()
    one.run(lambda: one.regain(peer))
    assert any(isinstance(record, wire.Move) for record in one.sent())


def test_a_served_consumer_is_not_blocked() -> None:
    one = LoneNode()
    client = wait_at(one)
    one.receive(one.peers[0], wire.Move([one.record(UNKNOWN_ID)]))
    assert client.blocked == NOT_BLOCKED
