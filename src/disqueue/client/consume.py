"""Consuming: an endless supply of jobs, for a `for` loop, that can be stopped in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import signal
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from disqueue.client import requests
from disqueue.client.durations import Duration, seconds
from disqueue.client.errors import DisqueueError, StoppedError
from disqueue.client.flow import Flow, Flows
from disqueue.client.jobs import AsyncJob, Job, ReceivedJob
from disqueue.client.leases import LeaseBook
from disqueue.client.router import Route

if TYPE_CHECKING:
    from disqueue.client.aio import AsyncClient
    from disqueue.client.sync import Client

logger = logging.getLogger("disqueue.client")

J = TypeVar("J", bound=ReceivedJob)

# A GETJOB can't be called back without risking the job that is on its way; so each waits a short time only, and a
# stop, or a node that hangs, is noticed after that.
POLL_S = 2.0
MAX_PREFETCH = 10_000
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Supply(Generic[J]):
    """What the two consumers share: the buffer, and what to do next. No I/O."""

    def __init__(
        self, flows: Flows, queues: tuple[str | bytes, ...], prefetch: int, timeout: Duration | None, poll: Duration
    ) -> None:
        self.flows = flows
        self.queues = requests.queue_names(queues)
        self.prefetch = requests.positive(prefetch, "prefetch")
        if prefetch > MAX_PREFETCH:
            raise ValueError(f"prefetch must be {MAX_PREFETCH} or less, not {prefetch}")
        self.timeout = None if timeout is None else seconds(timeout, "timeout")
        self.poll = seconds(poll, "poll")
        if self.poll <= 0:
            raise ValueError("poll must be above 0 seconds")
        self.route = Route()
        self.buffer: deque[J] = deque()
        self.idle_since = flows.clock()
        self.dropped = 0
        """Jobs that were fetched ahead and not handed out, because their lease had ended meanwhile."""

    def fetch(self, stop: Any) -> Flow[tuple[list[Any], Route]]:
        """Jobs, or none after a while; and the route back to the node that they came from."""
        wait = self.poll
        if self.timeout is not None:
            wait = min(wait, max(0.0, self.idle_since + self.timeout - self.flows.clock()))
        try:
            jobs = yield from self.flows.get(self.queues, self.prefetch, wait, self.route, stop, math.inf)
        except StoppedError:
            return [], self.route
        origin = Route(self.route.node, pinned=True)
        if jobs:
            self.flows.router.note_jobs(self.route, [job[1].decode() for job in jobs])
            if self.flows.router.move(self.route, self.flows.clock()) and self.route.node is not None:
                logger.info("consumer moves to %s, where most of its jobs come from", self.route.node.endpoint)
        return jobs, origin

    def received(self, jobs: list[J]) -> None:
        """These came; the first is taken at once, the rest wait in the buffer."""
        self.buffer.extend(jobs)
        if jobs:
            self.idle_since = self.flows.clock()

    def exhausted(self) -> bool:
        """Whether no job came for as long as the caller wanted to wait."""
        return self.timeout is not None and self.flows.clock() - self.idle_since >= self.timeout

    def usable(self, job: J) -> bool:
        """Whether a job from the buffer is still this consumer's; counts and reports it if not."""
        if job._lease is None or not LeaseBook.over(job._lease, self.flows.clock()):
            return True
        self.dropped += 1
        logger.warning("job %s waited here longer than its lease, and is left to others; lower prefetch or raise RETRY", job.id)
        return False

    def hand_back(self) -> Flow[list[J]]:
        """Requeue what is in the buffer. Returns the jobs that the server does not take back: at-most-once ones."""
        jobs = list(self.buffer)
        self.buffer.clear()
        kept: list[J] = []
        by_node: dict[Any, list[J]] = {}
        for job in jobs:
            by_node.setdefault(job._route.node, []).append(job)
        for group in by_node.values():
            batch = [requests.for_jobs("ENQUEUE", [job.id]) for job in group]
            try:
                counts = yield from self.flows.batch(batch, group[0]._route)
            except DisqueueError as error:
                counts = [error] * len(group)
            kept += [job for job, count in zip(group, counts, strict=True) if count == 0]
            for job, count in zip(group, counts, strict=True):
                if isinstance(count, DisqueueError):
                    logger.warning("job %s could not be handed back (%s); it comes back when its lease ends", job.id, count)
        return kept


@contextlib.contextmanager
def stopping_on(signals: Iterable[signal.Signals], stop: Callable[[], None]) -> Generator[None]:
    """While inside, these signals call `stop`. Only for the main thread."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop()

    if threading.current_thread() is not threading.main_thread():
        raise ValueError("stop_on_signals works in the main thread only; call stop() from elsewhere")
    previous = {number: signal.signal(number, on_signal) for number in signals}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class Consumer:
    """A source of jobs that waits for them, survives nodes, and ends only by `stop`, `timeout` or an error of use.

    Jobs that were fetched ahead are kept alive, and given back when the loop ends.
    """

    def __init__(
        self,
        client: Client,
        queues: tuple[str | bytes, ...],
        prefetch: int,
        timeout: Duration | None,
        poll: Duration,
        stop_on_signals: bool,
    ) -> None:
        self._client = client
        self._supply: Supply[Job] = Supply(client.flows, queues, prefetch, timeout, poll)
        self._stop = threading.Event()
        self._signals = STOP_SIGNALS if stop_on_signals else ()

    def stop(self) -> None:
        """End the loop after the job that is being worked on. Safe from signal handlers and other threads."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether a stop was asked for."""
        return self._stop.is_set()

    @property
    def dropped(self) -> int:
        """Jobs that were fetched ahead and left to others, because their lease had ended meanwhile."""
        return self._supply.dropped

    def close(self) -> None:
        """Stop, and give back what was fetched ahead."""
        self.stop()
        self._hand_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Generator[Job]:
        with stopping_on(self._signals, self.stop) if self._signals else contextlib.nullcontext():
            try:
                while not self._stop.is_set():
                    job = self._next_buffered()
                    if job is not None:
                        yield job
                    elif not self._fetch() and self._supply.exhausted():
                        return
                yield from self._hand_back()
            finally:
                self._hand_back()

    def _next_buffered(self) -> Job | None:
        while self._supply.buffer:
            job = self._supply.buffer.popleft()
            self._client.keeper.release(job)
            if self._supply.usable(job):
                return job
        return None

    def _fetch(self) -> bool:
        raw, origin = self._client.run(self._supply.fetch(self._stop))
        jobs = self._client.make_jobs(raw, origin)
        self._supply.received(jobs)
        for job in jobs[1:]:
            self._client.keeper.hold(job)
        return bool(jobs)

    def _hand_back(self) -> list[Job]:
        for job in self._supply.buffer:
            self._client.keeper.release(job)
        return self._client.run(self._supply.hand_back()) if self._supply.buffer else []


class AsyncConsumer:
    """As `Consumer`, for `async for`."""

    def __init__(
        self,
        client: AsyncClient,
        queues: tuple[str | bytes, ...],
        prefetch: int,
        timeout: Duration | None,
        poll: Duration,
        stop_on_signals: bool,
    ) -> None:
        self._client = client
        self._supply: Supply[AsyncJob] = Supply(client.flows, queues, prefetch, timeout, poll)
        self._stop = asyncio.Event()
        self._signals = STOP_SIGNALS if stop_on_signals else ()

    def stop(self) -> None:
        """End the loop after the job that is being worked on. To be called in the loop's thread."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether a stop was asked for."""
        return self._stop.is_set()

    @property
    def dropped(self) -> int:
        """Jobs that were fetched ahead and left to others, because their lease had ended meanwhile."""
        return self._supply.dropped

    async def close(self) -> None:
        """Stop, and give back what was fetched ahead."""
        self.stop()
        await self._hand_back()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncGenerator[AsyncJob]:
        with self._stopping_on_signals():
            try:
                while not self._stop.is_set():
                    job = self._next_buffered()
                    if job is not None:
                        yield job
                    elif not await self._fetch() and self._supply.exhausted():
                        return
                for job in await self._hand_back():
                    yield job
            finally:
                await self._hand_back()

    @contextlib.contextmanager
    def _stopping_on_signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        for number in self._signals:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in self._signals:
                loop.remove_signal_handler(number)

    def _next_buffered(self) -> AsyncJob | None:
        while self._supply.buffer:
            job = self._supply.buffer.popleft()
            self._client.keeper.release(job)
            if self._supply.usable(job):
                return job
        return None

    async def _fetch(self) -> bool:
        raw, origin = await self._client.run(self._supply.fetch(self._stop))
        jobs = self._client.make_jobs(raw, origin)
        self._supply.received(jobs)
        for job in jobs[1:]:
            self._client.keeper.hold(job)
        return bool(jobs)

    async def _hand_back(self) -> list[AsyncJob]:
        for job in self._supply.buffer:
            self._client.keeper.release(job)
        return await self._client.run(self._supply.hand_back()) if self._supply.buffer else []
