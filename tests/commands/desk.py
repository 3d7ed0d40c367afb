"""A broker in this process with clients, on virtual time, for tests of commands."""

from __future__ import annotations

import random

from disqueue.commands.broker import Broker
from disqueue.commands.ports import DetachedServer
from disqueue.config.configuration import Configuration
from disqueue.core.client import Client
from disqueue.core.node import Node
from disqueue.core.settings import Settings
from disqueue.wire.resp import ReplyWriter

NODE_ID = b"a" * 40


class Clock:
    """Time that moves only when told to."""

    def __init__(self) -> None:
        self.us = 1_000_000_000
        self.step_us = 0

    def elapsed_us(self) -> int:
        self.us += self.step_us
        return self.us

    def wall_us(self) -> int:
        return 1_700_000_000_123_456


class Server(DetachedServer):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[object] = []
        self.refusal = ""

    def sleep(self, seconds: float) -> None:
        self.asked.append(("sleep", seconds))

    def shutdown(self, rewrite: bool) -> str:
        self.asked.append(("shutdown", rewrite))
        return self.refusal

    def restart(self, delay_ms: int) -> str:
        self.asked.append(("restart", delay_ms))
        return self.refusal


class Desk:
    """A broker and its clients; `call` gives the reply's bytes."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.server = Server()
        self.logged: list[tuple[str, str, dict[str, object]]] = []
        self.node = Node(Settings(), random.Random(1).randbytes, NODE_ID)
        self.node.log = lambda level, event, *rest, **fields: self.logged.append((level, event, fields))
        self.node.begin_pass(5_000, 1_700_000_000_000)
        self.configuration = Configuration()
        self.broker = Broker(self.node, self.configuration, self.server, self.clock)
        self.writers: dict[int, ReplyWriter] = {}
        self.client = self.connect()

    def connect(self) -> Client:
        number = len(self.server.connected) + 1
        self.writers[number] = ReplyWriter()
        client = Client(number, self.writers[number], f"127.0.0.1:{4000 + number}")
        self.server.connected.append(client)
        self.broker.connect(client)
        return client

    def call(self, *words: str | bytes | int, client: Client | None = None) -> bytes:
        client = client or self.client
        args = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.broker.execute(client, args)
        return self.writers[client.id].take()
