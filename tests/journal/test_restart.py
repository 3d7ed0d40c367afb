"""A restart changes nothing: what a queue, a lease and an acknowledgement are, they stay."""

from __future__ import annotations

from tests.journal.support import new_server


def test_queued_jobs_are_queued_again_in_their_order() -> None:
    server = new_server()
    ids = [server.add() for _ in range(5)]
    server.run_pass()

    again = server.restarted()

    assert ids == again.queued()
    assert server.state() == again.state()


def test_a_job_that_came_and_went_in_one_pass_leaves_no_trace() -> None:
    server = new_server()
    server.run_pass()
    written = server.disk.written_bytes
    server.ack(server.add())
    server.run_pass()

    assert written == server.disk.written_bytes


def test_a_delay_keeps_its_end() -> None:
    server = new_server()
    server.add(delay_s=5)
    server.run_pass()

    again = server.restarted(after_ms=2000)

    assert again.queued() == []
    again.idle(passes=11, milliseconds=300)
    assert len(again.queued()) == 1


def test_a_lease_ends_when_it_would_have_ended() -> None:
    server = new_server()
    job_id = server.add(retry_s=10)
    assert [job_id] == server.get()
    server.run_pass()

    again = server.restarted(after_ms=4000)

    assert again.queued() == []
    assert server.state() == again.state()
    again.idle(passes=21)
    assert [job_id] == again.queued()


def test_an_at_most_once_job_survives_until_it_is_handed_out() -> None:
    server = new_server()
    server.add(retry_s=0)
    server.run_pass()
    server = server.restarted()
    assert len(server.queued()) == 1
    server.get()
    server.run_pass()

    assert server.restarted().state() == {}


def test_an_acknowledged_job_is_gone() -> None:
    server = new_server()
    job_id = server.add()
    server.run_pass()
    server.ack(job_id)
    server.run_pass()

    assert server.restarted().state() == {}


def test_a_pause_stays() -> None:
    server = new_server()
    server.node.set_pause(b"q", 3, False)
    server.node.set_pause(b"r", 1, False)
    server.run_pass()
    server.node.set_pause(b"r", 0, False)
    server.run_pass()

    again = server.restarted()

    assert {name: queue.pause for name, queue in again.node.queues.items() if queue.pause} == {b"q": 3}
