"""A job that another owner may have queued while its node was down: the owners are asked before it is handed out."""

from __future__ import annotations

from typing import Any

from disqueue.core.job import ACTIVE, DELAYED, QUEUED
from disqueue.wire import job_records as wire
from tests.cluster.lone_node import UNKNOWN_ID, LoneNode
from tests.journal.support import Server, new_server

PEER_ID = b"b" * 40
RETRY_MS = 5000


def add_peer(server: Server) -> Any:
    peer = server.node.members._make_member(PEER_ID)
    peer.link_up = peer.reachable = True
    server.node.members.reachable.append(peer)
    server.node.link_up(peer)
    return peer


def kinds(peer: Any) -> list[int]:
    return [record.kind for record in peer.outbox if isinstance(record, wire.Batch) and UNKNOWN_ID in record.ids]


def with_a_job(delay_s: int = 0) -> Server:
    """Return a server that has a job queued, or delayed, which a peer owns too."""
    server = new_server()
    peer = add_peer(server)
    record = LoneNode().record(UNKNOWN_ID)
    record.wait_ms, record.delay_s = delay_s * 1000, delay_s
    if delay_s:
        server.node.receive(peer, [wire.Store([record])])
        server.node.receive(peer, [wire.Batch(wire.ENQUEUE, [UNKNOWN_ID], [delay_s * 1000])])
    else:
        server.node.receive(peer, [wire.Move([record])])
    server.run_pass()
    job = server.node.jobs.get(UNKNOWN_ID)
    assert job is not None
    assert job.flags & DELAYED if delay_s else job.state == QUEUED
    return server


def test_a_queued_job_waits_for_the_owners_after_a_long_time_down() -> None:
    again = with_a_job().restarted(after_ms=RETRY_MS)
    assert again.queued() == []
    peer = add_peer(again)
    again.idle(passes=10, milliseconds=150)
    assert kinds(peer) == [wire.WILL_QUEUE]
    again.node.receive(peer, [wire.Batch(wire.HELD, [UNKNOWN_ID], [60_000])])
    again.idle(passes=10, milliseconds=150)
    assert again.queued() == []


def test_it_is_queued_when_no_owner_has_it() -> None:
    again = with_a_job().restarted(after_ms=RETRY_MS)
    add_peer(again)
    again.idle(passes=8, milliseconds=250)
    assert again.queued() == [UNKNOWN_ID]


def test_a_queued_job_is_there_at_once_after_a_short_time_down() -> None:
    assert with_a_job().restarted(after_ms=RETRY_MS - 2000).queued() == [UNKNOWN_ID]


def test_a_job_that_no_other_node_owns_is_there_at_once() -> None:
    server = new_server()
    add_peer(server)
    job_id = server.add(retry_s=5)
    server.run_pass()
    assert server.restarted(after_ms=RETRY_MS).queued() == [job_id]


def test_a_lease_that_ended_meanwhile_is_not_taken_up_before_the_owners_are_asked() -> None:
    server = with_a_job()
    assert server.get() == [UNKNOWN_ID]
    server.run_pass()
    again = server.restarted(after_ms=RETRY_MS + 1000)
    peer = add_peer(again)
    again.run_pass()
    assert again.queued() == []
    again.idle(passes=10, milliseconds=150)
    assert kinds(peer) == [wire.WILL_QUEUE]


def test_a_lease_that_runs_on_is_kept() -> None:
    server = with_a_job()
    assert server.get() == [UNKNOWN_ID]
    server.run_pass()
    again = server.restarted(after_ms=1000)
    peer = add_peer(again)
    again.node.receive(peer, [wire.Batch(wire.WILL_QUEUE, [UNKNOWN_ID], [])])
    assert kinds(peer) == [wire.HELD]


def test_a_lease_that_ends_before_the_owners_can_be_asked_runs_on_until_then() -> None:
    server = with_a_job()
    assert server.get() == [UNKNOWN_ID]
    server.run_pass()
    again = server.restarted(after_ms=RETRY_MS - 1000)
    peer = add_peer(again)
    again.node.receive(peer, [wire.Move([LoneNode().record(UNKNOWN_ID)])])
    again.run_pass()
    assert again.queued() == [], "its worker may still be at work"
    again.idle(passes=10, milliseconds=250)
    assert again.queued() == [UNKNOWN_ID]


def test_a_delayed_job_is_queued_when_its_delay_has_passed_and_nobody_can_have_taken_over() -> None:
    again = with_a_job(delay_s=10).restarted(after_ms=11_000)
    job = again.node.jobs.get(UNKNOWN_ID)
    assert job is not None
    assert (job.state, bool(job.flags & DELAYED)) == (ACTIVE, True)
    again.run_pass()
    assert again.queued() == [UNKNOWN_ID]


def test_a_delayed_job_waits_for_the_owners_when_they_may_have_taken_over() -> None:
    again = with_a_job(delay_s=10).restarted(after_ms=10_000 + RETRY_MS)
    peer = add_peer(again)
    again.run_pass()
    assert again.queued() == []
    again.idle(passes=10, milliseconds=150)
    assert kinds(peer) == [wire.WILL_QUEUE]
