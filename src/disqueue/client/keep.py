"""Keeping jobs alive while they are worked on: WORKING in the background, by a thread or by a task."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, Any

from disqueue.client import requests
from disqueue.client.errors import DisqueueError, TooLateError, UnknownJobError
from disqueue.client.leases import Lease, LeaseBook

if TYPE_CHECKING:
    from disqueue.client.aio import AsyncClient
    from disqueue.client.jobs import ReceivedJob
    from disqueue.client.router import Route
    from disqueue.client.sync import Client

logger = logging.getLogger("disqueue.client")

# How long one round of WORKING goes on looking for a node; the next round comes soon.
RETRY_FOR_S = 1.0

# A node that hangs must not take the time in which other jobs' leases end, or another node could be asked.
PATIENCE_S = 0.5

# A keeper without work ends after this long.
IDLE_S = 5.0


class LeaseKeeper:
    """What the two keepers share: the book, and what is made of the answers. The caller holds whatever lock it needs."""

    def __init__(self) -> None:
        self.book = LeaseBook()
        self.routes: dict[Lease, Route] = {}

    def take(self, job: ReceivedJob) -> Lease:
        """Keep the lease of a job alive."""
        if job._lease is None:
            job._lease = self.book.start(job.id, job._received_at)
        self.routes[job._lease] = job._route
        self.book.hold(job._lease)
        return job._lease

    def drop(self, job: ReceivedJob) -> None:
        """Keep it alive no longer."""
        if job._lease is not None:
            self.book.release(job._lease)
            self.routes.pop(job._lease, None)

    def due_by_node(self, now: float) -> list[tuple[Route, list[Lease]]]:
        """What is to be prolonged now, by the node it came from."""
        groups: dict[Any, tuple[Route, list[Lease]]] = {}
        for lease in self.book.take_due(now):
            route = self.routes[lease]
            groups.setdefault(route.node, (route, []))[1].append(lease)
        return list(groups.values())

    def note(self, lease: Lease, result: Any, asked_at: float, now: float) -> None:
        """An answer to WORKING: seconds, or an error."""
        if not isinstance(result, Exception):
            self.book.prolonged(lease, result, asked_at)
            return
        error = result if isinstance(result, DisqueueError) else DisqueueError(str(result))
        self.book.refused(lease, error, now)
        if lease.held and isinstance(error, UnknownJobError):
            logger.warning(
                "job %s is held here, but the server knows it no more: acknowledged or expired elsewhere", lease.job_id
            )
        elif lease.held and isinstance(error, TooLateError):
            logger.warning("job %s can't be kept alive any longer (%s); it may be delivered again", lease.job_id, error)


class Keeper(LeaseKeeper):
    """Keeps jobs alive from a thread, which runs only while there is something to keep."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._wakes_at = 0.0

    def after_fork(self) -> None:
        """In the child: the thread is the parent's, and so are the jobs."""
        super().__init__()
        self._changed = threading.Condition()
        self._thread = None

    def hold(self, job: ReceivedJob) -> None:
        """Keep the job alive from now on."""
        with self._changed:
            lease = self.take(job)
            if not self._client.background:
                return
            if self._thread is None:
                self._wakes_at = 0.0
                self._thread = threading.Thread(target=self._run, name="disqueue-keeper", daemon=True)
                self._thread.start()
            elif lease.next_at < self._wakes_at:
                self._changed.notify()

    def release(self, job: ReceivedJob) -> None:
        """Keep it alive no longer."""
        with self._changed:
            self.drop(job)

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._wait_for_work():
                    self._thread = None
                    return
            self.prolong_due()

    def next_due(self) -> float | None:
        """When the next WORKING is to be sent; None if for none."""
        with self._changed:
            return self.book.next_due()

    def prolong_due(self) -> None:
        """Send the WORKINGs that are due. The thread does; where time does not pass by itself, whoever moves it does."""
        with self._changed:
            groups = self.due_by_node(self._client.clock())
        for route, leases in groups:
            self._prolong(route, leases)

    def _wait_for_work(self) -> bool:
        """Until a WORKING is due; False when there has been nothing to keep for a while, or the client closed."""
        while not self._closed:
            due = self.book.next_due()
            now = self._client.clock()
            if due is not None and due <= now:
                return True
            self._wakes_at = now + IDLE_S if due is None else due
            if not self._changed.wait(self._wakes_at - now) and due is None and self.book.next_due() is None:
                return False
        return False

    def _prolong(self, route: Route, leases: list[Lease]) -> None:
        asked_at = self._client.clock()
        batch = [requests.working(lease.job_id, PATIENCE_S) for lease in leases]
        try:
            results = self._client.run(self._client.flows.batch(batch, route, RETRY_FOR_S))
        except DisqueueError as error:
            results = [error] * len(leases)
        with self._changed:
            for lease, result in zip(leases, results, strict=True):
                self.note(lease, result, asked_at, self._client.clock())


class AsyncKeeper(LeaseKeeper):
    """Keeps jobs alive from a task, which runs only while there is something to keep."""

    def __init__(self, client: AsyncClient) -> None:
        super().__init__()
        self._client = client
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._wakes_at = 0.0

    def hold(self, job: ReceivedJob) -> None:
        """Keep the job alive from now on."""
        lease = self.take(job)
        if self._task is None or self._task.done():
            self._changed = asyncio.Event()
            self._wakes_at = lease.next_at
            self._task = asyncio.get_running_loop().create_task(self._run(), name="disqueue-keeper")
        elif lease.next_at < self._wakes_at:
            self._changed.set()

    def release(self, job: ReceivedJob) -> None:
        """Keep it alive no longer."""
        self.drop(job)

    async def close(self) -> None:
        """End the task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            due = self.book.next_due()
            now = self._client.clock()
            self._wakes_at = now + IDLE_S if due is None else due
            if self._wakes_at > now:
                self._changed.clear()
                try:
                    await asyncio.wait_for(self._changed.wait(), self._wakes_at - now)
                except TimeoutError:
                    if due is None and self.book.next_due() is None:
                        return
            for route, leases in self.due_by_node(self._client.clock()):
                await self._prolong(route, leases)

    async def _prolong(self, route: Route, leases: list[Lease]) -> None:
        asked_at = self._client.clock()
        batch = [requests.working(lease.job_id, PATIENCE_S) for lease in leases]
        try:
            results = await self._client.run(self._client.flows.batch(batch, route, RETRY_FOR_S))
        except DisqueueError as error:
            results = [error] * len(leases)
        for lease, result in zip(leases, results, strict=True):
            self.note(lease, result, asked_at, self._client.clock())
