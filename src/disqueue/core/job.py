"""One job, and the states it goes through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from disqueue.core.timers import Timed

if TYPE_CHECKING:
    from disqueue.core.copying import Copying
    from disqueue.core.queue import Queue

WAIT_REPL = 0
"""Its producer waits for the copies."""
ACTIVE = 1
"""Known but not queued: a replica, delayed, or out with a worker."""
QUEUED = 2
ACKED = 3
"""Acknowledged; kept until every owner knows."""
GONE = 4
"""No longer registered; somebody may still hold the object."""

STATE_NAMES = (b"wait-repl", b"active", b"queued", b"acked", b"gone")

DELIVERED = 1
"""Handed out by this node at least once, to a worker or to another node."""
ONCE_QUEUED = 2
"""Queued before, here or elsewhere: the next queueing is an additional delivery and is announced."""
ASKED = 4
"""The other owners have been asked whether one of them has the job; nobody has said so yet."""
LEASED = 8
"""Out with a worker of this node until `due_ms`."""
PLACEHOLDER = 16
"""Nothing is known but the id: the acknowledgement of a job that this node has never seen."""
DELETED = 32
"""Acknowledged by DELJOB or FASTACK: for clients the job does not exist any more."""
HELD = 64
"""An at-most-once job on its way between two nodes: neither may deliver it yet."""
DELAYED = 128
"""Not queued anywhere yet: `due_ms` is its first queueing."""

MOVED = 256
"""Sent to another node, which has it queued or out with a worker until `due_ms`; bit of that node in `confirmed`."""

COUNTER_MAX = 0xFFFF


class Job(Timed):
    """A job. Made by `new_job`; has no behaviour of its own.

    `owners` and `confirmed` are bit masks of the slots of nodes; bit 0 is this node. Times in `_ms` are monotonic, `ctime_ns`
    and `order_ns` are wall-clock nanoseconds with the uniqueness counter in the last digits. `due_ms` is the next (re)queueing,
    0: never. What begins with `journal_` belongs to the journal.
    """

    def __init__(self) -> None:
        self.init_timer()
        self.id = b""
        self.body = b""
        self.queue: Any = None
        """Its `Queue`; None for a placeholder."""
        self.ctime_ns = 0
        self.order_ns = 0
        self.expires_ms = 0
        self.due_ms = 0
        self.ttl_s = 0
        self.retry_s = 0
        self.delay_s = 0
        self.replicate = 1
        self.nacks = 0
        self.deliveries = 0
        self.state = ACTIVE
        self.flags = 0
        self.attempts = 0
        self.owners = 1
        self.confirmed = 0
        self.waiter: Copying | None = None
        """While copies of the job are being made."""
        self.journal_segment = 0
        self.journal_state = 0
        self.journal_flags = 0


def new_job(job_id: bytes, queue: Queue | None, body: bytes, ctime_ns: int) -> Job:
    """Return a job with its identity; the caller fills in the rest."""
    job = Job()
    job.id = job_id
    job.queue = queue
    job.body = body
    job.ctime_ns = ctime_ns
    job.order_ns = ctime_ns
    return job


def is_before(job: Job, other: Job) -> bool:
    """Tell whether `job` comes before `other` in a queue: by order, then by id."""
    if job.order_ns != other.order_ns:
        return job.order_ns < other.order_ns
    return job.id < other.id
