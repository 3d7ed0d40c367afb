"""The ground of a node: its jobs, queues, timers, clock and memory account.

The node is built in layers, each a subclass of the one below that adds one concept: registry, scheduler, delivery, replication,
acknowledgement, federation, node. A layer calls down directly, and up through the few methods that a higher layer overrides.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable

from disqueue.core.ids import JobIds
from disqueue.core.job import ACKED, DELAYED, QUEUED, WAIT_REPL, Job
from disqueue.core.job_table import JobTable
from disqueue.core.journal_port import JournalPort
from disqueue.core.masks import covers
from disqueue.core.queue import Queue
from disqueue.core.queue_scan import QueueScan
from disqueue.core.settings import Settings
from disqueue.core.timers import Timed, TimerWheel

JOB_BYTES = 384
"""What a job costs beside its body: the object, its id, its places in the table, the queue and the timers."""
_JOB_BYTES = JOB_BYTES
QUEUE_BYTES = 800
"""What a queue costs beside its name."""

LEVEL_NORMAL = 0
LEVEL_HIGH = 1
"""Above 75 %: new copies go to other nodes."""
LEVEL_FULL = 2
"""Above 95 %: evict what may go, then refuse new jobs."""

TIMERS_A_PASS = 2000
"""Timers fired in one pass: about 5 ms, so that a million of one instant do not stop the loop."""

FAULT_RETRY_MS = 1000
"""What fails inside is tried again after this: not at once, or a fault would fill the log."""


def no_log(_level: str, _event: str, **_fields: object) -> None:
    """Drop a log event; the default of the `log` port."""


class Registry:
    """Jobs, queues, timers, clock and memory of one node."""

    def __init__(self, settings: Settings, entropy: Callable[[int], bytes], node_id: bytes) -> None:
        self.settings = settings
        self.entropy = entropy
        self.node_id = node_id
        self.ids = JobIds(node_id, entropy)
        self.log: Callable[..., None] = no_log
        self.journal: JournalPort | None = None
        self.now_ms = 0
        self.wall_ms = 0
        self.stalled_until_ms = -1_000_000
        """After this process stood still: until then the links to other nodes may not be back."""
        self.grace_ms = 0
        """Timers fire this much after their deadline: 1 where the clock is cut to whole milliseconds, so that none is early."""
        self.last_ctime_ns = 0
        self.jobs = JobTable()
        self.queues: dict[bytes, Queue] = {}
        self.last_queue: Queue | None = None
        self.visible_queues = 0
        self.scanned_queues = QueueScan()
        self.timers = TimerWheel()
        self.idle_queues: OrderedDict[Queue, None] = OrderedDict()
        self.evictable: OrderedDict[Job, None] = OrderedDict()
        self.used_bytes = 0
        self.peak_bytes = 0
        self.buffer_bytes = 0
        self.queued_jobs = 0
        self.acked_jobs = 0
        self.delayed_jobs = 0
        self.waiting_jobs = 0
        self.evicted_jobs = 0
        self.expired_jobs = 0

    # -- the pass

    def begin_pass(self, now_ms: int, wall_ms: int) -> None:
        """Set the clock of a pass: monotonic and Unix milliseconds."""
        if now_ms > self.now_ms:
            self.now_ms = now_ms
        self.wall_ms = wall_ms

    def advance(self) -> None:
        """Fire the timers that are due, a bounded number; `next_deadline_ms()` says whether more are."""
        due = self.timers.pop_due(self.now_ms - self.grace_ms, TIMERS_A_PASS)
        fired = 0
        try:
            for timed in due:
                fired += 1
                self.timer_fired(timed)
        except Exception:
            self._fire_later(due, fired)
            raise

    def _fire_later(self, due: list[Timed], fired: int) -> None:
        """One of the timers met a fault: the others must not get lost with it, and it gets another chance."""
        self.timers.set(due[fired - 1], self.now_ms + FAULT_RETRY_MS)
        for timed in due[fired:]:
            self.timers.set(timed, self.now_ms)

    def next_deadline_ms(self) -> int:
        """Return the monotonic time at which `advance` has something to do, or -1."""
        deadline_ms = self.timers.next_ms()
        return deadline_ms + self.grace_ms if deadline_ms >= 0 else deadline_ms

    def timer_fired(self, timed: Timed) -> None:
        """Handle one due timer; higher layers know what can be one."""

    def next_ctime_ns(self) -> int:
        """Return the creation time of a new job: unique on this node and never going back."""
        ctime_ns = self.wall_ms * 1_000_000
        if ctime_ns <= self.last_ctime_ns:
            ctime_ns = self.last_ctime_ns + 1
        self.last_ctime_ns = ctime_ns
        return ctime_ns

    # -- jobs

    def register(self, job: Job) -> None:
        """Take a new job into the table and the account."""
        self.jobs.add(job)
        self.used_bytes += _JOB_BYTES + len(job.body)
        if self.used_bytes > self.peak_bytes:
            self.peak_bytes = self.used_bytes
        queue = job.queue
        if queue is not None:
            queue.known_jobs += 1

    def unregister(self, job: Job) -> None:
        """Take a job out of the table, the timers and the account. It must not be in a queue any more."""
        self.jobs.remove(job)
        self.timers.clear(job)
        self.used_bytes -= _JOB_BYTES + len(job.body)
        if job.flags & DELAYED:
            self.clear_delayed(job)
        if job.state == ACKED:
            self.acked_jobs -= 1
        if self.evictable:
            self.evictable.pop(job, None)
        queue = job.queue
        if queue is not None:
            queue.known_jobs -= 1
            if queue.known_jobs == 0 and not queue.visible:
                self.drop_unused(queue)

    def set_delayed(self, job: Job) -> None:
        """Count a job as waiting for its first queueing."""
        job.flags |= DELAYED
        self.delayed_jobs += 1
        if job.queue is not None:
            job.queue.delayed_jobs += 1
            self.make_visible(job.queue)

    def clear_delayed(self, job: Job) -> None:
        """Take back `set_delayed`."""
        job.flags &= ~DELAYED
        self.delayed_jobs -= 1
        if job.queue is not None:
            job.queue.delayed_jobs -= 1

    def add_owners(self, job: Job, mask: int) -> None:
        """More nodes than was known may have the job."""
        if not covers(job.owners, mask):
            job.owners |= mask
            if self.journal is not None and job.state != WAIT_REPL:
                self.journal.job_changed(job)

    # -- the journal

    def journal_fails(self) -> bool:
        """Tell whether there is a journal that cannot be written now: nothing may be promised that depends on it."""
        return self.journal is not None and self.journal.error != ""

    def journal_refuses(self) -> bool:
        """Tell whether no new job may be taken."""
        return self.journal is not None and (self.journal.full or self.journal.error != "")

    # -- queues

    def known_queue(self, name: bytes) -> Queue | None:
        """Return the object of a queue's name, if there is one: often it is the one that was looked for last."""
        queue = self.last_queue
        if queue is None or queue.name != name:
            queue = self.queues.get(name)
            self.last_queue = queue
        return queue

    def queue_named(self, name: bytes) -> Queue:
        """Return the object of a queue's name, made if need be; clients see it only once it is made visible."""
        queue = self.known_queue(name)
        if queue is None:
            queue = Queue(name, self.now_ms)
            queue.scan_hash = zlib.crc32(name)
            self.queues[name] = queue
            self.used_bytes += QUEUE_BYTES + len(name)
        return queue

    def make_visible(self, queue: Queue) -> None:
        """Let clients see the queue from now on."""
        if not queue.visible:
            queue.visible = True
            queue.reset(self.now_ms)
            self.visible_queues += 1
            self.scanned_queues.add(queue)
            self.watch_idle(queue)

    def watch_idle(self, queue: Queue) -> None:
        """Have the queue looked at when it may have been idle for long."""
        if not queue.in_idle:
            queue.in_idle = True
            self.idle_queues[queue] = None
            self.idle_queue_added()

    def idle_queue_added(self) -> None:
        """A queue is watched for idleness; a higher layer sets the time for it."""

    def hide(self, queue: Queue) -> None:
        """Let clients see the queue no more; drop it when nothing refers to it."""
        if queue.visible:
            queue.visible = False
            queue.pause = 0
            self.visible_queues -= 1
            self.scanned_queues.remove(queue)
            self.idle_queues.pop(queue, None)
            queue.in_idle = False
        self.drop_unused(queue)

    def drop_unused(self, queue: Queue) -> None:
        """Drop an invisible queue that no job, client or peer refers to."""
        if queue.visible or queue.known_jobs or queue.waiters or queue.demand is not None:
            return
        if self.queues.get(queue.name) is queue:
            del self.queues[queue.name]
            if self.last_queue is queue:
                self.last_queue = None
            self.used_bytes -= QUEUE_BYTES + len(queue.name)

    # -- memory

    def memory_bytes(self) -> int:
        """Return what jobs, queues and buffers use, by the account."""
        return self.used_bytes + self.buffer_bytes

    def memory_level(self) -> int:
        """Return the level of memory pressure."""
        limit = self.settings.maxmemory_bytes
        if limit == 0:
            return LEVEL_NORMAL
        used = self.used_bytes + self.buffer_bytes
        if used * 4 <= limit * 3:
            return LEVEL_NORMAL
        if used * 20 <= limit * 19:
            return LEVEL_HIGH
        return LEVEL_FULL

    def mark_queued(self, job: Job) -> None:
        """Change the state to queued, and the count."""
        job.state = QUEUED
        self.queued_jobs += 1
