"""While the journal cannot be written: what the core holds back, and that it goes on by itself afterwards."""

from __future__ import annotations

import errno

from disqueue.core.client import BLOCKED_GETJOB, NOT_BLOCKED, Client
from disqueue.wire.resp import ReplyWriter
from tests.journal.support import Server, new_server


def broken(server: Server) -> Server:
    """Let the next write fail, and the pass end in which that is found out."""
    server.disk.failing["write"] = errno.ENOSPC
    server.node.set_pause(b"other", 1, False)
    server.run_pass()
    assert server.runtime.error
    return server


def heal(server: Server) -> None:
    server.disk.failing.clear()
    server.idle(passes=5)
    assert server.runtime.error == ""


def test_at_least_once_jobs_are_handed_out_all_the_same() -> None:
    server = new_server()
    job_id = server.add()
    broken(server)

    assert server.get() == [job_id]


def test_at_most_once_jobs_stay_until_their_leaving_can_be_written() -> None:
    server = new_server()
    job_id = server.add(retry_s=0)
    broken(server)

    assert server.get() == []
    assert server.queued() == [job_id]
    heal(server)
    assert server.get() == [job_id]


def test_a_client_that_waited_is_served_when_the_disk_has_healed() -> None:
    server = new_server()
    broken(server)
    waiter = Client(2, ReplyWriter())
    server.node.get_jobs(waiter, [b"q"], 1, 0, False, False)
    server.add(retry_s=0)
    server.run_pass()
    assert waiter.blocked == BLOCKED_GETJOB
    heal(server)

    assert waiter.blocked == NOT_BLOCKED
    assert waiter.reply.size


def test_the_error_is_told_once_and_its_end_too() -> None:
    told: list[str] = []
    server = new_server()
    server.runtime.on_error = told.append
    broken(server)
    server.idle(passes=5)
    heal(server)

    assert len(told) == 2
    assert "No space left" in told[0]
    assert told[1] == ""
