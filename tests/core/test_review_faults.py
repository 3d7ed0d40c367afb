"""Faults, hostile sizes and releases to come cost what they touch and nothing else."""

from __future__ import annotations

import pytest
from tests.cluster.lone_node import UNKNOWN_ID, LoneNode
from tests.journal.support import NODE_ID, new_server

from disqueue.core import forwarding
from disqueue.core.client import NOT_BLOCKED, Client
from disqueue.core.delivery import MAX_JOBS_A_REPLY, MAX_REPLY_BYTES
from disqueue.core.job import ACKED, ACTIVE, PLACEHOLDER, QUEUED
from disqueue.core.journal_port import JournalPort
from disqueue.wire import job_records as wire
from disqueue.wire.bus import decode_frame, encode_frames


def batch(kind: int, job_id: bytes, *numbers: int) -> wire.Batch:
    return wire.Batch(kind, [job_id], list(numbers))


def id_number(number: int) -> bytes:
    return b"D-aaaaaaaa-%024d-0000" % number


# -- timers


def test_a_fault_in_one_timer_costs_no_other_one() -> None:
    one = LoneNode()
    client = one.client()
    ids = [one.add(delay_s=5) for _ in range(3)]
    one.run(lambda: one.node.get_jobs(client, [b"other"], 1, 5000, False, False))
    ids += [one.add(delay_s=5) for _ in range(3)]

    def fail(_client: Client) -> None:
        raise ConnectionError

    one.node.on_unblock = fail
    one.now_ms += 5001
    with pytest.raises(ConnectionError):
        one.run(lambda: None)
    one.let_pass(2000)
    jobs = [one.node.jobs.get(job_id) for job_id in ids]
    assert [job.state for job in jobs if job is not None] == [QUEUED] * 6


def test_a_job_that_an_earlier_timer_of_the_same_turn_deleted_is_left_alone() -> None:
    one = LoneNode()
    first, second = one.add(delay_s=5), one.add(delay_s=5)
    jobs = [one.node.jobs.get(first), one.node.jobs.get(second)]
    for due in one.node.timers.pop_due(one.now_ms + 60_000, 1000):
        if due in jobs:
            one.node.delete(due)
            one.node.timer_fired(due)
    one.check()


# -- sizes


def test_more_ids_than_a_record_holds_are_refused_with_the_limit() -> None:
    one = LoneNode()
    client = one.client()
    ids = [id_number(number) for number in range(wire.MAX_BATCH + 1)]
    one.run(lambda: one.node.id_command(client, forwarding.NACK, ids))
    assert client.reply.take().startswith(b"-ERR ")
    assert client.blocked == NOT_BLOCKED
    one.run(lambda: one.node.id_command(client, forwarding.NACK, ids[:-1]))
    for frame in encode_frames(one.sent()):
        decode_frame(frame[4:])


def test_one_reply_holds_a_bounded_number_of_jobs() -> None:
    one = LoneNode()
    client = one.client()
    for _ in range(MAX_JOBS_A_REPLY + 1):
        one.node.add_job(client, b"q", b"", 0, 1, 60, 5, 0, 0, False)
    client.reply.take()
    one.run(lambda: one.node.get_jobs(client, [b"q"], 1 << 40, 0, True, False))
    assert client.reply.take().startswith(b"*%d\r\n" % MAX_JOBS_A_REPLY)
    assert len(one.node.queues[b"q"].jobs) == 1


@pytest.mark.parametrize("names", [[b"q"], [b"q", b"other"]])
def test_one_reply_holds_bodies_up_to_a_limit_and_one_more(names: list[bytes]) -> None:
    one = LoneNode()
    client = one.client()
    body = bytes(MAX_REPLY_BYTES // 4 + 1)
    for _ in range(6):
        one.node.add_job(client, b"q", body, 0, 1, 60, 5, 0, 0, False)
    client.reply.take()
    one.run(lambda: one.node.get_jobs(client, names, 100, 0, True, False))
    assert client.reply.take().startswith(b"*4\r\n")


# -- commands of other nodes


@pytest.mark.parametrize("verb", [0, 8, 99, 0xFFFF])
def test_a_command_of_a_later_release_does_nothing_to_a_job(verb: int) -> None:
    one = LoneNode()
    job_id = one.add()
    one.receive(one.peers[0], wire.Forward(7, verb, [job_id]))
    job = one.node.jobs.get(job_id)
    assert job is not None
    assert job.state == QUEUED
    answers = [record for record in one.sent() if isinstance(record, wire.Answer)]
    assert [answer.results for answer in answers] == [[forwarding.UNKNOWN]]


@pytest.mark.parametrize("verb", [forwarding.ACKJOB, forwarding.DELJOB, forwarding.FASTACK])
def test_an_acknowledgement_from_another_node_is_not_taken_when_it_could_not_be_kept(verb: int) -> None:
    one = LoneNode()
    job_id = one.add()
    one.node.journal = JournalPort()
    one.node.journal.error = "disk full"
    one.node.journal.always_synced = True
    one.receive(one.peers[0], wire.Forward(7, verb, [job_id]))
    job = one.node.jobs.get(job_id)
    assert job is not None
    assert job.state == QUEUED
    assert [record.results for record in one.sent() if isinstance(record, wire.Answer)] == [[forwarding.UNKNOWN]]


# -- what is over


@pytest.mark.parametrize("kind", [wire.WILL_QUEUE, wire.QUEUED, wire.WORKING])
def test_an_owner_that_missed_the_end_of_a_job_hears_of_it_when_it_asks(kind: int) -> None:
    one = LoneNode()
    one.receive(one.peers[0], batch(wire.DELETE, UNKNOWN_ID))
    one.sent()
    one.receive(one.peers[1], batch(kind, UNKNOWN_ID, *([0] if kind == wire.QUEUED else [])))
    assert [record.ids for record in one.sent() if isinstance(record, wire.SetAck)] == [[UNKNOWN_ID]]


def test_the_maker_of_a_job_hears_that_it_is_over_also_when_this_node_did_not_know_of_its_copy() -> None:
    one = LoneNode()
    one.receive(one.peers[0], wire.Store([one.record(UNKNOWN_ID)]), batch(wire.LEFT, UNKNOWN_ID))
    client = one.client()
    one.run(lambda: one.node.id_command(client, forwarding.ACKJOB, [UNKNOWN_ID]))
    one.sent()
    one.receive(one.peers[0], batch(wire.WILL_QUEUE, UNKNOWN_ID))
    assert [record.ids for record in one.sent() if isinstance(record, wire.SetAck)] == [[UNKNOWN_ID]]


def test_the_owner_that_hears_of_it_does_not_deliver_the_job_again() -> None:
    one = LoneNode()
    one.replica()
    one.receive(one.peers[0], wire.SetAck([UNKNOWN_ID], [0]))
    one.let_pass(30_000)
    assert one.node.queued_jobs == 0
    assert one.node.jobs.get(UNKNOWN_ID) is None


# -- restarts


def test_the_acknowledgement_of_an_unknown_job_survives_a_restart() -> None:
    server = new_server()
    server.node.make_placeholder(UNKNOWN_ID)
    server.run_pass()
    again = server.restarted()
    job = again.node.jobs.get(UNKNOWN_ID)
    assert job is not None
    assert (job.state, job.flags & PLACEHOLDER, again.node.placeholders) == (ACKED, PLACEHOLDER, 1)


def test_the_clock_of_another_node_does_not_date_the_jobs_of_this_one_after_a_restart() -> None:
    server = new_server()
    wall_ms = server.node.wall_ms
    foreign = LoneNode()
    record = foreign.record(UNKNOWN_ID)
    record.ctime_ns = (wall_ms + 365 * 86_400_000) * 1_000_000
    peer = server.node.members._make_member(b"b" * 40)
    server.node.receive(peer, [wire.Store([record])])
    own = server.add()
    server.run_pass()
    again = server.restarted(after_ms=1000)
    assert own[2:10] == NODE_ID[:8]
    job = again.node.jobs.get(again.add())
    assert job is not None
    assert job.state in (ACTIVE, QUEUED)
    assert abs(job.ctime_ns // 1_000_000 - again.node.wall_ms) < 10_000


def test_a_node_that_has_left_a_job_is_no_owner_after_a_restart_either() -> None:
    server = new_server()
    peer = server.node.members._make_member(b"b" * 40)
    server.node.receive(peer, [wire.Store([LoneNode().record(UNKNOWN_ID)])])
    server.run_pass()
    server.node.receive(peer, [batch(wire.LEFT, UNKNOWN_ID)])
    server.run_pass()
    again = server.restarted()
    job = again.node.jobs.get(UNKNOWN_ID)
    assert job is not None
    assert job.owners == 1, "its acknowledgement would wait for the node that has left"


# -- jobs that are delivered at most once


def test_work_elsewhere_does_not_take_an_at_most_once_job_out_of_its_queue() -> None:
    one = LoneNode()
    job_id = one.add(retry_s=0)
    one.receive(one.peers[0], batch(wire.WORKING, job_id))
    job = one.node.jobs.get(job_id)
    assert job is not None
    assert job.state == QUEUED, "nothing would bring it back"


def test_what_is_between_two_nodes_cannot_be_given_back() -> None:
    one = LoneNode()
    job_id = one.add(retry_s=0)
    one.receive(one.peers[0], wire.Want(b"q", 1))
    client = one.client()
    one.run(lambda: one.node.id_command(client, forwarding.NACK, [job_id]))
    assert client.reply.take() == b":0\r\n"


def test_two_clients_that_acknowledge_the_same_unknown_job_are_both_answered_when_its_owner_is_found() -> None:
    one = LoneNode()
    first, second = one.client(), one.client()
    for client in (first, second):
        one.run(lambda client=client: one.node.id_command(client, forwarding.ACKJOB, [UNKNOWN_ID]))
    one.receive(one.peers[0], wire.GotAck([UNKNOWN_ID], [1]))
    assert (first.blocked, second.blocked) == (NOT_BLOCKED, NOT_BLOCKED)
    assert first.reply.take() == second.reply.take() == b":1\r\n"


def test_a_job_whose_id_was_answered_is_not_given_up_because_its_queue_is_paused_elsewhere() -> None:
    one = LoneNode()
    one.run(lambda: one.node.set_leaving(True))
    job_id = one.add(replicate=3, asynchronous=1)
    one.receive(one.peers[0], batch(wire.STORED, job_id))
    for peer in one.peers[1:]:
        one.receive(peer, batch(wire.REFUSED, job_id, wire.REFUSED_PAUSED))
    assert one.node.jobs.get(job_id) is not None
    one.sent()
    one.let_pass(5000)
    assert any(isinstance(record, wire.Store) for record in one.sent()), "the pause may have ended: they are asked again"
    for peer in one.peers[1:]:
        one.receive(peer, batch(wire.STORED, job_id))
    assert any(record.kind == wire.ENQUEUE for record in one.sent() if isinstance(record, wire.Batch))


def test_a_copy_that_a_leaving_node_passes_on_still_waits_for_the_delay() -> None:
    one = LoneNode()
    record = one.record(UNKNOWN_ID)
    record.delay_s, record.wait_ms = 20, 20_000
    one.receive(one.peers[0], wire.Store([record]))
    one.let_pass(1000)
    one.run(lambda: one.node.set_leaving(True))
    one.let_pass(100)
    frame = encode_frames([sent for sent in one.sent() if isinstance(sent, wire.Store)])[0]
    (store,) = decode_frame(frame[4:])
    assert isinstance(store, wire.Store)
    assert 18_000 <= store.jobs[0].wait_ms <= 20_000


def test_a_job_that_is_acknowledged_where_it_was_moved_to_is_answered_once() -> None:
    one = LoneNode()
    for received in (True, False):
        one.receive(one.peers[0], wire.Want(b"q", 1))
        job = one.add()
        if received:
            one.receive(one.peers[0], wire.Batch(wire.RECEIVED, [job], []))
        one.sent()
        one.receive(one.peers[0], wire.SetAck([job], [3]))
        kinds = [type(record) for record in one.sent() if job in getattr(record, "ids", ())]
        # While the job is on its way the acknowledgement follows it.
        assert kinds == ([wire.GotAck] if received else [wire.SetAck, wire.GotAck])
        one.receive(one.peers[0], wire.Batch(wire.DELETE, [job], []))


def test_a_late_refusal_does_not_hide_that_a_later_request_may_have_been_granted() -> None:
    """The acknowledgement went to all owners but the one whose refusal had come, and whose consent was still on its way."""
    one = LoneNode()
    job_id = one.add(replicate=2)
    job = one.node.jobs.get(job_id)
    assert job is not None
    for peer in one.peers[1:]:
        one.lose(peer)
    peer = one.peers[0]
    one.let_pass(3000)
    assert sum(len(record.jobs) for record in peer.outbox if isinstance(record, wire.Store)) > 1
    one.receive(peer, batch(wire.REFUSED, job_id, wire.REFUSED_MEMORY))
    assert job.owners & peer.bit
    one.receive(peer, batch(wire.STORED, job_id))
    assert job.state == QUEUED


def test_a_node_that_refuses_again_and_again_is_no_owner() -> None:
    one = LoneNode()
    job_id = one.add(replicate=2)
    job = one.node.jobs.get(job_id)
    assert job is not None
    for peer in one.peers[1:]:
        one.lose(peer)
    peer = one.peers[0]
    one.let_pass(3000)
    one.receive(peer, batch(wire.REFUSED, job_id, wire.REFUSED_MEMORY))
    one.receive(peer, batch(wire.REFUSED, job_id, wire.REFUSED_MEMORY))
    assert not job.owners & peer.bit
    for _ in range(5):  # each is answered before the next
        peer.outbox.clear()
        while not any(isinstance(record, wire.Store) for record in peer.outbox):
            one.let_pass(50)
        one.receive(peer, batch(wire.REFUSED, job_id, wire.REFUSED_MEMORY))
    assert not job.owners & peer.bit
