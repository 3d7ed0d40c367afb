"""Clients of a broker in this process, in virtual time: the session that cases are played on."""

from __future__ import annotations

import random
from collections import deque

from disqueue.commands.broker import Broker
from disqueue.commands.ports import DetachedServer
from disqueue.config.configuration import Configuration
from disqueue.core.client import NOT_BLOCKED, Client
from disqueue.core.node import Node
from disqueue.core.settings import Settings
from disqueue.wire.resp import ReplyWriter

from ..conformance.replies import Reply, ReplyDecoder

START_MS = 5_000_000
START_WALL_MS = 1_750_000_000_000
NODE_ID = b"0123456789abcdef0123456789abcdef01234567"
WAKE_UPS_MAX = 100_000


class VirtualClock:
    """Monotonic and wall time that move when they are told to; the broker measures with it."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.wall_ms = START_WALL_MS

    def elapsed_us(self) -> int:
        return self.now_ms * 1000

    def wall_us(self) -> int:
        return self.wall_ms * 1000

    def move(self, milliseconds: int) -> None:
        """Let time pass."""
        self.now_ms += milliseconds
        self.wall_ms += milliseconds


class VirtualClient:
    """A client and the two ends of its connection."""

    def __init__(self, number: int) -> None:
        self.core = Client(number, ReplyWriter(), f"127.0.0.1:{number}")
        self.decoder = ReplyDecoder()
        self.requests: deque[list[bytes]] = deque()


class BrokerSession:
    """Executes requests one a pass, as a server does that reads them one by one."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        entropy = random.Random(1)
        self.node = Node(Settings(), entropy.randbytes, NODE_ID)
        self.node.begin_pass(self.clock.now_ms, self.clock.wall_ms)
        self.configuration = Configuration()
        self.server = DetachedServer()
        self.broker = Broker(self.node, self.configuration, self.server, self.clock)
        self.node.log = self.watch_log
        self.node.on_unblock = self.go_on
        self.asleep = False
        self.clients: dict[str, VirtualClient] = {}
        self.ready: list[VirtualClient] = []

    @staticmethod
    def watch_log(_level: str, event: str, *_: object, **fields: object) -> None:
        """No handler may raise: the broker would hide it behind an error reply."""
        error = fields.get("exception")
        if isinstance(error, Exception):
            raise AssertionError(f"{event}: {fields}") from error

    def client(self, letter: str) -> VirtualClient:
        """The client, connected when it is first used."""
        if letter not in self.clients:
            client = self.clients[letter] = VirtualClient(len(self.clients) + 1)
            self.server.connected.append(client.core)
            self.broker.connect(client.core)
        return self.clients[letter]

    def go_on(self, core: Client) -> None:
        """A client is not blocked any more: what it has sent meanwhile is executed in the next pass."""
        self.ready.extend(client for client in self.clients.values() if client.core is core)

    def run_pass(self) -> None:
        """One pass: due timers (not in the first one after standing still), then what clients have sent."""
        self.node.begin_pass(self.clock.now_ms, self.clock.wall_ms)
        if not self.asleep:
            self.node.advance()
        self.asleep = False
        self.execute_ready()
        self.node.end_pass()
        if self.ready:
            self.run_pass()

    def execute_ready(self) -> None:
        """Execute the requests of clients that are not blocked."""
        ready, self.ready = self.ready, []
        for client in ready:
            while client.requests and client.core.blocked == NOT_BLOCKED:
                self.broker.execute(client.core, client.requests.popleft())

    # -- the steps of a transcript

    def send(self, client: str, request: list[bytes]) -> None:
        self.client(client).requests.append(request)
        self.ready.append(self.client(client))
        self.run_pass()

    def send_raw(self, client: str, data: bytes) -> None:
        raise AssertionError("bytes go to a real server")

    def receive(self, client: str) -> Reply:
        receiver = self.client(client)
        receiver.decoder.feed(receiver.core.reply.take())
        reply = receiver.decoder.next()
        assert reply is not None, "there is no reply"
        return reply

    def receive_close(self, client: str) -> None:
        assert self.client(client).core.close_after_reply

    def disconnect(self, client: str) -> None:
        core = self.clients.pop(client).core
        self.server.connected.remove(core)
        self.broker.disconnect(core)
        self.run_pass()

    def wait_blocked(self, count: int) -> None:
        blocked = sum(client.core.blocked != NOT_BLOCKED for client in self.clients.values())
        assert blocked == count, f"{blocked} clients are blocked"

    def advance(self, milliseconds: int) -> None:
        end_ms = self.clock.now_ms + milliseconds
        for _ in range(WAKE_UPS_MAX):
            deadline_ms = self.node.next_deadline_ms()
            if deadline_ms < 0 or deadline_ms > end_ms:
                break
            self.clock.move(max(0, deadline_ms - self.clock.now_ms))
            self.run_pass()
        else:
            raise AssertionError(f"more than {WAKE_UPS_MAX} wake-ups in {milliseconds} ms")
        self.clock.move(end_ms - self.clock.now_ms)

    def pass_unnoticed(self, milliseconds: int) -> None:
        self.clock.move(milliseconds)
        self.asleep = True

    def move_wall_clock(self, milliseconds: int) -> None:
        self.clock.wall_ms += milliseconds

    def check_integrity(self) -> None:
        """What must hold after every case: each client has all its replies, and no client is left in a table."""
        for letter, client in self.clients.items():
            assert not client.core.reply.size, f"client {letter} has a reply that nobody wanted: {client.core.reply.take()!r}"
        for letter in list(self.clients):
            self.disconnect(letter)
        assert not any(queue.waiters for queue in self.node.queues.values())
