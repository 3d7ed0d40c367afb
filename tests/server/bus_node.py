"""A membership on real sockets inside the test's own event loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable

from disqueue.core.links import Bus, BusSettings
from disqueue.core.membership import Membership
from disqueue.core.membership_ports import MembershipSettings
from disqueue.core.peer import Peer
from disqueue.server.peers import PeerNetwork
from disqueue.wire.job_records import AnyRecord
from disqueue.wire.records import Ping, Pong

WAIT_S = 20.0


class LoopNode:
    """One node; its passes end as those of a server do."""

    def __init__(
        self,
        number: int,
        secret: bytes = b"secret",
        tls: tuple[ssl.SSLContext, ssl.SSLContext] | None = None,
        node_timeout_ms: int = 5_000,
        closed: str = "",
    ) -> None:
        self.lines: list[tuple[str, str, dict[str, object]]] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        settings = MembershipSettings(node_timeout_ms, "", 1000 + number, self.port)
        self.members = Membership(b"%040x" % number, number, settings, lambda *line: self.lines.append(line))
        server_tls, client_tls = tls or (None, None)
        self.network = PeerNetwork(self.begin_event, lambda address: closed, ["127.0.0.1"], server_tls, client_tls)
        self.bus = self.network.bus = Bus(self.members, self.network, BusSettings(secret), self.deliver)
        self.got: list[AnyRecord] = []
        self.in_pass = False
        self.timer: asyncio.TimerHandle | None = None
        self.tick()

    async def start(self) -> None:
        await self.network.listen([self.socket])
        self.begin_event()

    async def stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.bus.close()
        self.network.close()
        for _ in range(3):
            await asyncio.sleep(0)

    def tick(self) -> None:
        self.members.begin_pass(time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000)

    def begin_event(self) -> None:
        if not self.in_pass:
            self.in_pass = True
            self.tick()
            self.members.advance()
            asyncio.get_running_loop().call_soon(self.end_pass)

    def end_pass(self) -> None:
        self.members.advance()
        self.bus.flush()
        self.in_pass = False
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.members.wake_ms >= 0:
            delay_ms = max(0, self.members.wake_ms - self.members.now_ms)
            self.timer = asyncio.get_running_loop().call_later(delay_ms / 1000, self.begin_event)

    def deliver(self, peer: Peer, records: list[AnyRecord]) -> None:
        for record in records:
            if isinstance(record, Ping | Pong):
                self.members.receive(peer, record)
            else:
                self.got.append(record)

    def meet(self, host: str, port: int) -> None:
        self.begin_event()
        self.members.joining.meet(host, 7711, port)

    def logged(self, event: str) -> list[dict[str, object]]:
        return [fields for _, name, fields in self.lines if name == event]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; fails when it does not come true."""
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen"
        await asyncio.sleep(0.005)
