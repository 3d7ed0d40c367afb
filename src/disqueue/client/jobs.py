"""Jobs as a consumer gets them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self

from disqueue.client import replies
from disqueue.client.errors import NoNodeError

if TYPE_CHECKING:
    from types import TracebackType

    from disqueue.client.aio import AsyncClient
    from disqueue.client.leases import Lease
    from disqueue.client.router import Route
    from disqueue.client.serializers import Serializer
    from disqueue.client.sync import Client

logger = logging.getLogger("disqueue.client")


class ReceivedJob:
    """A job that was delivered to this client; `Job` and `AsyncJob` add what can be done with it."""

    __slots__ = ("_lease", "_received_at", "_route", "_serializer", "additional_deliveries", "body", "id", "nacks", "queue")

    def __init__(self, fields: list[Any], route: Route, serializer: Serializer, received_at: float) -> None:
        self.queue = replies.text(fields[0])
        self.id = replies.text(fields[1])
        self.body: bytes = fields[2]
        counters = replies.fields(fields[3:])
        self.nacks: int = counters.get("nacks", 0)
        """How often a worker gave it back as failed."""
        self.additional_deliveries: int = counters.get("additional-deliveries", 0)
        """How often it was queued again for any other reason: a worker died, or took too long."""
        self._route = route
        self._serializer = serializer
        self._received_at = received_at
        self._lease: Lease | None = None

    @property
    def data(self) -> Any:
        """The body, decoded by the client's serializer."""
        return self._serializer.decode(self.body)

    @property
    def lease_lost(self) -> bool:
        """Whether it became known, while the job was kept alive, that it may be delivered to somebody else."""
        return self._lease is not None and self._lease.lost

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} from {self.queue!r}, {len(self.body)} bytes>"


class Job(ReceivedJob):
    """A job of `Client`. `with job:` acknowledges it at the end, or gives it back when the block raises.

    The end of the block raises nothing of its own when no node can be reached: that is logged, and the job is delivered again.
    """

    __slots__ = ("_client",)

    def __init__(self, client: Client, fields: list[Any], route: Route, serializer: Serializer, received_at: float) -> None:
        super().__init__(fields, route, serializer, received_at)
        self._client = client

    def ack(self) -> None:
        """Done: the job is removed everywhere."""
        self._client.ack(self)

    def fast_ack(self) -> None:
        """As `ack`, with fewer messages and weaker: a copy on a node that is away now may be delivered again."""
        self._client.fast_ack(self)

    def nack(self) -> None:
        """Failed: the job is queued again at once, and its `nacks` counter grows."""
        self._client.nack(self)

    def requeue(self) -> None:
        """Give the job back untouched: it is queued again at once; `nacks` stays."""
        self._client.enqueue(self)

    def working(self) -> int:
        """Still at it: the next delivery is postponed. Returns for how many seconds."""
        return self._client.working(self)

    def __enter__(self) -> Self:
        self._client.keeper.hold(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._client.keeper.release(self)
        try:
            self._settle(kind)
        except NoNodeError as unreachable:
            logger.error("%s could not be settled, and will be delivered again: %s", self, unreachable)

    def _settle(self, kind: type[BaseException] | None) -> None:
        if kind is None:
            self.ack()
        elif issubclass(kind, Exception):
            self.nack()
        else:  # interrupted: not the job's fault
            self.requeue()


class AsyncJob(ReceivedJob):
    """A job of `AsyncClient`. `async with job:` acknowledges it at the end, or gives it back when the block raises.

    The end of the block raises nothing of its own when no node can be reached: that is logged, and the job is delivered again.
    """

    __slots__ = ("_client",)

    def __init__(self, client: AsyncClient, fields: list[Any], route: Route, serializer: Serializer, received_at: float) -> None:
        super().__init__(fields, route, serializer, received_at)
        self._client = client

    async def ack(self) -> None:
        """Done: the job is removed everywhere."""
        await self._client.ack(self)

    async def fast_ack(self) -> None:
        """As `ack`, with fewer messages and weaker: a copy on a node that is away now may be delivered again."""
        await self._client.fast_ack(self)

    async def nack(self) -> None:
        """Failed: the job is queued again at once, and its `nacks` counter grows."""
        await self._client.nack(self)

    async def requeue(self) -> None:
        """Give the job back untouched: it is queued again at once; `nacks` stays."""
        await self._client.enqueue(self)

    async def working(self) -> int:
        """Still at it: the next delivery is postponed. Returns for how many seconds."""
        return await self._client.working(self)

    async def __aenter__(self) -> Self:
        self._client.keeper.hold(self)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._client.keeper.release(self)
        try:
            await self._settle(kind)
        except NoNodeError as unreachable:
            logger.error("%s could not be settled, and will be delivered again: %s", self, unreachable)

    async def _settle(self, kind: type[BaseException] | None) -> None:
        if kind is None:
            await self.ack()
        elif issubclass(kind, Exception):
            await self.nack()
        else:  # cancelled: not the job's fault
            await self.requeue()
