"""RabbitMQ with a quorum queue for each connection, driven by aio-pika (the extra `bench`)."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from comparison.peers.base import CYCLE, Peer, Work
from comparison.servers import HERE, Running, ask, free_port
from disqueue.cli.bench_load import split
from disqueue.cli.bench_process import Meter
from disqueue.cli.bench_throughput import Measured, Progress

SCRIPT = "/usr/lib/rabbitmq/bin/rabbitmq-server"
"""Where distributions keep the script that starts a node as whoever asks; the one on the path changes to a user of its own."""
QUEUE = "jobs"
GET_S = 30.0


class RabbitMQ(Peer):
    """Publish with confirmation, consume with a prefetch of the window, acknowledge one by one."""

    name = "RabbitMQ quorum queue"
    program = "rabbitmq-server"
    can = frozenset((CYCLE,))
    share = 20

    def __init__(self) -> None:
        self._names_port = 0

    def missing(self) -> str:
        if importlib.util.find_spec("aio_pika") is None:
            return "aio-pika is not installed: pip install 'disqueue[bench]'"
        return super().missing()

    def version(self) -> str:
        """The name of its library folder: asking the program itself takes seconds and starts a node."""
        folders = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*"))
        return folders[-1].name.replace("rabbitmq_server-", "RabbitMQ ") if folders else "RabbitMQ"

    def command(self, port: int, folder: str) -> Sequence[str]:
        return [SCRIPT if Path(SCRIPT).exists() else self.program]

    def environment(self, port: int, folder: str) -> Mapping[str, str]:
        return {
            "HOME": folder,
            "ERL_EPMD_PORT": str(self._names_port),
            "RABBITMQ_NODENAME": f"compare{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HERE,
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_MNESIA_BASE": folder,
            "RABBITMQ_LOG_BASE": folder,
            "RABBITMQ_PID_FILE": f"{folder}/pid",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
        }

    def is_ready(self, port: int) -> bool:
        return ask(port, b"hello, AMQP?\r\n").startswith(b"AMQP")

    @contextmanager
    def nodes(self, count: int = 1) -> Iterator[Running]:
        self._names_port = free_port({free_port(set())})  # not the one that the node will take
        try:
            with super().nodes(count) as running:
                yield running
        finally:
            self._end_names()

    def _end_names(self) -> None:
        """Erlang's name server stays when its nodes go."""
        if shutil.which("epmd"):
            environment = {**os.environ, "ERL_EPMD_PORT": str(self._names_port)}
            subprocess.run(["epmd", "-kill"], env=environment, capture_output=True, check=False, timeout=GET_S)

    def cycle(self, running: Running, work: Work, tell: Progress) -> Measured:
        return asyncio.run(self._cycle(running, work, tell))

    async def _cycle(self, running: Running, work: Work, tell: Progress) -> Measured:
        aio_pika: Any = importlib.import_module("aio_pika")
        done = 0

        def progress(count: int) -> None:
            nonlocal done
            done += count
            tell("cycle", done, work.jobs)

        connections = [await aio_pika.connect(host=HERE, port=running.ports[0]) for _ in range(work.connections)]
        try:
            lanes = []
            for number, connection in enumerate(connections):
                lanes.append(_Lane(await connection.channel(publisher_confirms=True), f"{QUEUE}{number}", work, progress))
                await lanes[-1].begin(aio_pika)
            meter = Meter(running.pids)
            shares = split(work.jobs, work.connections)
            await asyncio.gather(*(lane.run(share) for lane, share in zip(lanes, shares, strict=True)))
            return Measured("cycle", work.jobs, meter.read())
        finally:
            for connection in connections:
                await connection.close()


class _Lane:
    """One connection: a window of jobs at a time."""

    def __init__(self, channel: Any, queue: str, work: Work, progress: Any) -> None:
        self._channel = channel
        self._queue = queue
        self._work = work
        self._progress = progress
        self._arrived: asyncio.Queue[Any] = asyncio.Queue()
        self._message: Any = None

    async def begin(self, aio_pika: Any) -> None:
        self._message = aio_pika.Message(b"x" * self._work.body_bytes, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await self._channel.set_qos(prefetch_count=self._work.pipeline)
        queue = await self._channel.declare_queue(self._queue, durable=True, arguments={"x-queue-type": "quorum"})
        await queue.consume(self._arrived.put)

    async def run(self, share: int) -> None:
        exchange = self._channel.default_exchange
        while share:
            window = min(self._work.pipeline, share)
            await asyncio.gather(*(exchange.publish(self._message, self._queue) for _ in range(window)))
            for _ in range(window):
                job = await asyncio.wait_for(self._arrived.get(), GET_S)
                await job.ack()
            share -= window
            self._progress(window)
