"""A clock that is cut to whole milliseconds never makes a timer fire early."""

from __future__ import annotations

import os

from disqueue.core.job import QUEUED, new_job
from disqueue.core.node import Node
from disqueue.core.settings import Settings


def test_a_timer_fires_in_the_millisecond_after_its_deadline() -> None:
    node = Node(Settings(), os.urandom, b"0" * 40)
    node.grace_ms = 1
    node.begin_pass(1000, 10**12)
    job = new_job(node.ids.make(60, 1), node.queue_named(b"q"), b"", node.next_ctime_ns())
    job.ttl_s, job.retry_s, job.delay_s = 60, 1, 2
    job.expires_ms = node.now_ms + 60_000
    job.due_ms = node.now_ms + 2000
    node.register(job)
    node.begin_life(job)
    assert node.next_deadline_ms() <= 3001
    node.begin_pass(3000, 10**12)
    node.advance()
    assert job.state != QUEUED
    node.begin_pass(3001, 10**12)
    node.advance()
    assert job.state == QUEUED
