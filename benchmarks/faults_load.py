"""Clients of a run, what they were answered, and what that says about the jobs (Jepsen's total-queue)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from disqueue.simulation.replies import Reply, ReplyError, ReplyReader, encode_request

QUEUE = b"q"


class ConnectionLostError(Exception):
    """The connection broke, or a reply did not come in time."""


class Connection:
    """One client connection that is made when it is needed."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._replies = ReplyReader()

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    async def open(self, timeout_s: float = 0.5) -> None:
        """Connect, unless it is. Raises `ConnectionLostError`."""
        if self._writer is None:
            try:
                self._reader, self._writer = await asyncio.wait_for(asyncio.open_connection(*self.address), timeout_s)
            except (OSError, TimeoutError) as error:
                raise ConnectionLostError(str(error)) from None
            self._replies = ReplyReader()

    async def call(self, *words: bytes, timeout_s: float = 1.0) -> Any:
        """Return the reply to a request; an error reply as `ReplyError`. Raises `ConnectionLostError`."""
        assert self._reader is not None
        assert self._writer is not None
        self._writer.write(encode_request(list(words)))
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    data = await self._reader.read(1 << 16)
                    if not data:
                        raise ConnectionLostError("closed")
                    replies: list[Reply] = self._replies.feed(data)
                    if replies:
                        return replies[0]
        except (OSError, TimeoutError) as error:
            raise ConnectionLostError(str(error)) from None
        finally:
            if not self._replies.is_empty:
                self.close()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None


@dataclass
class History:
    """What producers and consumers saw. A job is known by its body, a number."""

    attempted: set[bytes] = field(default_factory=set)
    confirmed: set[bytes] = field(default_factory=set)
    refused: int = 0
    unknown: int = 0
    deliveries: Counter[bytes] = field(default_factory=Counter)
    acks: int = 0
    refusals: Counter[str] = field(default_factory=Counter)

    def verdict(self) -> dict[str, Any]:
        """Return the classes of total-queue."""
        lost = self.confirmed - set(self.deliveries)
        return {
            "attempted": len(self.attempted),
            "confirmed": len(self.confirmed),
            "refused": self.refused,
            "unknown": self.unknown,
            "delivered": sum(self.deliveries.values()),
            "lost": len(lost),
            "unexpected": len(set(self.deliveries) - self.attempted),
            "duplicated": sum(count - 1 for count in self.deliveries.values()),
            "duplicated_jobs": sum(count > 1 for count in self.deliveries.values()),
            "recovered": len((self.attempted - self.confirmed) & set(self.deliveries)),
            "lost_jobs": sorted(body.decode() for body in lost)[:20],
            "refusals": dict(self.refusals.most_common(5)),
        }


class Load:
    """Producers and consumers, so many of each on every node."""

    def __init__(self, addresses: list[tuple[str, int]], arguments: Any) -> None:
        self.addresses = addresses
        self.history = History()
        self.producing = True
        self.consuming = True
        self._arguments = arguments
        self._next = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._dice = random.Random(arguments.seed)

    def start(self) -> None:
        for address in self.addresses:
            self._tasks.append(asyncio.create_task(self._produce(Connection(address))))
            for _ in range(2):
                self._tasks.append(asyncio.create_task(self._consume(Connection(address))))

    async def stop(self) -> None:
        """Let all finish what they are doing."""
        self.producing = self.consuming = False
        await asyncio.gather(*self._tasks)

    async def _produce(self, connection: Connection) -> None:
        arguments = self._arguments
        pause_s = len(self.addresses) / arguments.rate
        options = [b"RETRY", b"%d" % arguments.retry, b"REPLICATE", b"%d" % arguments.replicate]
        while self.producing:
            await asyncio.sleep(pause_s * self._dice.uniform(0.5, 1.5))
            try:
                await connection.open()
            except ConnectionLostError:
                continue
            self._next += 1
            body = b"%d" % self._next
            self.history.attempted.add(body)
            try:
                reply = await connection.call(b"ADDJOB", QUEUE, body, b"%d" % arguments.timeout_ms, *options)
            except ConnectionLostError:
                self.history.unknown += 1
                connection.close()
                continue
            if isinstance(reply, ReplyError):
                self.history.refused += 1
                self.history.refusals[reply.word] += 1
            else:
                self.history.confirmed.add(body)

    async def _consume(self, connection: Connection) -> None:
        while self.consuming:
            try:
                if not await self.take(connection, 500) and not connection.is_open:
                    await asyncio.sleep(0.1)
            except ConnectionLostError:
                connection.close()
                await asyncio.sleep(0.1)

    async def take(self, connection: Connection, timeout_ms: int) -> int:
        """Get some jobs and acknowledge them; return how many. Raises `ConnectionLostError`."""
        await connection.open()
        timeout = b"%d" % timeout_ms
        reply = await connection.call(
            b"GETJOB", b"TIMEOUT", timeout, b"COUNT", b"10", b"FROM", QUEUE, timeout_s=timeout_ms / 1000 + 1
        )
        if not isinstance(reply, list):
            return 0
        for _queue, _id, body in reply:
            self.history.deliveries[body] += 1
        acked = await connection.call(b"ACKJOB", *(job[1] for job in reply), timeout_s=3.0)
        if isinstance(acked, int):
            self.history.acks += acked
        return len(reply)

    async def drain(self, quiet_s: float, limit_s: float) -> float:
        """Take all that is left on all nodes, until nothing came for `quiet_s`; return how long it took."""
        loop = asyncio.get_running_loop()
        start = last = loop.time()

        async def one(connection: Connection) -> None:
            nonlocal last
            while loop.time() - last < quiet_s and loop.time() - start < limit_s:
                try:
                    if await self.take(connection, 500):
                        last = loop.time()
                except ConnectionLostError:
                    connection.close()
                    await asyncio.sleep(0.1)

        await asyncio.gather(*(one(Connection(address)) for address in self.addresses))
        return last - start


async def registered_jobs(addresses: list[tuple[str, int]]) -> list[int]:
    """Return how many jobs each node keeps; -1 for one that does not say."""
    found = []
    for address in addresses:
        connection = Connection(address)
        try:
            await connection.open()
            lines = (await connection.call(b"INFO", b"jobs", timeout_s=5.0)).decode().splitlines()
            found.append(int(dict(line.split(":", 1) for line in lines if ":" in line)["registered_jobs"]))
        except ConnectionLostError:
            found.append(-1)
        finally:
            connection.close()
    return found
