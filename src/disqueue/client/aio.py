"""The client for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack, overload

from disqueue.client import requests
from disqueue.client.consume import POLL_S, AsyncConsumer
from disqueue.client.durations import Duration, seconds
from disqueue.client.endpoints import Endpoint, Settings, SettingsArguments, resolve_nodes
from disqueue.client.errors import ClientClosedError
from disqueue.client.flow import BrokenError, Exchange, Flow, Flows, NotSentError
from disqueue.client.jobs import AsyncJob, ReceivedJob
from disqueue.client.keep import AsyncKeeper
from disqueue.client.requests import Argument, Request
from disqueue.client.router import Route, Router
from disqueue.client.serializers import Serializer, serializer_for
from disqueue.client.transport import AsyncNetworkTransport, AsyncTransport
from disqueue.client.values import ClusterNode, Hello, JobInfo, PauseState, PeekedJob, QueueInfo

T = TypeVar("T")


class AsyncClient:
    """A client of a Disqueue cluster. Connections are made as they are needed, in the event loop that runs then.

    `nodes`: a URL (`disque://:password@host:7711,host2:7711?retry_for=30`, `disques://` for TLS, `unix:///path`), an
    address, or a list of either; None takes the URL in the environment variable DISQUEUE_URL, or the local node.
    `serializer`: "bytes" (the default), "text", "json", "msgpack", or an object with `encode` and `decode`.
    The keywords are the fields of `Settings`; what a URL says comes before them.

    Commands raise a `ReplyError` when the server refuses, `NoNodeError` when no node was reached within `retry_for`
    seconds, and `UnknownOutcomeError` when an add was sent and no reply came. All are `DisqueueError`s.
    """

    def __init__(
        self,
        nodes: str | Iterable[str] | None = None,
        *,
        serializer: Serializer | str | None = None,
        transport: AsyncTransport | None = None,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        endpoints, self.settings = resolve_nodes(nodes, Settings(**settings))
        self.serializer = serializer_for(serializer)
        self._transport: AsyncTransport = transport or AsyncNetworkTransport(self.settings)
        self.clock = self._transport.clock
        self.flows = Flows(Router(endpoints, discover=self.settings.discover), self.settings.retry_for, self.clock)
        self.keeper = AsyncKeeper(self)
        self._route = Route()
        self._closed = False

    # -- adding

    async def add(
        self,
        queue: str | bytes,
        body: Any,
        *,
        timeout: Duration | None = 5.0,
        replicate: int | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        retry: Duration | None = None,
        ttl: Duration | None = None,
        maxlen: int | None = None,
        asynchronous: bool = False,
        duplicates_ok: bool = False,
    ) -> str:
        """Add a job and return its id.

        timeout: how long the node may take to place the copies; None is without limit.
        replicate: on how many nodes the job is before this returns; by default up to three, as many as there are.
        delay, at: deliver after this long, or not before this moment (with a time zone).
        retry: deliver again when not acknowledged after this long; 0 is at most once. By default a tenth of ttl, up to 5 minutes.
        ttl: forget the job after this long, by default a day.
        maxlen: refuse (`QueueFullError`) when the node's queue has that many jobs.
        asynchronous: return before the copies are placed.
        duplicates_ok: after a lost connection send again, at the risk of adding twice, instead of raising `UnknownOutcomeError`.

        Durations are seconds or timedeltas; the server counts whole seconds, so that they are rounded up.
        """
        options = requests.add_options(
            timeout=timeout,
            replicate=replicate,
            delay=delay,
            at=at,
            retry=retry,
            ttl=ttl,
            maxlen=maxlen,
            asynchronous=asynchronous,
            duplicates_ok=duplicates_ok,
        )
        return await self._one(requests.add(queue, self.serializer.encode(body), options))

    async def add_many(
        self,
        queue: str | bytes,
        bodies: Iterable[Any],
        *,
        timeout: Duration | None = 5.0,
        replicate: int | None = None,
        delay: Duration | None = None,
        at: datetime | None = None,
        retry: Duration | None = None,
        ttl: Duration | None = None,
        maxlen: int | None = None,
        asynchronous: bool = False,
        duplicates_ok: bool = False,
    ) -> list[str]:
        """Add many jobs with the same options, pipelined, and return their ids in order.

        Raises `BatchError` when some were not added; its `results` says which.
        """
        options = requests.add_options(
            timeout=timeout,
            replicate=replicate,
            delay=delay,
            at=at,
            retry=retry,
            ttl=ttl,
            maxlen=maxlen,
            asynchronous=asynchronous,
            duplicates_ok=duplicates_ok,
        )
        batch = [requests.add(queue, self.serializer.encode(body), options) for body in bodies]
        return await self.run(self.flows.add_many(batch, self._route))

    # -- getting

    async def get(self, *queues: str | bytes, count: int = 1, timeout: Duration | None = None) -> list[AsyncJob]:
        """Wait for jobs of these queues, the first named first, and return up to `count`; none after `timeout`.

        timeout: None waits for ever, 0 does not wait.
        """
        wait = None if timeout is None else seconds(timeout, "timeout")
        route = Route(self._route.node)
        raw_jobs = await self.run(self.flows.get(requests.queue_names(queues), count, wait, route))
        self._route.node = route.node
        return self.make_jobs(raw_jobs, Route(route.node, pinned=True))

    async def get_one(self, *queues: str | bytes, timeout: Duration | None = None) -> AsyncJob | None:
        """As `get`, for one job; None after `timeout`."""
        return next(iter(await self.get(*queues, timeout=timeout)), None)

    def consume(
        self,
        *queues: str | bytes,
        prefetch: int = 1,
        timeout: Duration | None = None,
        poll: Duration = POLL_S,
        stop_on_signals: bool = False,
    ) -> AsyncConsumer:
        """Jobs for an `async for` loop, without end; lost nodes are waited for and replaced.

        prefetch: how many jobs are fetched at once. Those that wait are kept alive, and given back at the end.
        timeout: end when no job came for this long; None never.
        poll: how long one request waits at the server; a stop takes effect after that at the latest.
        stop_on_signals: SIGINT and SIGTERM end the loop after the job at hand.
        """
        return AsyncConsumer(self, queues, prefetch, timeout, poll, stop_on_signals)

    # -- what becomes of jobs

    async def ack(self, *jobs: ReceivedJob | str | bytes) -> int:
        """Done: remove these jobs everywhere. Returns how many the node knew."""
        return await self._for_jobs("ACKJOB", jobs)

    async def fast_ack(self, *jobs: ReceivedJob | str | bytes) -> int:
        """As `ack` with fewer messages, best effort: a node that is away now may deliver its copy again."""
        return await self._for_jobs("FASTACK", jobs)

    async def delete(self, *jobs: ReceivedJob | str | bytes) -> int:
        """Delete these jobs and their copies on all nodes, whatever their state (DELJOB). `ack` is what cancels a job."""
        return await self._for_jobs("DELJOB", jobs)

    async def nack(self, *jobs: ReceivedJob | str | bytes) -> int:
        """Failed: queue these jobs again at once, and count that."""
        return await self._for_jobs("NACK", jobs)

    async def enqueue(self, *jobs: ReceivedJob | str | bytes) -> int:
        """Queue these jobs now if they are not queued, also before their delay is over."""
        return await self._for_jobs("ENQUEUE", jobs)

    async def dequeue(self, *jobs: ReceivedJob | str | bytes) -> int:
        """Take these jobs out of their queues; they come back when their retry time is over."""
        return await self._for_jobs("DEQUEUE", jobs)

    async def working(self, job: ReceivedJob | str | bytes) -> int:
        """Still at it: postpone the next delivery. Returns for how many seconds (0: it is delivered once only)."""
        job_id, route = self._place(job)
        return await self.run(self.flows.one(requests.working(job_id), route))

    async def show(self, job: ReceivedJob | str | bytes) -> JobInfo | None:
        """What the node knows of a job; None if nothing."""
        job_id, route = self._place(job)
        return await self.run(self.flows.one(requests.show(job_id), route))

    # -- queues

    async def queue_length(self, queue: str | bytes) -> int:
        """How many jobs are queued on the node."""
        return await self._one(requests.queue_length(queue))

    async def queue_stat(self, queue: str | bytes) -> QueueInfo | None:
        """Figures of the queue on the node; None if it has none of that name."""
        return await self._one(requests.queue_stat(queue))

    async def peek(self, queue: str | bytes, count: int = 10, *, newest: bool = False) -> list[PeekedJob]:
        """Look at queued jobs without taking them, oldest first, or newest first."""
        return await self._one(requests.peek(queue, count, newest))

    async def pause(self, queue: str | bytes, state: PauseState | None = None, *, everywhere: bool = False) -> str:
        """Stop a queue's input ("in"), output ("out"), "all" or "none"; returns the state. None only asks."""
        return await self._one(requests.pause(queue, state, everywhere))

    async def scan_queues(
        self,
        *,
        count: int = 100,
        min_length: int | None = None,
        max_length: int | None = None,
        min_import_rate: int | None = None,
    ) -> AsyncIterator[str]:
        """The names of the node's queues. One that is there all the time comes at least once."""
        route = await self._scan_route()
        cursor = -1
        while cursor != 0:
            request = requests.scan_queues(max(cursor, 0), count, min_length, max_length, min_import_rate)
            cursor, names = await self.run(self.flows.one(request, route))
            for name in names:
                yield name

    async def scan_jobs(
        self, queue: str | bytes | None = None, *, states: Iterable[str] = (), count: int = 100
    ) -> AsyncIterator[JobInfo]:
        """The node's jobs, of one queue and in some states if so asked. One that is there all the time comes at least once."""
        route, words = (await self._scan_route(), requests.scan_words(queue, states, count))
        cursor = -1
        while cursor != 0:
            cursor, jobs = await self.run(self.flows.one(requests.scan_jobs(max(cursor, 0), words), route))
            for job in jobs:
                yield job

    async def scan_job_ids(
        self, queue: str | bytes | None = None, *, states: Iterable[str] = (), count: int = 100
    ) -> AsyncIterator[str]:
        """As `scan_jobs`, only the ids."""
        route, words = (await self._scan_route(), requests.scan_words(queue, states, count))
        cursor = -1
        while cursor != 0:
            cursor, ids = await self.run(self.flows.one(requests.scan_job_ids(max(cursor, 0), words), route))
            for job_id in ids:
                yield job_id

    # -- nodes

    @property
    def node(self) -> Endpoint | None:
        """The node that is used at present; None before the first command."""
        return self._route.node.endpoint if self._route.node is not None else None

    async def hello(self) -> Hello:
        """The node's id and the cluster as it sees it."""
        return await self._one(requests.hello())

    async def ping(self) -> None:
        """Returns when the node answers."""
        await self._one(requests.ping())

    async def info(self, section: str | None = None) -> dict[str, int | float | str]:
        """The node's figures."""
        return await self._one(requests.info(section))

    @overload
    async def cluster(self, subcommand: Literal["nodes"]) -> list[ClusterNode]: ...
    @overload
    async def cluster(self, subcommand: Literal["info"]) -> dict[str, int | float | str]: ...
    @overload
    async def cluster(self, subcommand: str, *args: Argument) -> Any: ...
    async def cluster(self, subcommand: str, *args: Argument) -> Any:
        """CLUSTER: "nodes" and "info" as values; "myid", "meet", "forget", "leaving", "reset", … as text."""
        return await self._one(requests.cluster(subcommand, args))

    async def config_get(self, pattern: str = "*") -> dict[str, str]:
        """The node's configuration."""
        return await self._one(requests.config_get(pattern))

    async def config_set(self, name: str, value: Argument) -> None:
        """Change the node's configuration."""
        return await self._one(requests.config_set(name, value))

    async def execute(self, *args: Argument, resend: bool = False, block: Duration | None = 0.0) -> Any:
        """Any command; the reply as it comes: bytes, int, list, dict or None. Raises its error.

        resend: send again when the connection breaks before the reply.
        block: how long the server may keep it waiting; None is for ever.
        """
        return await self._one(requests.raw(args, resend=resend, block=block))

    # -- life

    async def close(self) -> None:
        """Close all connections. The client can't be used after that."""
        self._closed = True
        await self.keeper.close()
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncClient {', '.join(str(node.endpoint) for node in self.flows.router.nodes)}>"

    # -- for the other parts of this package

    async def run(self, flow: Flow[T]) -> T:
        """Do what a flow asks for, until it returns its value or raises."""
        if self._closed:
            raise ClientClosedError("the client is closed")
        try:
            effect = next(flow)
            while True:
                try:
                    result: list[Any] | None = None
                    if isinstance(effect, Exchange):
                        result = await self._transport.exchange(effect.endpoint, effect.requests)
                    else:
                        await self._transport.pause(effect.seconds, effect.stop)
                except (NotSentError, BrokenError) as error:
                    if self._closed:
                        raise ClientClosedError("the client was closed during the command") from error
                    effect = flow.throw(error)
                else:
                    effect = flow.send(result)
        except StopIteration as done:
            value: T = done.value
            return value

    def make_jobs(self, raw_jobs: list[Any], route: Route) -> list[AsyncJob]:
        """Jobs from what GETJOB returned."""
        now = self.clock()
        return [AsyncJob(self, fields, route, self.serializer, now) for fields in raw_jobs]

    async def _one(self, request: Request[T]) -> T:
        return await self.run(self.flows.one(request, self._route))

    def _place(self, job: ReceivedJob | str | bytes) -> tuple[str | bytes, Route]:
        return (job.id, job._route) if isinstance(job, ReceivedJob) else (job, self._route)

    async def _for_jobs(self, command: str, jobs: Sequence[ReceivedJob | str | bytes]) -> int:
        return await self.run(self.flows.by_node(command, [self._place(job) for job in jobs]))

    async def _scan_route(self) -> Route:
        await self.ping()
        return replace(self._route, strict=True)
