"""When jobs are queued: the first time, after a delay, when a lease ran out, on NACK and ENQUEUE; and when they end.

`Scheduler.enqueue` is the only way into a queue, `take_first` and `dequeue` are the only ways out of it.
"""

from __future__ import annotations

from disqueue.core.copying import Copying
from disqueue.core.job import (
    ACKED,
    ACTIVE,
    ASKED,
    CONTESTED,
    COUNTER_MAX,
    DELAYED,
    DELIVERED,
    GONE,
    HELD,
    LEASED,
    MOVED,
    ONCE_QUEUED,
    QUEUED,
    WAIT_REPL,
    Job,
)
from disqueue.core.queue import PAUSED_IN, PAUSED_OUT, Queue
from disqueue.core.registry import LEVEL_FULL, Registry
from disqueue.core.timers import Timed

BY_TIME = 0
"""Why a job is queued: a lease or a delay ended, or its producer's copies are made."""
BY_COMMAND = 1
BY_NACK = 2
BY_MOVE = 3
"""It came from another node that had it queued: silent and uncounted."""
_BY_TIME, _BY_COMMAND, _BY_NACK, _BY_MOVE = BY_TIME, BY_COMMAND, BY_NACK, BY_MOVE

LINGER_MS = 10_000
"""A delivered at-most-once job is still shown for this long, then forgotten: nothing can happen to it any more."""
_LINGER_MS = LINGER_MS
PAUSE_RETRY_MS = 1000
"""A job that is due in a queue paused in input looks again after its RETRY, but not sooner than this."""
_PAUSE_RETRY_MS = PAUSE_RETRY_MS
HELD_ASK_MS = 5000
"""An at-most-once job that is on its way for so long is asked about: an answer may have been lost with a link."""
_HELD_ASK_MS = HELD_ASK_MS
ASK_AHEAD_MS = 500
"""The other owners are asked this long before a job is queued again."""
_ASK_AHEAD_MS = ASK_AHEAD_MS
LINKS_WAIT_MS = 1000
"""What other nodes have to be told or asked after this node was away waits until the links to them have had time to come up."""
LOOKED_AT = 1000
"""While the journal fails so many at-most-once jobs at the head of a queue are passed over: more would hold up the loop."""
IDLE_PRESSED_MS = (0, 10_000, 2_000)
"""How long a queue may be idle at each level of memory pressure; level 0 takes the configured time."""


class Scheduler(Registry):
    """Queueing, leases, expiry and eviction."""

    def init_scheduler(self) -> None:
        """Make the idle-queue timer."""
        self.idle_timer = Timed()
        self.last_level = 0
        self.ready_queues: list[Queue] = []

    # -- timers of a job

    def arm(self, job: Job) -> None:
        """Set the one wake-up time of a job from all that it waits for."""
        wake_ms = job.expires_ms
        due_ms = job.due_ms
        if due_ms != 0 and job.state != WAIT_REPL and not job.flags & HELD:
            if self._must_ask(job):
                due_ms -= _ASK_AHEAD_MS
            if due_ms < wake_ms:
                wake_ms = due_ms
        if job.flags & HELD and self.now_ms + _HELD_ASK_MS < wake_ms:
            wake_ms = self.now_ms + _HELD_ASK_MS
        if job.waiter is not None:
            copying: Copying = job.waiter
            if copying.next_ms < wake_ms:
                wake_ms = copying.next_ms
            if copying.deadline_ms < wake_ms:
                wake_ms = copying.deadline_ms
        if job.timer_slot >= 0 and job.wake_ms <= wake_ms and not job.flags & HELD:
            return  # it looks again when it wakes: most jobs are over before that
        self.timers.set(job, wake_ms)

    def job_due(self, job: Job) -> None:
        """Handle the wake-up of a job."""
        if job.state == GONE:
            return  # by an earlier timer of the same turn
        if job.expires_ms <= self.now_ms:
            self.expire(job)
            return
        if job.waiter is not None:
            copying: Copying = job.waiter
            if copying.deadline_ms <= self.now_ms:
                self.add_timed_out(job)
                return
            if copying.next_ms <= self.now_ms:
                self.copy_step(job)
        if job.flags & HELD:
            self.ask_about_held(job)
        elif job.due_ms != 0 and job.state != WAIT_REPL:
            self._due(job)
        if job.state != GONE:
            self.arm(job)

    def _due(self, job: Job) -> None:
        if self.stalled_until_ms > self.now_ms and self._may_be_taken_over(job):
            self._ask_first(job)
        elif job.state != ACTIVE:
            if job.due_ms <= self.now_ms:
                self.renew(job)
        elif job.due_ms <= self.now_ms and job.flags & CONTESTED:
            job.flags &= ~(CONTESTED | LEASED | MOVED | ASKED)
            job.due_ms = self.now_ms + _ASK_AHEAD_MS
            self._due(job)
        elif job.due_ms <= self.now_ms:
            self.enqueue(job, _BY_TIME)
        elif self._must_ask(job) and job.due_ms - _ASK_AHEAD_MS <= self.now_ms:
            job.flags |= ASKED
            self.ask_owners(job)

    def _may_be_taken_over(self, job: Job) -> bool:
        """Tell whether another owner may have queued the job while this process stood still, or will before it can be asked."""
        if job.owners == 1 or job.retry_s == 0:
            return False
        due_ms = job.due_ms
        if job.state == QUEUED:
            return due_ms + _ASK_AHEAD_MS <= self.now_ms
        if job.flags & DELAYED:
            due_ms += job.retry_s * 1000
        return job.state == ACTIVE and due_ms <= self.stalled_until_ms + _ASK_AHEAD_MS

    def _ask_first(self, job: Job) -> None:
        """Let the job be queued only when its other owners have been asked, and none of them has it.

        A worker whose lease has not ended keeps it until then.
        """
        lease = job.flags & LEASED if job.due_ms > self.now_ms else 0
        if job.state == QUEUED:
            self.dequeue(job)
        elif job.flags & DELAYED:
            self.clear_delayed(job)
        job.flags |= ONCE_QUEUED
        self.stand_back(job, self.stalled_until_ms - self.now_ms)
        job.flags |= lease

    def stand_back(self, job: Job, wait_ms: int) -> None:
        """Let another owner be first to queue the job; a higher layer knows how."""

    def _must_ask(self, job: Job) -> bool:
        """Tell whether the other owners are to be asked before the job is queued again."""
        return job.owners != 1 and job.state == ACTIVE and job.retry_s > 0 and not job.flags & (ASKED | DELAYED)

    def add_timed_out(self, job: Job) -> None:
        """The producer of a job has waited for its copies long enough; a higher layer answers it."""

    def copy_step(self, job: Job) -> None:
        """Copies of the job are missing; a higher layer makes them."""

    def ask_about_held(self, job: Job) -> None:
        """An at-most-once job is on its way between two nodes for long; a higher layer asks the other one."""

    def ask_owners(self, job: Job) -> None:
        """A copy is about to be queued again; a higher layer asks the other owners."""

    def renew(self, job: Job) -> None:
        """A queued or acknowledged job is due; higher layers know for what. They set a new due time."""
        job.due_ms = 0

    def announce_queued(self, job: Job, reason: int) -> None:
        """A job is queued again; a higher layer tells the other owners."""

    # -- into the queue and out

    def enqueue(self, job: Job, reason: int) -> bool:
        """Queue an active job; tell whether it was queued.

        It is not when it is not active, when it is an at-most-once job that has been delivered, or when the queue is paused in
        input: then it stays active and, unless only a command asked for it, is looked at again later.
        """
        if job.state != ACTIVE or job.flags & HELD:
            return False
        if job.retry_s == 0 and job.flags & DELIVERED:
            job.due_ms = 0
            return False
        queue: Queue = job.queue
        if queue.pause & PAUSED_IN and reason != _BY_MOVE:
            if reason != _BY_COMMAND:
                self._postpone(job)
            return False
        if job.flags & DELAYED:
            self.clear_delayed(job)
        order_ns = job.ctime_ns
        if reason == _BY_NACK:
            order_ns = self._order_behind(queue)
        job.order_ns = order_ns
        announced = job.flags & ONCE_QUEUED
        job.flags = (job.flags | ONCE_QUEUED) & ~(ASKED | LEASED | MOVED | CONTESTED)
        if not queue.visible:
            self.make_visible(queue)
        self.mark_queued(job)
        job.due_ms = 0
        if job.owners != 1 and job.retry_s > 0:
            job.due_ms = self.now_ms + job.retry_s * 1000
        if announced and reason != _BY_MOVE:
            queue.requeued += 1
            if reason != _BY_NACK and job.deliveries < COUNTER_MAX:
                job.deliveries += 1
            self.announce_queued(job, reason)
        queue.jobs.add(job)
        queue.used_ms = self.now_ms
        queue.jobs_in += 1
        self.arm(job)
        if self.journal is not None:
            self.journal.job_changed(job)
        if queue.waiters or queue.demand is not None:
            self.mark_ready(queue)
        return True

    def count_nack(self, job: Job) -> None:
        """Count one NACK."""
        if job.nacks < COUNTER_MAX:
            job.nacks += 1

    def mark_ready(self, queue: Queue) -> None:
        """Have the clients and peers that wait for jobs of this queue served before the pass ends."""
        if not queue.ready and not queue.pause & PAUSED_OUT and queue.jobs.count:
            queue.ready = True
            self.ready_queues.append(queue)

    def dequeue(self, job: Job) -> None:
        """Take a queued job out of its queue; it is active then, and comes back after its RETRY if it has one."""
        queue: Queue = job.queue
        queue.jobs.remove(job)
        self.queued_jobs -= 1
        job.state = ACTIVE
        job.due_ms = 0
        if job.retry_s > 0:
            job.due_ms = self.now_ms + job.retry_s * 1000

    def take_first(self, queue: Queue) -> Job | None:
        """Take the first job that has not expired out of a queue; it is active then, and has no due time.

        At-most-once jobs stay while the journal could not tell that they were handed out.
        """
        while True:
            passes_over = self.journal is not None and self.journal.error
            job = self._take_repeatable(queue) if passes_over else queue.jobs.pop_first()
            if job is None:
                return None
            self.queued_jobs -= 1
            job.state = ACTIVE
            job.due_ms = 0
            if job.expires_ms > self.now_ms - self.grace_ms:
                queue.used_ms = self.now_ms
                queue.jobs_out += 1
                return job
            self.expire(job)

    def _take_repeatable(self, queue: Queue) -> Job | None:
        """Take the first at-least-once job out of a queue, past at-most-once jobs."""
        for job in queue.jobs.page(0, LOOKED_AT, False):
            if job.retry_s > 0:
                queue.jobs.remove(job)
                return job
        return None

    def start_lease(self, job: Job) -> None:
        """A job has just been handed to a worker: it comes back when its RETRY has passed from now on.

        An at-most-once job can only be forgotten from here on; it can still be looked at for a while.
        """
        job.flags = (job.flags | DELIVERED | LEASED) & ~(ASKED | CONTESTED)
        queue: Queue = job.queue
        queue.delivered += 1
        if job.retry_s > 0:
            job.due_ms = self.now_ms + job.retry_s * 1000
        else:
            job.due_ms = 0
            job.expires_ms = min(job.expires_ms, self.now_ms + _LINGER_MS)
            self.evictable[job] = None
        self.arm(job)
        if self.journal is not None:
            self.journal.job_changed(job)

    def postpone(self, job: Job, delay_ms: int) -> None:
        """Queue the job again `delay_ms` from now, unless it is never queued again."""
        if job.retry_s > 0:
            job.due_ms = self.now_ms + delay_ms
            job.flags &= ~ASKED
            self.arm(job)
            if self.journal is not None:
                self.journal.job_changed(job)

    def _postpone(self, job: Job) -> None:
        delay_ms = job.retry_s * 1000
        if delay_ms < _PAUSE_RETRY_MS:
            delay_ms = _PAUSE_RETRY_MS
        job.due_ms = self.now_ms + delay_ms
        job.flags &= ~ASKED
        self.arm(job)
        if self.journal is not None:
            self.journal.job_changed(job)

    def _order_behind(self, queue: Queue) -> int:
        """Return an order behind all that is queued now, and before what is added later."""
        order_ns = self.next_ctime_ns()
        last = queue.jobs.last()
        if last is not None and last.order_ns >= order_ns:  # it came from a node whose clock is ahead
            order_ns = last.order_ns + 1
        return order_ns

    # -- the end of a job

    def expire(self, job: Job) -> None:
        """Its TTL has ended."""
        self.expired_jobs += 1
        if job.queue is not None and not job.flags & DELIVERED:
            job.queue.expired += 1
        self.delete(job)

    def delete(self, job: Job) -> None:
        """Forget a job, whatever its state, on this node."""
        if job.state == QUEUED:
            job.queue.jobs.remove(job)
            self.queued_jobs -= 1
        elif job.state == WAIT_REPL:
            self.add_failed(job)
            if job.state == GONE:
                return
        self.unregister(job)
        job.state = GONE
        if self.journal is not None:
            self.journal.job_forgotten(job)

    def add_failed(self, job: Job) -> None:
        """A job goes while its producer still waits; a higher layer answers the producer."""

    # -- idle queues and memory pressure

    def idle_limit_ms(self) -> int:
        """Return how long an empty queue may be idle now."""
        level = self.memory_level()
        limit_ms = self.settings.queue_idle_ms
        if level > 0:
            pressed_ms = IDLE_PRESSED_MS[level]
            if pressed_ms < limit_ms:
                limit_ms = pressed_ms
        return limit_ms

    def idle_queue_added(self) -> None:
        """See that the idle timer runs."""
        if self.idle_timer.timer_slot < 0:
            self.timers.set(self.idle_timer, self.now_ms + self.idle_limit_ms())

    def check_level(self) -> None:
        """Look at idle queues soon when memory pressure has risen; called once a pass."""
        level = self.memory_level()
        if level > self.last_level and self.idle_queues:
            self.timers.set(self.idle_timer, self.now_ms + self.idle_limit_ms())
        self.last_level = level

    def drop_idle_queues(self) -> None:
        """Hide the queues that were idle for too long; set the timer for the next one."""
        limit_ms = self.idle_limit_ms()
        for _ in range(min(len(self.idle_queues), 1000)):  # a bounded step; the timer fires again for the rest
            queue, _nothing = self.idle_queues.popitem(last=False)
            queue.in_idle = False
            if not self._is_idle(queue):
                self.watch_idle(queue)
            elif self.now_ms - queue.used_ms >= limit_ms:
                self.hide(queue)
            else:
                queue.in_idle = True
                self.idle_queues[queue] = None
        if self.idle_queues:
            self.timers.set(self.idle_timer, self.now_ms + self._next_idle_ms(limit_ms))

    def _next_idle_ms(self, limit_ms: int) -> int:
        """Return when to look again: exact for the queue looked at first, and not sooner than a fraction of the limit."""
        oldest = next(iter(self.idle_queues))
        return max(oldest.used_ms + limit_ms - self.now_ms, limit_ms // 8, 100)

    def _is_idle(self, queue: Queue) -> bool:
        return not (queue.jobs.count or queue.waiters or queue.pause or queue.delayed_jobs)

    def out_of_memory(self) -> bool:
        """Evict what may go; tell whether memory is still above 95 %."""
        if self.memory_level() < LEVEL_FULL:
            return False
        if self.settings.evict_acks:
            self._evict()
        return self.memory_level() >= LEVEL_FULL

    def _evict(self) -> None:
        """Forget acknowledged and delivered at-most-once jobs, oldest first, until memory is below 95 %.

        At most 1,000 at once: a command that needs memory must not stop the loop.
        """
        for _ in range(min(len(self.evictable), 1000)):
            if self.memory_level() < LEVEL_FULL:
                return
            job, _nothing = self.evictable.popitem(last=False)
            self.evicted_jobs += 1
            self.delete(job)

    def set_acked(self, job: Job) -> None:
        """Change the state of a job to acknowledged."""
        if job.state == QUEUED:
            job.queue.jobs.remove(job)
            self.queued_jobs -= 1
        if job.flags & DELAYED:
            self.clear_delayed(job)
        job.state = ACKED
        job.due_ms = 0
        job.confirmed = 0
        job.attempts = 0
        self.acked_jobs += 1
