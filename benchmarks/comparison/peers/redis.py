"""Redis as a queue: lists and streams, without persistence."""

from __future__ import annotations

from collections.abc import Sequence

from comparison.peers.base import ProtocolPeer, Work
from disqueue.cli.bench_protocols import Protocol, RedisList, RedisStream


class Redis(ProtocolPeer):
    """redis-server, with lists or with streams."""

    program = "redis-server"

    def __init__(self, kind: type[RedisList] | type[RedisStream]) -> None:
        self.name = "Redis list" if kind is RedisList else "Redis stream"
        self._kind = kind

    def command(self, port: int, folder: str) -> Sequence[str]:
        return [self.program, "--port", str(port), "--dir", folder, "--save", "", "--appendonly", "no"]

    def protocol(self, queue: bytes, work: Work, waits: bool) -> Protocol:
        return self._kind(queue, work.body_bytes, 0, waits)
