"""At-most-once jobs that are on their way between two nodes when an answer is lost."""

from __future__ import annotations

from tests.core.test_pending_adds import make_node

from disqueue.core.client import Client
from disqueue.core.scheduler import HELD_ASK_MS
from disqueue.wire.frames import JobRecord, decode_records
from disqueue.wire.job_records import ASK_HELD, RELEASE, WITHDRAWN, Batch, Offer
from disqueue.wire.resp import ReplyWriter


def records_of(peer: object, kind: type) -> list[object]:
    return [record for record in peer.outbox if type(record) is kind]  # type: ignore[attr-defined]


def test_a_job_held_for_long_is_asked_about_until_there_is_an_answer() -> None:
    node, peer, _unblocked = make_node()
    sender, there, _ = make_node()
    client = Client(1, ReplyWriter())
    sender.add_job(client, b"q", b"body", 0, 1, 100, 0, 0, 0, False)
    sender.peer_wants(there, b"q", 1)
    sender.end_pass()
    (offer,) = records_of(there, Offer)
    job_id = client.reply.take()[1:-2]
    node.jobs_offered(peer, [decode(raw) for raw in offer.jobs], offer.numbers)  # type: ignore[attr-defined]
    for turn in range(1, 4):
        peer.outbox.clear()
        node.begin_pass(1000 + turn * HELD_ASK_MS, 10**12)
        node.advance()
        assert [record.ids for record in records_of(peer, Batch) if record.kind == ASK_HELD] == [[job_id]]  # type: ignore[attr-defined]
    node.receive(peer, [Batch(WITHDRAWN, [job_id], [])])
    assert len(node.jobs) == 0


def test_an_offer_without_an_answer_is_made_again() -> None:
    node, peer, _unblocked = make_node()
    client = Client(1, ReplyWriter())
    node.add_job(client, b"q", b"body", 0, 1, 100, 0, 0, 0, False)
    node.peer_wants(peer, b"q", 1)
    node.end_pass()
    assert len(records_of(peer, Offer)) == 1
    peer.outbox.clear()
    node.begin_pass(1000 + HELD_ASK_MS, 10**12)
    node.advance()
    assert len(records_of(peer, Offer)) == 1


def decode(raw: object) -> JobRecord:
    (offer,) = decode_records(b"\x91\x92\x0c\x91" + bytes(raw))  # type: ignore[call-overload]
    assert isinstance(offer, Offer)
    return offer.jobs[0]


def test_a_release_that_comes_at_last_is_taken() -> None:
    node, peer, _unblocked = make_node()
    sender, there, _ = make_node()
    client = Client(1, ReplyWriter())
    sender.add_job(client, b"q", b"body", 0, 1, 100, 0, 0, 0, False)
    sender.peer_wants(there, b"q", 1)
    sender.end_pass()
    (offer,) = records_of(there, Offer)
    job_id = client.reply.take()[1:-2]
    node.jobs_offered(peer, [decode(raw) for raw in offer.jobs], offer.numbers)  # type: ignore[attr-defined]
    node.receive(peer, [Batch(RELEASE, [job_id], [])])
    assert node.queues[b"q"].jobs.count == 1
