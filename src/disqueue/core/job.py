"""One job. This is the plain twin; `job.pyx` has the same class in C, with the id inside the object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from disqueue.core.job_state import (
    ACKED,
    ACTIVE,
    ASKED,
    CONTESTED,
    COUNTER_MAX,
    DELAYED,
    DELETED,
    DELIVERED,
    GONE,
    HELD,
    LEASED,
    MOVED,
    ONCE_QUEUED,
    PLACEHOLDER,
    QUEUED,
    RESTORED,
    STATE_NAMES,
    WAIT_REPL,
)
from disqueue.core.timers import Timed

if TYPE_CHECKING:
    from disqueue.core.copying import Copying
    from disqueue.core.ids import JobIds
    from disqueue.core.queue import Queue

__all__ = [
    "ACKED",
    "ACTIVE",
    "ASKED",
    "CONTESTED",
    "COUNTER_MAX",
    "DELAYED",
    "DELETED",
    "DELIVERED",
    "GONE",
    "HELD",
    "LEASED",
    "MOVED",
    "ONCE_QUEUED",
    "PLACEHOLDER",
    "QUEUED",
    "RESTORED",
    "STATE_NAMES",
    "WAIT_REPL",
    "Job",
    "id_of",
    "is_before",
    "make_job",
    "new_job",
]


class Job(Timed):
    """A job. Made by `new_job`; has no behaviour of its own.

    `owners` and `confirmed` are bit masks of the slots of nodes; bit 0 is this node. Times in `_ms` are monotonic, `ctime_ns`
    and `order_ns` are wall-clock nanoseconds with the uniqueness counter in the last digits. `due_ms` is the next (re)queueing,
    0: never. What begins with `journal_` belongs to the journal.
    """

    def __init__(self) -> None:
        Timed.__init__(self)
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
        self.offer = 0
        """Which offer of an at-most-once job it is on its way by; 0: one without a number."""
        self.owners = 1
        self.confirmed = 0
        self.waiter: Copying | None = None
        """While copies of the job are being made."""
        self.journal_segment = 0
        self.journal_state = 0
        self.journal_flags = 0
        self.journal_bytes = 0
        self.journal_state_bytes = 0


def new_job(job_id: bytes, queue: Queue | None, body: bytes, ctime_ns: int) -> Job:
    """Return a job with its identity; the caller fills in the rest."""
    job = Job()
    job.id = job_id
    job.queue = queue
    job.body = body
    job.ctime_ns = ctime_ns
    job.order_ns = ctime_ns
    return job


def make_job(ids: JobIds, ttl_s: int, retry_s: int, queue: Queue, body: bytes, ctime_ns: int) -> Job:
    """Return a job with a new id; the caller fills in the rest."""
    job = new_job(ids.make(ttl_s, retry_s), queue, body, ctime_ns)
    job.ttl_s = ttl_s
    job.retry_s = retry_s
    return job


def id_of(job: Job) -> bytes:
    """Return the id of a job: `job.id`, called as C."""
    return job.id


def is_before(job: Job, other: Job) -> bool:
    """Tell whether `job` comes before `other` in a queue: by order, then by id."""
    if job.order_ns != other.order_ns:
        return job.order_ns < other.order_ns
    return job.id < other.id
