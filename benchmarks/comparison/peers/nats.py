"""nats-server with a JetStream work queue in memory, driven by nats-py (the extra `bench`)."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any

from comparison.peers.base import CYCLE, Peer, Work
from comparison.servers import HERE, Running, ask
from disqueue.cli.bench_load import split
from disqueue.cli.bench_process import Meter
from disqueue.cli.bench_throughput import Measured, Progress

STREAM, SUBJECT, CONSUMER = "jobs", "jobs.work", "workers"
GET_S = 10.0


class Nats(Peer):
    """Publish with confirmation, fetch, and acknowledge explicitly."""

    name = "NATS JetStream"
    program = "nats-server"
    can = frozenset((CYCLE,))
    share = 8

    def missing(self) -> str:
        if importlib.util.find_spec("nats") is None:
            return "nats-py is not installed: pip install 'disqueue[bench]'"
        return super().missing()

    def command(self, port: int, folder: str) -> Sequence[str]:
        return [self.program, "-a", HERE, "-p", str(port), "-js", "-sd", folder]

    def is_ready(self, port: int) -> bool:
        return ask(port, b"PING").startswith(b"INFO")

    def cycle(self, running: Running, work: Work, tell: Progress) -> Measured:
        return asyncio.run(self._cycle(running, work, tell))

    async def _cycle(self, running: Running, work: Work, tell: Progress) -> Measured:
        nats: Any = importlib.import_module("nats")
        done = 0

        def progress(count: int) -> None:
            nonlocal done
            done += count
            tell("cycle", done, work.jobs)

        connections = [await nats.connect(f"nats://{HERE}:{running.ports[0]}") for _ in range(work.connections)]
        try:
            first = connections[0].jetstream()
            await first.add_stream(name=STREAM, subjects=[SUBJECT], storage="memory", retention="workqueue")
            lanes = []
            for connection in connections:
                stream = connection.jetstream(publish_async_max_pending=2 * work.pipeline)
                lanes.append((stream, await stream.pull_subscribe(SUBJECT, durable=CONSUMER)))
            meter = Meter(running.pids)
            shares = split(work.jobs, work.connections)
            await asyncio.gather(*(_lane(*lane, work, share, progress) for lane, share in zip(lanes, shares, strict=True)))
            for connection in connections:
                await connection.flush()
            return Measured("cycle", work.jobs, meter.read())
        finally:
            for connection in connections:
                await connection.close()


async def _lane(stream: Any, consumer: Any, work: Work, share: int, progress: Any) -> None:
    """One connection: a window of jobs at a time."""
    body = b"x" * work.body_bytes
    while share:
        window = min(work.pipeline, share)
        confirmations = [await stream.publish_async(SUBJECT, body) for _ in range(window)]
        await asyncio.gather(*confirmations)
        left = window
        while left:
            jobs = await consumer.fetch(left, timeout=GET_S)
            for job in jobs:
                await job.ack()
            left -= len(jobs)
        share -= window
        progress(window)
