"""Servers without sockets: the whole of the server's code but the event loop and the kernel, driven step by step.

Time and randomness are fixed, so that each run does the very same work.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from typing import Any

from disqueue.commands.clock import SystemClock
from disqueue.config.configuration import Configuration
from disqueue.core.links import Bus, BusSettings, Link
from disqueue.core.membership import Membership
from disqueue.core.membership_ports import MembershipSettings
from disqueue.core.node import Node
from disqueue.core.settings import Settings
from disqueue.journal.disk import OsDisk
from disqueue.journal.runtime import JournalRuntime, JournalSettings
from disqueue.server.connection import Connection
from disqueue.server.shell import Shell

PORT, BUS_PORT = 7711, 17711
PASSES_MAX = 10_000


class StepClock(SystemClock):
    """Moves a millisecond each pass."""

    def __init__(self) -> None:
        self.ms = 1 << 40  # after whatever the shell has read from the real clock

    def elapsed_us(self) -> int:
        return self.ms * 1000

    def now_ms(self) -> int:
        return self.ms

    def wall_us(self) -> int:
        return self.wall_ms() * 1000

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.ms - (1 << 40)


class StepLoop:
    """The part of an event loop that a shell uses; what is due later never comes, the machine runs passes itself."""

    def __init__(self) -> None:
        self.soon: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []

    def call_soon(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.soon.append((function, arguments))

    def call_later(self, _seconds: float, _function: Callable[..., Any], *_arguments: Any) -> StepLoop:
        return self

    def cancel(self) -> None:
        """A timer of `call_later` is not wanted any more."""

    def run(self) -> None:
        soon, self.soon = self.soon, []
        for function, arguments in soon:
            function(*arguments)


class ClientTransport:
    """The server's side of a client: most goes through the socket, what does not fit there is kept."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self._socket, self._far = socket.socketpair()
        self._socket.setblocking(False)
        self._far.setblocking(False)

    def get_extra_info(self, name: str) -> object:
        return self._socket if name == "socket" else ("127.0.0.1", 50_000)

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def take(self) -> bytes:
        parts = []
        while True:
            try:
                parts.append(self._far.recv(1 << 20))
            except BlockingIOError:
                break
        data, self.written = b"".join(parts + self.written), []
        return data

    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int) -> None:
        """Nothing: it never fills up."""

    def get_write_buffer_size(self) -> int:
        return 0


class Client:
    """A connection to a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._transport = ClientTransport()
        self._protocol: Connection = machine.shell.new_connection()
        self._protocol.connection_made(self._transport)  # type: ignore[arg-type]

    def send(self, data: bytes) -> None:
        """Bytes arrive at the server, in parts as large as its buffers."""
        view = memoryview(data)
        while view:
            room = memoryview(self._protocol.get_buffer(-1))
            part = min(len(room), len(view))
            room[:part] = view[:part]
            del room
            self._protocol.buffer_updated(part)
            view = view[part:]

    def take(self) -> bytes:
        """What the server has written."""
        return self._transport.take()


class BusTransport:
    """One end of a link in memory."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.far: BusTransport
        self.link: Link

    def write(self, data: bytes) -> None:
        self.far.machine.inbox.append((self.far, data))

    def close(self) -> None:
        """Nothing: links of a run live as long as it."""

    def abort(self) -> None:
        """As `close`."""

    def buffered_bytes(self) -> int:
        return 0


class AtOnce:
    """Does background work of a journal at once."""

    def submit(self, task: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        task()
        done(None)

    def wait(self) -> None:
        """Nothing is ever left."""


class Machine:
    """One server: `shell` and `node`, and a bus to the others of `cluster`."""

    def __init__(self, cluster: list[Machine], number: int) -> None:
        self._cluster = cluster
        dice = random.Random(number)
        self.address = f"10.0.0.{number + 1}"
        self.inbox: list[tuple[BusTransport, bytes]] = []
        members = Membership(dice.randbytes(20).hex().encode(), number + 1, MembershipSettings(), lambda *_: None)
        members.settings.announce_address = members.me.address = self.address
        members.me.port, members.me.bus_port = PORT, BUS_PORT
        self.node = Node(Settings(), dice.randbytes, members.me.node_id, members)
        self._dice = dice
        self.clock = StepClock()
        self.loop = StepLoop()
        self.shell = Shell(self.node, Configuration())
        self.shell.clock = self.clock  # type: ignore[assignment]
        self.shell.loop = self.loop  # type: ignore[assignment]
        self.bus = Bus(members, self, BusSettings(), self.node.receive)
        self.shell.end_with_peers.append(self.bus.flush)
        cluster.append(self)

    def keep_journal(self, folder: str) -> None:
        """Write a journal from now on."""
        self.shell.runtime = JournalRuntime(JournalSettings(), OsDisk(folder), AtOnce(), self.node)
        self.shell.runtime.start()

    # -- the network port of the bus

    def dial(self, link: Link, host: str, _port: int) -> None:
        other = next(machine for machine in self._cluster if machine.address == host)
        near, far = BusTransport(self), BusTransport(other)
        near.far, far.far, near.link = far, near, link
        self.loop.call_soon(self._connect, near, far, other)

    def _connect(self, near: BusTransport, far: BusTransport, other: Machine) -> None:
        other.begin()
        far.link = other.bus.accept(far, self.address, other.address)
        near.link.connected(near, other.address, self.address)

    def nonce(self) -> bytes:
        return self._dice.randbytes(32)

    def refusal(self, _address: str) -> str:
        return ""

    # -- passes

    def begin(self) -> None:
        """Make sure that a pass is under way."""
        if not self.shell.in_pass:
            self.clock.ms += 1
            self.shell.begin_pass()

    def run_pass(self) -> None:
        """Take what came on the bus, and end the pass."""
        inbox, self.inbox = self.inbox, []
        for transport, data in inbox:
            self.begin()
            transport.link.received(data)
        self.loop.run()

    @property
    def idle(self) -> bool:
        return not self.inbox and not self.loop.soon


def run_until_idle(machines: list[Machine]) -> None:
    """Passes in turn until nothing is under way anywhere."""
    for _ in range(PASSES_MAX):
        if all(machine.idle for machine in machines):
            return
        for machine in machines:
            machine.run_pass()
    raise RuntimeError(f"not idle after {PASSES_MAX} passes")


def make_cluster(count: int) -> list[Machine]:
    """Machines that have met and are linked."""
    machines: list[Machine] = []
    for number in range(count):
        Machine(machines, number)
    for machine in machines[1:]:
        machine.begin()
        machine.node.members.joining.meet(machines[0].address, PORT, BUS_PORT)
    for _ in range(5000):
        for machine in machines:
            machine.begin()
        run_until_idle(machines)
        if all(len([peer for peer in one.node.members.peers if peer.link_up]) == count - 1 for one in machines):
            return machines
    raise RuntimeError("the machines did not join")
