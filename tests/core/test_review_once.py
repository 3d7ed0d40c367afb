"""At-most-once jobs on their way between two nodes: never on both, and never on neither for longer than it takes to ask."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.lone_node import UNKNOWN_ONCE, LoneNode
from tests.journal.support import Server, new_server

from disqueue.core import offers
from disqueue.core.job import ACTIVE, HELD, QUEUED
from disqueue.core.journal_port import JournalPort
from disqueue.wire import job_records as wire

PEER_ID = b"b" * 40


def kinds(records: list[Any], job_id: bytes) -> list[int | type]:
    """What was said about a job: kinds of batches, and types of other records."""
    said: list[int | type] = []
    for record in records:
        if isinstance(record, wire.Batch):
            said += [record.kind] * record.ids.count(job_id)
        elif isinstance(record, wire.Offer):
            said.append(wire.Offer)
    return said


def batch(kind: int, job_id: bytes) -> wire.Batch:
    return wire.Batch(kind, [job_id], [])


def offered(one: LoneNode) -> bytes:
    job_id = one.add(retry_s=0)
    one.receive(one.peers[0], wire.Want(b"q", 1))
    assert kinds(one.sent(), job_id) == [wire.Offer]
    return job_id


def test_an_answer_that_was_lost_does_not_keep_the_job_between_the_nodes() -> None:
    one = LoneNode()
    peer = one.peers[0]
    job_id = offered(one)
    one.run(lambda: one.node.incoming_up(peer))
    assert kinds(one.sent(), job_id) == [wire.Offer]
    one.receive(peer, batch(wire.ASK_HELD, job_id))
    assert kinds(one.sent(), job_id) == [wire.RELEASE]
    assert one.node.jobs.get(job_id) is None
    one.receive(peer, batch(wire.ACCEPT, job_id))
    assert kinds(one.sent(), job_id) == [wire.RELEASE]


def test_the_receiver_asks_again_when_the_sender_comes_on_a_new_link() -> None:
    one = LoneNode()
    peer = one.peers[0]
    one.receive(peer, wire.Offer([one.record(UNKNOWN_ONCE)]))
    one.sent()
    one.run(lambda: one.node.incoming_up(peer))
    assert kinds(one.sent(), UNKNOWN_ONCE) == [wire.ASK_HELD]


def test_an_offer_of_a_job_that_is_here_already_is_answered() -> None:
    one = LoneNode()
    peer = one.peers[0]
    for _ in range(2):
        one.receive(peer, wire.Offer([one.record(UNKNOWN_ONCE)]))
    one.receive(peer, batch(wire.RELEASE, UNKNOWN_ONCE))
    one.sent()
    one.receive(peer, wire.Offer([one.record(UNKNOWN_ONCE)]))
    assert kinds(one.sent(), UNKNOWN_ONCE) == [wire.ACCEPT], "otherwise the sender would keep it back for ever"


def test_what_was_released_long_ago_is_not_released_by_a_new_link() -> None:
    one = LoneNode()
    peer = one.peers[0]
    job_id = offered(one)
    one.receive(peer, batch(wire.ACCEPT, job_id))  # its RELEASED is lost
    one.receive(peer, wire.Offer([one.record(job_id)]), batch(wire.RELEASE, job_id))
    one.receive(peer, wire.Want(b"q", 1))
    one.sent()
    one.lose(peer)
    job = one.node.jobs.get(job_id)
    assert job is not None
    assert job.state == QUEUED
    one.run(lambda: one.regain(peer))
    assert wire.RELEASE not in kinds(one.sent(), job_id), "the peer still holds the second offer: both would deliver"


def test_what_a_forgotten_node_offered_is_kept_in_case_it_comes_back() -> None:
    one = LoneNode()
    peer = one.peers[0]
    one.receive(peer, wire.Offer([one.record(UNKNOWN_ONCE)]))
    one.lose(peer)
    one.forget(peer)
    assert one.node.jobs.get(UNKNOWN_ONCE) is not None, "it may have been released on the link that was cut"
    one.run(lambda: one.regain(peer))
    assert wire.ASK_HELD in kinds(peer.outbox, UNKNOWN_ONCE)


def test_nothing_is_accepted_that_the_journal_could_not_keep() -> None:
    one = LoneNode()
    peer = one.peers[0]
    one.node.journal = JournalPort()
    one.node.journal.error = "disk full"
    one.receive(peer, wire.Offer([one.record(UNKNOWN_ONCE)]))
    assert kinds(one.sent(), UNKNOWN_ONCE) == [wire.MISSING]
    assert one.node.jobs.get(UNKNOWN_ONCE) is None


def test_at_most_once_jobs_that_cannot_be_handed_out_do_not_hold_up_the_others() -> None:
    one = LoneNode()
    first = one.add(retry_s=0)
    expired = one.add(ttl_s=1)
    second = one.add(retry_s=0)
    third = one.add()
    one.now_ms += 2000
    one.node.journal = journal = JournalPort()
    journal.error = "disk full"
    states = {}
    for _ in range(2):
        one.take()
        states = {job.id: job.state for job in one.node.jobs}
        assert states == {first: QUEUED, second: QUEUED, third: ACTIVE}
    assert expired not in states
    journal.error = ""
    one.take()
    assert one.node.jobs.get(second).state == QUEUED, "they come in their order"
    one.take()
    assert one.node.jobs.get(second).state == ACTIVE


def test_an_offer_that_is_refused_is_taken_back() -> None:
    one = LoneNode()
    job_id = offered(one)
    one.receive(one.peers[0], batch(wire.MISSING, job_id))
    job = one.node.jobs.get(job_id)
    assert job is not None
    assert job.state == QUEUED
    assert kinds(one.sent(), job_id) == [], "it is not offered again and again"


def test_a_delayed_job_that_is_taken_back_waits_for_its_delay() -> None:
    one = LoneNode()
    one.run(lambda: one.node.set_leaving(True))
    job_id = one.add(retry_s=0, delay_s=5)
    job = one.node.jobs.get(job_id)
    assert job is not None
    assert job.flags & HELD
    one.node.members.reachable.clear()
    for peer in one.peers:
        one.lose(peer)
    assert job.state != QUEUED
    one.let_pass(4000)
    assert job.state != QUEUED
    one.let_pass(2000)
    assert job.state == QUEUED
    one.check()


def test_a_leaving_node_without_others_refuses_an_at_most_once_job() -> None:
    one = LoneNode()
    one.run(lambda: one.node.set_leaving(True))
    one.node.members.reachable.clear()
    client = one.client()
    one.run(lambda: one.node.add_job(client, b"q", b"body", 0, 1, 60, 0, 0, 0, False))
    assert client.reply.take().startswith(b"-NOREPL")
    assert len(one.node.jobs) == 0
    one.check()


def test_an_acknowledgement_of_an_earlier_offer_reaches_the_node_that_has_the_job_now() -> None:
    """A node that held it heard of the acknowledgement while its link was broken: the job had gone to another one since."""
    one = LoneNode()
    first, second = one.peers[:2]
    job_id = one.add(retry_s=0)
    one.receive(first, wire.Want(b"q", 1))
    one.lose(first)
    one.receive(second, wire.Want(b"q", 1))
    one.receive(second, batch(wire.ACCEPT, job_id))
    one.receive(second, batch(wire.RELEASED, job_id))
    one.run(lambda: one.regain(first))
    one.sent()
    one.receive(first, wire.SetAck([job_id], [3]))
    (answer,) = [record for record in one.sent() if isinstance(record, wire.GotAck)]
    assert answer.owners == [second.bit]


def test_jobs_that_were_given_up_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offers, "MAX_GIVEN", 2)
    one = LoneNode()
    ids = [one.add(retry_s=0) for _ in range(3)]
    for job_id in ids:
        one.receive(one.peers[0], wire.Want(b"q", 1))
        one.receive(one.peers[0], batch(wire.ACCEPT, job_id))
    assert list(one.node.given) == ids[1:]


# -- restarts


def add_peer(server: Server, node_id: bytes = PEER_ID) -> Any:
    members = server.node.members
    peer = members._make_member(node_id)
    peer.link_up = peer.reachable = True
    if peer not in members.reachable:
        members.reachable.append(peer)
    server.node.link_up(peer)
    return peer


def said(server: Server, peer: Any, job_id: bytes) -> list[int | type]:
    server.run_pass()
    records, peer.outbox = peer.outbox, []
    return kinds(records, job_id)


def test_a_sender_that_restarts_has_the_job_that_it_had_only_offered() -> None:
    server = new_server()
    peer = add_peer(server)
    job_id = server.add(retry_s=0)
    server.node.receive(peer, [wire.Want(b"q", 1)])
    assert said(server, peer, job_id) == [wire.Offer]
    job = server.node.jobs.get(job_id)
    assert job is not None
    assert job.flags & HELD
    again = server.restarted()
    assert again.queued() == [job_id]
    peer = add_peer(again)
    again.node.receive(peer, [batch(wire.ASK_HELD, job_id)])
    assert said(again, peer, job_id) == [wire.WITHDRAWN]


def test_a_sender_that_restarts_keeps_the_delay_of_a_job_that_it_had_only_offered() -> None:
    server = new_server()
    peer = add_peer(server)
    server.node.set_leaving(True)
    job_id = server.add(retry_s=0, delay_s=5)
    assert said(server, peer, job_id) == [wire.Offer]
    again = server.restarted(after_ms=1000)
    assert again.queued() == []
    assert again.node.delayed_jobs == 1
    again.idle(passes=20, milliseconds=300)
    assert again.queued() == [job_id]


def test_a_receiver_that_restarts_keeps_a_delayed_job_that_was_released_to_it() -> None:
    server = new_server()
    peer = add_peer(server)
    record = LoneNode().record(UNKNOWN_ONCE)
    record.wait_ms = 5000
    server.node.receive(peer, [wire.Offer([record])])
    assert said(server, peer, UNKNOWN_ONCE) == [wire.ACCEPT]
    server.node.receive(peer, [batch(wire.RELEASE, UNKNOWN_ONCE)])
    assert said(server, peer, UNKNOWN_ONCE) == [wire.RELEASED]
    again = server.restarted(after_ms=1000)
    assert again.node.delayed_jobs == 1
    peer = add_peer(again)
    again.node.receive(peer, [batch(wire.WITHDRAWN, UNKNOWN_ONCE)])
    assert said(again, peer, UNKNOWN_ONCE) == []
    again.idle(passes=20, milliseconds=300)
    assert again.queued() == [UNKNOWN_ONCE]


def test_a_receiver_that_restarts_asks_about_the_job_that_it_holds() -> None:
    server = new_server()
    peer = add_peer(server)
    server.node.receive(peer, [wire.Offer([LoneNode().record(UNKNOWN_ONCE)])])
    assert said(server, peer, UNKNOWN_ONCE) == [wire.ACCEPT]
    again = server.restarted()
    assert again.queued() == []
    peer = add_peer(again)
    assert said(again, peer, UNKNOWN_ONCE) == [wire.ASK_HELD]
    again.node.receive(peer, [batch(wire.RELEASE, UNKNOWN_ONCE)])
    assert said(again, peer, UNKNOWN_ONCE) == [wire.RELEASED]
    assert again.queued() == [UNKNOWN_ONCE]


def test_a_receiver_that_restarts_asks_the_one_that_offered_the_job_last() -> None:
    """A node killed within one way of the release asked the one before, who had given the job to another, and dropped it."""
    server = new_server()
    first, second = add_peer(server), add_peer(server, b"c" * 40)
    record = LoneNode().record(UNKNOWN_ONCE)
    server.node.receive(first, [wire.Offer([record])])
    assert said(server, first, UNKNOWN_ONCE) == [wire.ACCEPT]
    server.node.receive(second, [wire.Offer([record])])
    assert said(server, second, UNKNOWN_ONCE) == [wire.ACCEPT]
    again = server.restarted()
    first, second = add_peer(again), add_peer(again, b"c" * 40)
    assert said(again, first, UNKNOWN_ONCE) == []
    assert said(again, second, UNKNOWN_ONCE) == [wire.ASK_HELD]


def test_a_held_job_does_not_change_hands_while_the_journal_cannot_say_so() -> None:
    one = LoneNode()
    first, second = one.peers[:2]
    one.receive(first, wire.Offer([one.record(UNKNOWN_ONCE)]))
    one.sent()
    one.node.journal = JournalPort()
    one.node.journal.error = "disk full"
    one.receive(second, wire.Offer([one.record(UNKNOWN_ONCE)]))
    assert kinds(one.sent(), UNKNOWN_ONCE) == [wire.MISSING]
    assert UNKNOWN_ONCE in one.node.jobs_of(first).held
