"""Records that come twice, late, or after something else has happened: one node, and what its peers say to it."""

from __future__ import annotations

import pytest

from disqueue.core.job import ACTIVE, DELAYED, QUEUED
from disqueue.core.peer import Peer
from disqueue.wire import job_records as wire

from .lone_node import UNKNOWN_ONCE, LoneNode


def test_an_order_to_queue_later_may_come_twice() -> None:
    one = LoneNode()
    job_id = one.replica()
    for _ in range(2):
        one.receive(one.peers[0], wire.Batch(wire.ENQUEUE, [job_id], [2000]))
        job = one.node.jobs.get(job_id)
        assert job is not None
        assert (job.state, job.flags & DELAYED) == (ACTIVE, DELAYED)
        one.let_pass(500)
    assert job.due_ms == one.now_ms + 1000, "as it was told first"
    one.let_pass(1000)
    assert job.state == QUEUED


def offer_to(one: LoneNode, peer: Peer) -> int:
    """Have the job that is queued offered to a peer; return the number of the offer."""
    one.sent()
    one.receive(peer, wire.Want(b"q", 1))
    (offer,) = [record for record in one.sent() if isinstance(record, wire.Offer)]
    return offer.numbers[0]


def said(one: LoneNode) -> list[tuple[int, list[int]]]:
    return [(record.kind, record.numbers) for record in one.sent() if isinstance(record, wire.Batch)]


def test_an_answer_to_an_earlier_offer_is_none_to_this_one() -> None:
    """The peer may have dropped what it held by that; it would be told that a job is its own which it has not got."""
    one = LoneNode()
    peer = one.peers[0]
    job_id = one.add(retry_s=0)
    first = offer_to(one, peer)
    one.lose(peer)
    one.regain(peer)
    second = offer_to(one, peer)
    assert first != second
    for kind in (wire.ACCEPT, wire.ASK_HELD):
        one.receive(peer, wire.Batch(kind, [job_id], [first]))
        assert said(one) == [], "and not that it is withdrawn: the offer under way would be dropped"
        assert one.node.jobs.get(job_id) is not None
    one.receive(peer, wire.Batch(wire.ACCEPT, [job_id], [second]))
    assert said(one) == [(wire.RELEASE, [])]
    assert one.node.jobs.get(job_id) is None


@pytest.mark.parametrize("offers", [[7], [], [1 << 46]], ids=["numbered", "by an older node", "out of range"])
def test_whoever_holds_a_job_says_by_which_offer(offers: list[int]) -> None:
    one = LoneNode()
    peer = one.peers[0]
    one.receive(peer, wire.Offer([one.record(UNKNOWN_ONCE)], [3]))
    one.sent()
    one.receive(peer, wire.Offer([one.record(UNKNOWN_ONCE)], offers))
    number = 7 if offers == [7] else 0
    assert said(one)[-1] == (wire.ACCEPT, [number])
    one.let_pass(6000)
    assert said(one) == [(wire.ASK_HELD, [number])]


@pytest.mark.parametrize("answer", [wire.KEEPS_NOT, wire.KEEPS_FOR_NOW])
def test_a_leaving_node_keeps_a_copy_that_nobody_else_keeps(answer: int) -> None:
    """Its heir may have lost it since, or leave as well."""
    one = LoneNode()
    job_id = one.replica()
    one.run(lambda: one.node.set_leaving(True))
    one.let_pass(60)
    for peer in one.peers:
        one.receive(peer, wire.Batch(wire.STORED, [job_id], []))
    for peer in one.peers:
        one.receive(peer, wire.Batch(wire.OWNERS_KNOWN, [job_id], [answer]))
    assert one.node.jobs.get(job_id) is not None


def test_a_node_that_leaves_says_that_others_must_not_count_on_it() -> None:
    one = LoneNode()
    job_id = one.replica()
    for leaving, answer in ((False, wire.KEEPS), (True, wire.KEEPS_FOR_NOW)):
        one.run(lambda leaving=leaving: one.node.set_leaving(leaving))  # type: ignore[misc]
        one.sent()
        one.receive(one.peers[0], wire.Owners([job_id, UNKNOWN_ONCE], [7, 7], True))
        assert (wire.OWNERS_KNOWN, [answer, wire.KEEPS_NOT]) in said(one)


def test_a_delayed_job_that_no_heir_takes_is_queued_when_it_was_to_be() -> None:
    one = LoneNode()
    job_id = one.add(delay_s=2)
    due_ms = one.now_ms + 2000
    one.run(lambda: one.node.set_leaving(True))
    one.let_pass(60)
    job = one.node.jobs.get(job_id)
    assert job is not None
    assert not job.flags & DELAYED, "sent to another node, which queues it"
    (heir,) = one.node.others(job.owners)
    one.receive(heir, wire.Batch(wire.REFUSED, [job_id], [wire.REFUSED_MEMORY]))
    assert (job.flags & DELAYED, job.due_ms) == (DELAYED, due_ms)
