"""Who may have a job: an acknowledgement reaches all of them, also those of whom only a third node knows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.lone_node import UNKNOWN_ID, LoneNode

from disqueue.core.acknowledgement import hash_of
from disqueue.core.forwarding import ACKJOB
from disqueue.core.job import ACKED, ACTIVE, LEASED, QUEUED
from disqueue.core.peer import Peer
from disqueue.core.scheduler import ASK_AHEAD_MS, BY_COMMAND
from disqueue.wire import job_records as wire

PEER_ITSELF, THIS_NODE = 1, 2
"""Bits in the masks of each peer of a `LoneNode`."""


def said_to(peer: Peer, job_id: bytes) -> list[int | type]:
    """Take what was said to a peer about a job."""
    said: list[int | type] = []
    for record in peer.outbox:
        if isinstance(record, wire.Batch):
            said += [record.kind] * record.ids.count(job_id)
        elif job_id in getattr(record, "ids", ()):
            said.append(type(record))
    peer.outbox = []
    return said


def copy_of(one: LoneNode, *owners: Peer) -> bytes:
    """A node that keeps a copy, made by the first of its other owners."""
    maker = owners[0]
    record = one.record(UNKNOWN_ID)
    record.owners = THIS_NODE | sum(1 << peer.slot + 1 for peer in owners)
    one.receive(maker, wire.Store([record]))
    one.sent()
    return UNKNOWN_ID


def batch(kind: int, job_id: bytes) -> Any:
    return wire.Batch(kind, [job_id], [])


def test_an_owner_that_turns_up_after_the_others_were_asked_is_asked_too() -> None:
    one = LoneNode()
    maker = one.peers[0]
    job_id = copy_of(one, maker)
    (other,) = [peer for peer in one.peers[1:] if not goes_first(one, peer, job_id)][:1]
    until_asked(one, maker, job_id)
    one.receive(other, batch(wire.WILL_QUEUE, job_id))
    assert wire.WILL_QUEUE in said_to(other, job_id), "its worker may be about to run out of time"


def test_who_asks_about_a_job_that_was_moved_on_is_asked_too() -> None:
    """It has moved it on itself, and knows where to: otherwise the job is queued here while it still waits there."""
    one = LoneNode()
    first, second, _third = one.peers
    job_id = one.add(retry_s=5)
    one.receive(first, wire.Want(b"q", 1))
    one.receive(first, batch(wire.RECEIVED, job_id))
    one.let_pass(5000 - ASK_AHEAD_MS)
    assert wire.WILL_QUEUE in said_to(first, job_id)
    one.receive(second, batch(wire.WILL_QUEUE, job_id))
    assert said_to(second, job_id) == [wire.HELD, wire.WILL_QUEUE]


def test_two_nodes_that_have_left_a_job_do_not_tell_each_other_its_owners_for_ever() -> None:
    one = LoneNode()
    peer = one.peers[0]
    one.node.left[UNKNOWN_ID] = one.peers[1].bit
    one.receive(peer, batch(wire.WILL_QUEUE, UNKNOWN_ID))
    assert said_to(peer, UNKNOWN_ID) == [wire.Owners], "it may have missed that"
    one.receive(peer, wire.Owners([UNKNOWN_ID], [PEER_ITSELF], False))
    assert said_to(peer, UNKNOWN_ID) == []


def goes_first(one: LoneNode, peer: Peer, job_id: bytes) -> bool:
    return hash_of(job_id, peer.node_id) > hash_of(job_id, one.node.node_id)


def until_asked(one: LoneNode, peer: Peer, job_id: bytes) -> None:
    """Let time pass until a peer is asked whether it has the job."""
    for _ in range(1000):
        if wire.WILL_QUEUE in said_to(peer, job_id):
            return
        one.let_pass(100)
    raise AssertionError("it was never asked")


def test_of_two_that_ask_each_other_one_stands_back() -> None:
    """Both would queue the job at the same time, and hand it out twice without any fault."""
    one = LoneNode()
    job_ids = [b"D-aaaaaaaa-" + b"%024d" % number + b"-0001" for number in range(20)]
    peer = one.peers[0]
    first_here = []
    for job_id in job_ids:
        record = one.record(job_id)
        record.owners = THIS_NODE | 1 << peer.slot + 1
        one.receive(peer, wire.Store([record]))
        until_asked(one, peer, job_id)
        one.receive(peer, batch(wire.WILL_QUEUE, job_id))
        one.let_pass(ASK_AHEAD_MS)
        job = one.node.jobs.get(job_id)
        assert (job.state == QUEUED) != goes_first(one, peer, job_id)
        first_here.append(job.state == QUEUED)
        if job.state == ACTIVE:
            until_asked(one, peer, job_id)
        one.let_pass(ASK_AHEAD_MS)
        assert job.state == QUEUED, "the peer may be gone"
    assert any(first_here)
    assert not all(first_here)


def test_a_node_that_is_asked_before_it_asks_stands_back() -> None:
    one = LoneNode()
    peer = one.peers[0]
    job_id = copy_of(one, peer)
    job = one.node.jobs.get(job_id)
    until_asked(one, peer, job_id)
    one.receive(peer, wire.Batch(wire.HELD, [job_id], [ASK_AHEAD_MS]))  # it looks again after that
    one.let_pass(ASK_AHEAD_MS - 1)
    one.receive(peer, batch(wire.WILL_QUEUE, job_id))
    until_asked(one, peer, job_id)
    assert job.due_ms > one.now_ms
    assert job.state == ACTIVE


def test_a_node_that_forgot_a_job_without_its_acknowledgement_ends_nothing() -> None:
    one = LoneNode()
    maker, other, _third = one.peers
    job_id = copy_of(one, maker, other)
    job = one.node.jobs.get(job_id)
    one.run(lambda: one.node.ack(job))
    one.receive(maker, batch(wire.DELETE, job_id))
    assert job.state == ACKED
    one.receive(other, wire.GotAck([job_id], [PEER_ITSELF]))
    assert one.node.jobs.get(job_id) is None


def test_a_node_that_knows_of_the_acknowledgement_ends_it() -> None:
    one = LoneNode()
    maker, other, _third = one.peers
    job_id = copy_of(one, maker, other)
    one.receive(maker, wire.SetAck([job_id], [PEER_ITSELF]))
    assert one.node.jobs.get(job_id).state == ACKED
    one.receive(maker, batch(wire.DELETE, job_id))
    assert one.node.jobs.get(job_id) is None


def test_a_failed_addjob_is_deleted_until_all_have_confirmed() -> None:
    one = LoneNode()
    job_id = one.add(replicate=3, timeout_ms=200)
    one.let_pass(40)
    assert one.node.find_job(job_id) is not None
    one.let_pass(200)
    asked = [peer for peer in one.peers if wire.SetAck in said_to(peer, job_id)]
    assert len(asked) == 3, "one of them only after the others had not answered"
    assert one.node.find_job(job_id) is None, "a client does not see it"
    one.receive(asked[0], wire.GotAck([job_id], [0]))
    one.receive(asked[1], batch(wire.STORED, job_id))
    one.let_pass(2000)
    assert said_to(asked[0], job_id) == []
    assert wire.SetAck in said_to(asked[1], job_id)
    for peer in asked[1:]:
        one.receive(peer, wire.GotAck([job_id], [0]))
    assert one.node.jobs.get(job_id) is None


def test_a_copy_that_comes_late_is_not_just_forgotten() -> None:
    """Whoever keeps it may be the only one that tells others of its end."""
    one = LoneNode()
    peer = one.peers[0]
    one.node.done.add(UNKNOWN_ID, one.now_ms)
    one.receive(peer, batch(wire.STORED, UNKNOWN_ID))
    assert said_to(peer, UNKNOWN_ID) == [wire.SetAck]


def test_who_had_failed_while_a_node_left_hears_of_the_others_from_it() -> None:
    one = LoneNode()
    maker, other, _third = one.peers
    job_id = copy_of(one, maker, other)
    one.node.members.reachable[:] = [maker]
    other.failed = True
    one.run(lambda: one.node.set_leaving(True))
    one.let_pass(100)
    one.receive(maker, wire.Batch(wire.OWNERS_KNOWN, [job_id], [1]))
    one.let_pass(100)
    assert one.node.jobs.get(job_id) is None
    assert wire.LEFT in said_to(maker, job_id)
    assert wire.LEFT not in said_to(other, job_id)
    other.failed = False
    one.sent()
    one.receive(other, wire.SetAck([job_id], [PEER_ITSELF | THIS_NODE]))
    (answer,) = (record for record in other.outbox if isinstance(record, wire.GotAck))
    assert answer.owners == [maker.bit | other.bit]
    one.sent()
    one.receive(other, wire.SetAck([job_id], [0]))
    (answer,) = (record for record in other.outbox if isinstance(record, wire.GotAck))
    assert answer.owners == [0], "a node that does not know the job asks everybody itself"


def test_a_leaving_node_waits_for_an_owner_whose_copy_may_be_on_its_way_when_the_job_is_acknowledged() -> None:
    """It had said that it has no copy, and was left out: the others were told that everybody knows of the acknowledgement."""
    one = LoneNode()
    maker, other, _third = one.peers
    job_id = copy_of(one, maker, other)
    one.node.members.reachable[:] = [maker, other]
    one.run(lambda: one.node.set_leaving(True))
    one.let_pass(100)
    assert one.node.departures
    one.receive(maker, wire.SetAck([job_id], [PEER_ITSELF | THIS_NODE]))
    one.receive(other, wire.Batch(wire.OWNERS_KNOWN, [job_id], [wire.KEEPS_NOT]))
    one.sent()
    one.let_pass(5000)
    assert wire.DELETE not in said_to(maker, job_id)
    assert wire.SetAck in said_to(other, job_id)


def test_an_acknowledgement_at_a_node_that_has_left_the_job_names_the_owners_that_it_knows() -> None:
    """Otherwise an owner that knows this node only takes it that all know of the acknowledgement."""
    one = LoneNode()
    heir, other, _third = one.peers
    one.node.left[UNKNOWN_ID] = heir.bit | other.bit
    client = one.client()
    one.run(lambda: one.node.id_command(client, ACKJOB, [UNKNOWN_ID]))
    (record,) = (record for record in other.outbox if isinstance(record, wire.SetAck))
    assert record.owners == [heir.bit | other.bit]


def test_a_node_that_keeps_no_copies_waits_for_the_delay_too_while_its_owners_learn_of_each_other() -> None:
    one = LoneNode()
    one.node.leaving = True
    job_id = one.add(replicate=2, retry_s=1, delay_s=5)
    one.let_pass(60)  # the third one is asked, of which the first two are not told
    for peer in one.peers:
        one.receive(peer, batch(wire.STORED, job_id))
    one.let_pass(3900)
    job = one.node.jobs.get(job_id)
    assert job is not None, "not all owners know each other"
    assert job.state == ACTIVE
    assert job.due_ms - one.now_ms > 2000


def test_a_node_that_stays_after_all_keeps_the_copies_that_it_has() -> None:
    one = LoneNode()
    maker, _other, _third = one.peers
    job_id = copy_of(one, maker)
    one.node.members.reachable[:] = [maker]
    one.run(lambda: one.node.set_leaving(True))
    one.let_pass(100)
    assert one.node.departures
    one.run(lambda: one.node.set_leaving(False))
    one.receive(maker, wire.Batch(wire.OWNERS_KNOWN, [job_id], [1]))
    one.let_pass(100)
    assert one.node.jobs.get(job_id) is not None


def test_a_worker_that_goes_on_elsewhere_takes_the_lease_along() -> None:
    one = LoneNode()
    maker, _other, _third = one.peers
    job_id = copy_of(one, maker)
    job = one.node.jobs.get(job_id)
    one.run(lambda: one.node.enqueue(job, BY_COMMAND))
    one.take()
    assert job.flags & LEASED
    one.let_pass(1000)
    one.receive(maker, batch(wire.WORKING, job_id))
    assert not job.flags & LEASED
    assert job.due_ms - one.now_ms > 5000, "later than the lease there"


@pytest.mark.parametrize("owners", [0, PEER_ITSELF])
def test_a_node_that_acknowledged_an_unknown_job_takes_no_late_copy(owners: int) -> None:
    one = LoneNode()
    client = one.client()
    one.run(lambda: one.node.id_command(client, ACKJOB, [UNKNOWN_ID]))
    for peer in one.peers:
        one.receive(peer, wire.GotAck([UNKNOWN_ID], [owners]))
    one.sent()
    one.receive(one.peers[0], wire.Store([one.record(UNKNOWN_ID)]))
    assert said_to(one.peers[0], UNKNOWN_ID) == [wire.REFUSED]
    assert one.node.jobs.get(UNKNOWN_ID) is None


def test_a_node_that_left_a_job_and_is_sent_it_again_is_an_owner_again() -> None:
    one = LoneNode()
    maker, _other, _third = one.peers
    job_id = copy_of(one, maker)
    job = one.node.jobs.get(job_id)
    one.run(lambda: one.node.enqueue(job, BY_COMMAND))
    one.receive(maker, wire.Want(b"q", 1))
    assert wire.HANDOFF in said_to(maker, job_id)
    one.receive(maker, batch(wire.LEFT, job_id))
    assert job.owners == 1
    one.receive(maker, batch(wire.MISSING, job_id))
    assert any(isinstance(record, wire.Move) for record in maker.outbox)
    assert job.owners == 1 | maker.bit
