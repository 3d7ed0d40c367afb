"""A queue: the jobs that wait for a worker, the clients that wait for a job, and figures about both."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from disqueue.core.job_list import JobList

if TYPE_CHECKING:
    from disqueue.core.client import Client
    from disqueue.core.demand import Demand

PAUSED_IN = 1
PAUSED_OUT = 2
PAUSE_NAMES = (b"none", b"in", b"out", b"all")


class Queue:
    """A queue on this node.

    The object also stands for the bare name: jobs of any state and waiting clients refer to it. Only when `visible` is the queue
    there for clients: a job was queued or delayed in it, or it was paused. An idle one becomes invisible again, and is dropped
    when nothing refers to it any more.
    """

    def __init__(self, name: bytes, now_ms: int) -> None:
        self.name = name
        self.jobs = JobList()
        self.waiters: OrderedDict[Client, None] = OrderedDict()
        self.pause = 0
        self.known_jobs = 0
        self.delayed_jobs = 0
        self.visible = False
        self.ready = False
        self.in_idle = False
        self.demand: Demand | None = None
        """Federation: which peers want jobs of this queue, and what this node has asked for; None while there is nothing."""
        self.scan_hash = 0
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        """Start the figures of a queue that has just become visible."""
        self.created_ms = now_ms
        self.used_ms = now_ms
        self.jobs_in = 0
        self.jobs_out = 0
        self.added = 0
        self.requeued = 0
        self.delivered = 0
        self.acked = 0
        self.expired = 0
        self.imported = 0
        self.exported = 0
