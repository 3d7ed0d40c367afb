"""Handing jobs to clients: GETJOB, at once or when a job comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from disqueue.core.client import BLOCKED_GETJOB, NOT_BLOCKED, Client
from disqueue.core.job import Job
from disqueue.core.job_replies import reply_job
from disqueue.core.queue import PAUSED_OUT, Queue
from disqueue.core.scheduler import Scheduler
from disqueue.core.timers import NEVER_MS, Timed

if TYPE_CHECKING:
    from disqueue.wire.resp import ReplyWriter

LEAVING_TEXT = b"LEAVING This node is leaving the cluster, please connect to a different one"

MAX_JOBS_A_REPLY = 10_000
_MAX_JOBS_A_REPLY = MAX_JOBS_A_REPLY
MAX_REPLY_BYTES = 1 << 24
_MAX_REPLY_BYTES = MAX_REPLY_BYTES
"""One GETJOB gets so many jobs, or so many bytes of bodies and one job more, whatever its COUNT: about 10 ms."""


def ignore_client(_client: Client) -> None:
    """Do nothing; the default of the `on_unblock` port."""


class Delivery(Scheduler):
    """Clients that get jobs, and those that wait for some."""

    def init_delivery(self) -> None:
        """Start with no clients."""
        self.on_unblock: Callable[[Client], None] = ignore_client
        self.leaving = False
        self.blocked_clients = 0

    def get_jobs(
        self, client: Client, names: list[bytes], count: int, timeout_ms: int, nohang: bool, with_counters: bool
    ) -> None:
        """Reply with up to `count` jobs of the queues `names`, or block the client until there is one.

        One job a queue and round, left to right. `timeout_ms` 0: for ever.
        """
        if self.ready_queues:
            self.serve_ready()  # whoever waited before comes first
        if count > _MAX_JOBS_A_REPLY:
            count = _MAX_JOBS_A_REPLY
        jobs: list[Job] = []
        self._collect(names, count, jobs)
        if jobs:
            self._reply_jobs(client, jobs, with_counters)
            return
        if nohang:
            for name in names:
                self.consumer_missed(name, count)
            client.reply.null_array()
        elif self.leaving:
            client.reply.error(LEAVING_TEXT)
        else:
            client.wanted_jobs = count
            client.with_counters = with_counters
            self._wait(client, names, timeout_ms)

    def get_first(self, client: Client, name: bytes, with_counters: bool) -> bool:
        """Reply with the first job of one queue, as `get_jobs` would; tell whether there was one: else nothing is done."""
        if self.ready_queues:
            self.serve_ready()
        queue = self.queues.get(name)
        if queue is None or queue.jobs.count == 0 or queue.pause & PAUSED_OUT:
            return False
        job = self.take_first(queue)
        if job is None:
            return False
        self.start_lease(job)
        reply: ReplyWriter = client.reply
        reply.array(1)
        reply_job(reply, job, with_counters)
        return True

    def serve_ready(self) -> None:
        """Give the jobs that have come to those who wait for them: clients of this node first, then peers."""
        ready = self.ready_queues
        while ready:
            queue = ready.pop()
            queue.ready = False
            self._serve_waiters(queue)
            if queue.demand is not None and queue.jobs.count and not queue.pause & PAUSED_OUT:
                self.serve_peers(queue)

    def serve_again(self) -> None:
        """Look at all queues that somebody waits at: what was held back may be handed out again."""
        for queue in list(self.queues.values()):
            if queue.waiters or queue.demand is not None:
                self.mark_ready(queue)

    def serve_peers(self, queue: Queue) -> None:
        """There are jobs left that peers have asked for; a higher layer sends them."""

    def consumer_missed(self, name: bytes, count: int) -> None:
        """A client that does not wait found no job; a higher layer may ask the peers."""

    def consumer_waits(self, queue: Queue) -> None:
        """A client has begun to wait at this queue; a higher layer asks the peers."""

    def unblock(self, client: Client) -> None:
        """End the wait of a client whose reply has just been written."""
        self.timers.clear(client)
        client.blocked = NOT_BLOCKED
        self.blocked_clients -= 1
        self.on_unblock(client)

    def stop_waiting(self, client: Client) -> None:
        """Take a client off the queues that it waits at."""
        queues: list[Queue] = client.waiting_queues
        for queue in queues:
            queue.waiters.pop(client, None)
            queue.used_ms = self.now_ms
            if queue.visible:
                self.watch_idle(queue)
            else:
                self.drop_unused(queue)
        client.waiting_queues = []

    def getjob_timed_out(self, client: Client) -> None:
        """Tell a waiting client that there is no job."""
        self.stop_waiting(client)
        client.reply.null_array()
        self.unblock(client)

    def end_all_waits(self, error: bytes) -> None:
        """Answer all clients that wait for jobs: with an error, or with no job when `error` is empty."""
        waiting: dict[Client, None] = {}
        for queue in self.queues.values():
            waiting.update(queue.waiters)
        for client in waiting:
            self.stop_waiting(client)
            if error:
                client.reply.error(error)
            else:
                client.reply.null_array()
            self.unblock(client)

    def block(self, client: Client, kind: int, timeout_ms: int) -> None:
        """Keep a client waiting for at most `timeout_ms` (0: for ever)."""
        client.blocked = kind
        self.blocked_clients += 1
        if 0 < timeout_ms < NEVER_MS - self.now_ms:
            self.timers.set(client, self.now_ms + timeout_ms)

    def timer_fired(self, timed: Timed) -> None:
        """Handle one due timer."""
        if isinstance(timed, Job):
            self.job_due(timed)
        elif isinstance(timed, Client):
            self.client_timed_out(timed)
        elif timed is self.idle_timer:
            self.drop_idle_queues()
        else:
            self.other_timer_fired(timed)

    def client_timed_out(self, client: Client) -> None:
        """The deadline of a blocked client has passed."""
        if client.blocked == BLOCKED_GETJOB:
            self.getjob_timed_out(client)

    def other_timer_fired(self, timed: Timed) -> None:
        """A timer of a higher layer is due."""

    def _collect(self, names: list[bytes], count: int, jobs: list[Job]) -> None:
        """Take up to `count` jobs, one a queue and round."""
        if len(names) == 1:
            queue = self.queues.get(names[0])
            if queue is not None:
                self._collect_one(queue, count, jobs)
            return
        found = True
        body_bytes = 0
        while found:
            found = False
            for name in names:
                queue = self.queues.get(name)
                if queue is None or queue.jobs.count == 0 or queue.pause & PAUSED_OUT:
                    continue
                job = self.take_first(queue)
                if job is not None:
                    self.start_lease(job)
                    jobs.append(job)
                    body_bytes += len(job.body)
                    if len(jobs) == count or body_bytes >= _MAX_REPLY_BYTES:
                        return
                    found = True

    def _collect_one(self, queue: Queue, count: int, jobs: list[Job]) -> None:
        if queue.pause & PAUSED_OUT:
            return
        body_bytes = 0
        while len(jobs) < count and queue.jobs.count and body_bytes < _MAX_REPLY_BYTES:
            job = self.take_first(queue)
            if job is None:
                return
            self.start_lease(job)
            jobs.append(job)
            body_bytes += len(job.body)

    def _reply_jobs(self, client: Client, jobs: list[Job], with_counters: bool) -> None:
        reply: ReplyWriter = client.reply
        reply.array(len(jobs))
        for job in jobs:
            reply_job(reply, job, with_counters)

    def _wait(self, client: Client, names: list[bytes], timeout_ms: int) -> None:
        queues: list[Queue] = []
        for name in names:
            queue = self.queue_named(name)
            if client not in queue.waiters:
                queue.waiters[client] = None
                queues.append(queue)
        client.waiting_queues = queues
        self.block(client, BLOCKED_GETJOB, timeout_ms)
        for queue in queues:
            self.consumer_waits(queue)

    def _serve_waiters(self, queue: Queue) -> None:
        while queue.waiters and queue.jobs.count and not queue.pause & PAUSED_OUT:
            client: Client = next(iter(queue.waiters))
            jobs: list[Job] = []
            if len(client.waiting_queues) == 1:
                self._collect_one(queue, client.wanted_jobs, jobs)
            else:
                waiting: list[Queue] = client.waiting_queues
                first_at = [waited.name for waited in waiting if next(iter(waited.waiters)) is client]
                self._collect(first_at, client.wanted_jobs, jobs)
            if not jobs:
                return
            self.stop_waiting(client)
            self._reply_jobs(client, jobs, client.with_counters)
            self.unblock(client)
        if queue.waiters and not queue.jobs.count:
            self.consumer_waits(queue)  # what was asked for is used up
