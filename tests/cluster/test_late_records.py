"""Records that come twice, late, or after something else has happened: one node, and what its peers say to it."""

from __future__ import annotations

from disqueue.core.job import ACTIVE, DELAYED, QUEUED
from disqueue.wire import job_records as wire

from .lone_node import LoneNode


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
