"""A server in this process and its clients, all in one event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

from disqueue.config.configuration import Configuration
from disqueue.core.node import Node
from disqueue.core.settings import Settings
from disqueue.server.listeners import open_tcp
from disqueue.server.shell import Shell
from disqueue.testing.server import free_port

ANSWER_S = 20.0
TURNS_MAX = 20_000


class Talker:
    """One client connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def read(self, count: int) -> bytes:
        return await asyncio.wait_for(self.reader.readexactly(count), ANSWER_S)

    async def ask(self, data: bytes, reply: bytes) -> None:
        """Send a request and expect exactly this reply."""
        self.send(data)
        assert await self.read(len(reply)) == reply

    async def line(self) -> bytes:
        return await asyncio.wait_for(self.reader.readline(), ANSWER_S)

    async def rest(self) -> bytes:
        """All that comes until the server closes."""
        return await asyncio.wait_for(self.reader.read(), ANSWER_S)

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            pass


class Place:
    """A running shell; `connect` gives clients."""

    def __init__(self, options: dict[str, str]) -> None:
        configuration = Configuration()
        configuration.set(list(options.items()))
        self.node = Node(Settings(), os.urandom, b"b" * 40)
        self.shell = Shell(self.node, configuration)
        self.port = free_port()
        self.talkers: list[Talker] = []
        self.passes = 0
        self.shell.end_of_pass.append(self._count)

    def _count(self) -> None:
        self.passes += 1

    async def connect(self) -> Talker:
        talker = Talker(*await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 26))
        self.talkers.append(talker)
        return talker

    async def until(self, condition: Callable[[], Any]) -> None:
        """Let the loop turn until the condition holds."""
        end = asyncio.get_running_loop().time() + ANSWER_S
        while not condition():
            assert asyncio.get_running_loop().time() < end, "it did not happen"
            await asyncio.sleep(0.001)


def play(
    scene: Callable[[Place], Awaitable[None]], factory: Callable[[], asyncio.AbstractEventLoop] | None, **options: str
) -> None:
    """Run a scene on a fresh server; at the end nothing may be left over."""

    async def run() -> None:
        place = Place({name.replace("_", "-"): value for name, value in options.items()})
        place.shell.use_loop(asyncio.get_running_loop())
        await place.shell.start(open_tcp(["127.0.0.1"], place.port))
        try:
            await asyncio.wait_for(scene(place), 3 * ANSWER_S)
            for talker in place.talkers:
                await talker.close()
            await place.until(lambda: not place.shell.connections and not place.shell.draining)
            assert place.node.buffer_bytes == 0
            assert place.node.blocked_clients == 0
        finally:
            place.shell.stop()

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(run())
