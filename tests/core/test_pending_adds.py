"""ADDJOBs of one connection that wait for their copies at the same time: answered in order, each with its own end."""

from __future__ import annotations

from disqueue.core.client import BLOCKED_ADDJOB, NOT_BLOCKED, Answer, Client
from disqueue.core.job import DELETED
from disqueue.core.node import Node
from disqueue.core.peer import MEMBER, Peer
from disqueue.core.settings import Settings
from disqueue.wire.job_records import STORED, Batch
from disqueue.wire.resp import ReplyWriter


def make_node() -> tuple[Node, Peer, list[Client]]:
    node = Node(Settings(), lambda length: bytes(range(256)) * (length // 256) + bytes(range(length % 256)), b"a" * 40)
    node.ids.entropy = _counting_entropy()
    peer = Peer(1, b"b" * 40, MEMBER)
    peer.link_up = True
    members = node.members
    members.by_slot.append(peer)
    members.peers.append(peer)
    members.reachable.append(peer)
    members.members_mask = 3
    unblocked: list[Client] = []
    node.on_unblock = unblocked.append
    node.begin_pass(1000, 10**12)
    return node, peer, unblocked


def _counting_entropy() -> object:
    calls = [0]

    def entropy(length: int) -> bytes:
        calls[0] += 1
        return b"".join((calls[0] * 10**6 + number).to_bytes(18, "big") for number in range(length // 18 + 1))[:length]

    return entropy


def add(node: Node, client: Client, body: bytes, timeout_ms: int = 0) -> bytes:
    node.add_job(client, b"q", body, timeout_ms, 2, 100, 10, 0, 0, False)
    return client.pending_adds[-1].job_id  # type: ignore[attr-defined,no-any-return]


def stored(node: Node, peer: Peer, job_id: bytes) -> None:
    node.receive(peer, [Batch(STORED, [job_id], [])])


def test_answers_keep_the_order_of_the_requests() -> None:
    node, peer, unblocked = make_node()
    client = Client(1, ReplyWriter())
    first, second, third = (add(node, client, body) for body in (b"1", b"2", b"3"))
    assert client.blocked == BLOCKED_ADDJOB
    assert node.blocked_clients == 1
    stored(node, peer, second)
    assert client.reply.take() == b""
    stored(node, peer, first)
    assert client.reply.take() == b"+%b\r\n+%b\r\n" % (first, second)
    assert client.blocked == BLOCKED_ADDJOB
    node.end_pass()
    assert unblocked == [client], "the shell is told once a pass, before it sends replies"
    stored(node, peer, third)
    assert client.reply.take() == b"+%b\r\n" % third
    assert client.blocked == NOT_BLOCKED
    assert node.blocked_clients == 0
    assert node.queues[b"q"].jobs.count == 3


def test_what_came_behind_waits_for_its_turn() -> None:
    node, peer, _unblocked = make_node()
    client = Client(1, ReplyWriter())
    first = add(node, client, b"1")
    client.pending_adds.append(Answer(b"-ERR syntax error\r\n"))
    assert client.reply.take() == b""
    stored(node, peer, first)
    assert client.reply.take() == b"+%b\r\n-ERR syntax error\r\n" % first
    assert client.blocked == NOT_BLOCKED


def test_each_has_its_own_timeout() -> None:
    node, peer, _unblocked = make_node()
    client = Client(1, ReplyWriter())
    first = add(node, client, b"1", 5000)
    add(node, client, b"2", 100)
    node.begin_pass(1100, 10**12)
    node.advance()
    assert client.reply.take() == b""
    stored(node, peer, first)
    assert (
        client.reply.take() == b"+%b\r\n-NOREPL Timeout reached before replicating to the requested number of nodes\r\n" % first
    )
    assert client.blocked == NOT_BLOCKED
    assert [job.id for job in node.jobs if not job.flags & DELETED] == [first], "the other one is being deleted"


def test_a_client_that_goes_takes_its_unfinished_jobs_along() -> None:
    node, peer, _unblocked = make_node()
    client = Client(1, ReplyWriter())
    first = add(node, client, b"1")
    second = add(node, client, b"2")
    stored(node, peer, second)
    node.disconnect(client)
    assert client.reply.take() == b""
    assert node.find_job(first) is None
    assert node.find_job(second) is not None
    assert node.blocked_clients == 0
    assert not client.pending_adds
