"""One run of one node: the shell around the core that the simulation has in place of asyncio, sockets and clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from disqueue.commands.broker import Broker
from disqueue.commands.ports import DetachedServer, PlatformFacts, ProcessFacts
from disqueue.config.configuration import Configuration
from disqueue.core.client import Client
from disqueue.core.links import Bus, BusSettings, Link
from disqueue.core.membership import Membership
from disqueue.core.membership_ports import MembershipSettings, TableKeeper
from disqueue.core.node import Node
from disqueue.core.nodes_text import nodes_file, parse_nodes, restore
from disqueue.core.settings import Settings
from disqueue.simulation.connection import ClientConnection
from disqueue.simulation.journal import SimulatedJournal
from disqueue.simulation.network import Endpoint
from disqueue.simulation.world import Event

if TYPE_CHECKING:
    from disqueue.simulation.cluster import Cluster, Machine
    from disqueue.simulation.observer import Observer

CLIENT_PORT = 7711
BUS_PORT = 17711


NOWHERE = PlatformFacts("simulated", "none", "3", "simulated")
"""Replies are in the digest of a run, and that is the same on every machine, compiled or not."""


class ProcessClock:
    """Monotonic and wall time of one process."""

    def __init__(self, machine: Machine, start_ms: int) -> None:
        self._machine = machine
        self._start_ms = start_ms

    def now_ms(self) -> int:
        """Monotonic milliseconds; every process starts somewhere else."""
        return self._machine.cluster.world.now_ms + self._start_ms

    def wall_ms(self) -> int:
        """Unix milliseconds as this machine sees them."""
        return self._machine.wall_ms()

    def elapsed_us(self) -> int:
        return self.now_ms() * 1000

    def wall_us(self) -> int:
        return self.wall_ms() * 1000


class SimulatedServer(DetachedServer):
    """What commands may ask of the process."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process

    def facts(self) -> ProcessFacts:
        return ProcessFacts(platform=NOWHERE)

    def clients(self) -> Iterable[Client]:
        return [connection.client for connection in self._process.connections]

    def close_client(self, client: Client) -> None:
        if not client.close_after_reply:
            client.close_asap = True
        self._dirty(client)

    def written(self, client: Client) -> None:
        self._dirty(client)

    def _dirty(self, client: Client) -> None:
        connection = client.connection
        if isinstance(connection, ClientConnection):
            self._process.mark_dirty(connection)


class Keeper(TableKeeper):
    """Keeps nodes.conf on the machine."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.dirty = False

    def changed(self) -> None:
        self.dirty = True

    def save_now(self) -> str:
        self.dirty = False
        self._process.machine.nodes_file = nodes_file(self._process.members)
        return ""


class Process:
    """A running node. `post` brings in a call from outside; it is made in the next pass."""

    def __init__(self, machine: Machine, incarnation: int, observer: Observer) -> None:
        self.machine = machine
        self.cluster: Cluster = machine.cluster
        self.observer = observer
        self.incarnation = incarnation
        self.running = True
        self.paused = False
        self.pass_delay_ms = 0
        """How long this slow machine takes from an event to the pass that handles it."""
        self._inbox: list[Callable[[], None]] = []
        self._pass_event: Event | None = None
        self._wake_event: Event | None = None
        self._next_client = 1
        self.waits = 0
        self.resumed_ms = 0
        self.leaving_ms = 0
        self.evicted_jobs = 0
        self.connections: dict[ClientConnection, None] = {}
        self._dirty: list[ClientConnection] = []
        self._turns: list[ClientConnection] = []
        dice = self.cluster.world.random(f"process {machine.name} {incarnation}")
        self._entropy: Callable[[int], bytes] = dice.randbytes
        self.clock = ProcessClock(machine, dice.randrange(1 << 20, 1 << 40))
        self.members = Membership(machine.node_id, incarnation, MembershipSettings(), self._log_membership)
        self.node: Node = Node(Settings(), self._entropy, machine.node_id, self.members)
        self.node.log = self.log
        observed = observer.journal_of(self)
        self.node.journal = observed
        self.node.on_unblock = self._unblocked
        self.node.begin_pass(self.clock.now_ms(), self.clock.wall_ms())
        self.keeper = self.members.keeper = Keeper(self)
        self.broker: Broker = Broker(self.node, Configuration(), SimulatedServer(self), self.clock)
        self.bus = Bus(self.members, self, BusSettings(machine.cluster.secret), self.node.receive)
        machine.configure(self)
        self.journal: SimulatedJournal | None = None
        if machine.journal_policy and observed is not None:
            self.journal = SimulatedJournal(self, observed)
            if not self.journal.start():
                self.running = False
                return
            observer.process_restored(self)
        self._open()

    def _open(self) -> None:
        host = self.machine.host
        host.post = self.post
        host.listeners = {CLIENT_PORT: self._accept_client, BUS_PORT: self._accept_link}
        restore(self.members, parse_nodes(self.machine.nodes_file))
        if self.members.me.leaving:
            self.node.set_leaving(True)
        self._plan_pass()

    # -- the pass

    def post(self, call: Callable[[], None]) -> None:
        """Something has come from outside."""
        if self.running:
            self._inbox.append(call)
            self._plan_pass()

    def _plan_pass(self) -> None:
        if self._pass_event is None and not self.paused:
            self._pass_event = self.cluster.world.after(self.pass_delay_ms, self._run_pass)

    def _run_pass(self) -> None:
        self._pass_event = None
        if not self.running or self.paused:
            return
        try:
            self._pass()
        except Exception as error:
            self.observer.process_failed(self, error)
            raise
        if self._inbox or self._turns:
            self._plan_pass()
        self._plan_wake()

    def _pass(self) -> None:
        node = self.node
        node.begin_pass(self.clock.now_ms(), self.clock.wall_ms())
        node.advance()
        inbox, self._inbox = self._inbox, []
        for call in inbox:
            call()
        turns, self._turns = self._turns, []
        for connection in turns:
            if not connection.closed:
                connection.take_turn()
        node.end_pass()
        if self.journal is not None and not self.journal.end_pass():
            self._withhold()
        if self.keeper.dirty:
            self.keeper.save_now()
        self.bus.flush()
        dirty, self._dirty = self._dirty, []
        for connection in dirty:
            connection.flush()
        self.observer.pass_ended(self)

    def _withhold(self) -> None:
        """The journal could not be written: what this pass promised does not leave."""
        for connection in self.connections:
            if connection.client.pending_adds:
                self.mark_dirty(connection)
        for connection in self._dirty:
            connection.withhold()
        for peer in list(self.members.peers):
            if peer.outbox:
                self.members.drop_link(peer)

    def _plan_wake(self) -> None:
        deadline_ms = self.node.next_deadline_ms()
        if self.journal is not None:
            journal_ms = self.journal.next_deadline_ms()
            if journal_ms >= 0 and (deadline_ms < 0 or journal_ms < deadline_ms):
                deadline_ms = journal_ms
        if self._wake_event is not None:
            self._wake_event.cancel()
            self._wake_event = None
        if deadline_ms >= 0:
            wait_ms = max(0, deadline_ms - self.clock.now_ms())
            self._wake_event = self.cluster.world.after(wait_ms, self._wake)

    def _wake(self) -> None:
        self._wake_event = None
        self._plan_pass()

    def pause(self, paused: bool) -> None:
        """Stop the process as SIGSTOP does, or let it go on; what comes meanwhile waits in the kernel."""
        if self.running and self.paused != paused:
            self.paused = paused
            self.resumed_ms = self.cluster.world.now_ms
            if not paused:
                self._plan_pass()

    def end(self) -> None:
        """The process is no more."""
        self.running = False
        for event in (self._pass_event, self._wake_event):
            if event is not None:
                event.cancel()

    def discard(self) -> None:
        """Let go of the memory: the garbage collector does not look into compiled jobs, so that it would stay for ever."""
        for job in self.node.jobs:
            job.queue = job.waiter = None
        for queue in self.node.queues.values():
            queue.waiters.clear()
            queue.demand = None

    # -- clients

    def _accept_client(self, endpoint: Endpoint) -> ClientConnection:
        connection = ClientConnection(self, endpoint, self._next_client)
        self._next_client += 1
        self.connections[connection] = None
        return connection

    def forget_connection(self, connection: ClientConnection) -> None:
        """A client is gone."""
        if self.connections.pop(connection, 0) is None:
            self.observer.connection_ended(connection)
            self.broker.disconnect(connection.client)

    def mark_dirty(self, connection: ClientConnection) -> None:
        """Something was written for a client."""
        if not connection.dirty:
            connection.dirty = True
            self._dirty.append(connection)

    def give_turn(self, connection: ClientConnection) -> None:
        """Let a client go on in the next pass."""
        self._turns.append(connection)
        self._plan_pass()

    def _unblocked(self, client: Client) -> None:
        connection = client.connection
        if isinstance(connection, ClientConnection) and not connection.closed:
            self.mark_dirty(connection)
            self.give_turn(connection)

    # -- the bus

    def _accept_link(self, endpoint: Endpoint) -> Link:
        return self.bus.accept(endpoint, endpoint.far.address, endpoint.host.address)

    def dial(self, link: Link, host: str, port: int) -> None:
        """The network port of the bus: connect."""

        def connected(endpoint: Endpoint) -> None:
            endpoint.receiver = link
            link.connected(endpoint, endpoint.far.address, endpoint.host.address)

        def given_up() -> bool:
            return link.closed

        self.cluster.network.dial(self.machine.host, host, port, connected, link.failed, given_up)

    def nonce(self) -> bytes:
        """The network port of the bus: 32 random bytes."""
        return self._entropy(32)

    def refusal(self, _address: str) -> str:
        """The network port of the bus: every address is fine."""
        return ""

    # -- logs

    def log(self, level: str, event: str, *_: object, **fields: object) -> None:
        error = fields.get("exception")
        if isinstance(error, Exception):
            self.observer.process_failed(self, error)
            raise error
        self.cluster.trace.note(self.machine.name, f"log {level}: {event} {fields}")

    def _log_membership(self, level: str, event: str, fields: dict[str, object]) -> None:
        self.cluster.trace.note(self.machine.name, f"log {level}: {event} {fields}")
