"""A cluster of memberships in one process on virtual time, joined by links in memory."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Sequence

from disqueue.core.links import Bus, BusSettings, Link
from disqueue.core.membership import Membership
from disqueue.core.membership_ports import MembershipEvents, MembershipSettings
from disqueue.core.peer import Peer
from disqueue.wire.job_records import AnyRecord
from disqueue.wire.records import Ping, Pong

LATENCY_MS = 1
BUS_PORT = 17711


class Wire:
    """One end of a connection in memory."""

    def __init__(self, cluster: BusCluster, owner: BusNode, other_address: str) -> None:
        self.cluster = cluster
        self.owner = owner
        self.other_address = other_address
        self.other: Wire | None = None
        self.link: Link | None = None
        self.open = True
        self.stuck: list[bytes] = []  # sent into a cut: it arrives in order when that ends

    def write(self, data: bytes) -> None:
        assert self.open
        self.owner.bytes_sent += len(data)
        if self.stuck or not self.cluster.passes(self.owner, self.other_address):
            self.stuck.append(data)
            return
        self.cluster.after(LATENCY_MS, lambda: self._arrive(data))

    def go_on(self) -> None:
        """The cut may have ended."""
        if self.open and self.stuck and self.cluster.passes(self.owner, self.other_address):
            data, self.stuck = b"".join(self.stuck), []
            self.cluster.after(LATENCY_MS, lambda: self._arrive(data))

    def _arrive(self, data: bytes) -> None:
        other = self.other
        if other is not None and other.open and other.link is not None and other.owner.running:
            other.owner.run(lambda: other.link.received(data))

    def close(self) -> None:
        if self.open:
            self.open = False
            if self.cluster.passes(self.owner, self.other_address):
                self.cluster.after(LATENCY_MS, self._hang_up)

    abort = close

    def _hang_up(self) -> None:
        other = self.other
        if other is not None and other.open:
            other.open = False
            if other.link is not None and other.owner.running:
                other.owner.run(lambda: other.link.lost("connection closed"))

    def buffered_bytes(self) -> int:
        return sum(map(len, self.stuck))


class Events(MembershipEvents):
    def __init__(self) -> None:
        self.seen: list[tuple[str, bytes]] = []

    def peer_joined(self, peer: Peer) -> None:
        self.seen.append(("joined", peer.node_id))

    def peer_forgotten(self, peer: Peer) -> None:
        self.seen.append(("forgotten", peer.node_id))

    def peer_restarted(self, peer: Peer) -> None:
        self.seen.append(("restarted", peer.node_id))

    def peer_reachable_changed(self, peer: Peer) -> None:
        self.seen.append(("reachable" if peer.reachable else "unreachable", peer.node_id))


class BusNode:
    """A membership with its bus, and the network under it."""

    def __init__(self, cluster: BusCluster, address: str, node_id: bytes, secret: bytes, incarnation: int) -> None:
        self.cluster = cluster
        self.address = address
        self.running = True
        self.closed = False
        self.bytes_sent = 0
        self.frames: list[AnyRecord] = []
        self.lines: list[tuple[str, str, dict[str, object]]] = []
        self.wires: list[Wire] = []
        self.nonces = 0
        self.deliver_hook: Callable[[Peer, AnyRecord], None] | None = None
        settings = MembershipSettings(cluster.node_timeout_ms, "", 7711, BUS_PORT)
        self.membership = Membership(node_id, incarnation, settings, lambda *line: self.lines.append(line))
        self.membership.events = self.events = Events()
        self.bus = Bus(self.membership, self, BusSettings(secret), self.deliver)
        self.membership.begin_pass(cluster.now_ms, cluster.wall_ms)

    # network port
    def dial(self, link: Link, host: str, port: int) -> None:
        target = self.cluster.at(host, port)
        if not self.cluster.passes(self, host):
            return  # nothing answers: the deadline ends it
        if target is None:
            self.cluster.after(LATENCY_MS, lambda: self.run(lambda: link.failed("connection refused")))
            return
        near, far = Wire(self.cluster, self, host), Wire(self.cluster, target, self.address)
        near.other, far.other = far, near
        near.link = link
        self.wires.append(near)
        target.wires.append(far)
        self.cluster.after(LATENCY_MS, lambda: self._connect(near, far, target, link))

    def _connect(self, near: Wire, far: Wire, target: BusNode, link: Link) -> None:
        if not target.running:
            self.run(lambda: link.failed("connection refused"))
            return

        def accept() -> None:
            far.link = target.bus.accept(far, self.address, target.address)

        target.run(accept)
        self.run(lambda: link.connected(near, target.address, self.address))

    def nonce(self) -> bytes:
        self.nonces += 1
        return hashlib.sha256(b"%b %d %d" % (self.address.encode(), self.membership.me.incarnation, self.nonces)).digest()

    def refusal(self, address: str) -> str:
        return "closed beyond loopback" if self.closed else ""

    def deliver(self, peer: Peer, records: list[AnyRecord]) -> None:
        for record in records:
            if self.deliver_hook is not None:
                self.deliver_hook(peer, record)
            if isinstance(record, Ping | Pong):
                self.membership.receive(peer, record)
            else:
                self.frames.append(record)

    def run(self, work: Callable[[], object] | None = None) -> None:
        """One pass."""
        if not self.running:
            return
        self.membership.begin_pass(self.cluster.now_ms, self.cluster.wall_ms)
        if work is not None:
            work()
        self.membership.advance()
        self.bus.flush()
        wake_ms = self.membership.wake_ms
        if wake_ms >= 0:
            self.cluster.at_time(max(wake_ms, self.cluster.now_ms + 1), self)

    def meet(self, other: BusNode) -> None:
        self.run(lambda: self.membership.joining.meet(other.address, 7711, BUS_PORT))

    def kill(self) -> None:
        """The process dies: its sockets are reset."""
        self.running = False
        for wire in self.wires:
            wire.close()
            wire.open = False

    def knows(self) -> set[bytes]:
        return {peer.node_id for peer in self.membership.peers}

    def peer(self, other: BusNode) -> Peer:
        found = self.membership.find(other.membership.me.node_id)
        assert found is not None
        return found

    def logged(self, event: str) -> list[dict[str, object]]:
        return [fields for _, name, fields in self.lines if name == event]


class BusCluster:
    def __init__(self, size: int, *, node_timeout_ms: int = 5000, secret: bytes = b"secret") -> None:
        self.now_ms = 1_000
        self.node_timeout_ms = node_timeout_ms
        self.cut: set[tuple[str, str]] = set()
        self.passes_run = 0
        self._queue: list[tuple[int, int, Callable[[], object] | BusNode]] = []
        self._order = 0
        self._wakes: dict[BusNode, int] = {}
        self.nodes: list[BusNode] = [self.start(index, secret=secret) for index in range(size)]

    @property
    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.now_ms

    def start(
        self, index: int, *, secret: bytes = b"secret", incarnation: int = 0, address: str = "", node_id: bytes = b""
    ) -> BusNode:
        node_id = node_id or hashlib.sha1(b"node %d" % index).hexdigest().encode()
        return BusNode(self, address or f"10.0.0.{index + 1}", node_id, secret, incarnation or 1_000_003 * (index + 1))

    def restart(self, node: BusNode, *, address: str = "", secret: bytes = b"secret", remember: bool = True) -> BusNode:
        """A new process with the old id and the old table, perhaps at another address."""
        old = node.membership
        fresh = BusNode(self, address or node.address, old.me.node_id, secret, old.me.incarnation + 1)
        self.nodes[self.nodes.index(node)] = fresh
        for peer in old.peers if remember else ():
            fresh.membership.restore_member(peer.node_id, peer.address, peer.port, peer.bus_port, peer.leaving)
        fresh.run()
        return fresh

    def at(self, host: str, port: int) -> BusNode | None:
        return next((node for node in self.nodes if node.running and node.address == host and port == BUS_PORT), None)

    def passes(self, source: BusNode, address: str) -> bool:
        return (source.address, address) not in self.cut

    def part(self, *groups: Sequence[BusNode]) -> None:
        """Nothing passes between the groups; what stands stays open and hears nothing."""
        self.set_cut(
            {(a.address, b.address) for one in groups for other in groups if one is not other for a in one for b in other}
        )

    def set_cut(self, cut: set[tuple[str, str]]) -> None:
        """Nothing passes from the first address of a pair to the second."""
        self.cut = cut
        for node in self.nodes:
            node.wires = [wire for wire in node.wires if wire.open]
            for wire in node.wires:
                wire.go_on()

    def heal(self) -> None:
        self.set_cut(set())

    def after(self, delay_ms: int, work: Callable[[], object]) -> None:
        self._order += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._order, work))

    def at_time(self, when_ms: int, node: BusNode) -> None:
        known = self._wakes.get(node, -1)
        if known > self.now_ms and known <= when_ms:
            return
        self._wakes[node] = when_ms
        self._order += 1
        heapq.heappush(self._queue, (when_ms, self._order, node))

    def run(self, duration_ms: int, until: Callable[[], bool] | None = None) -> int:
        """Let time pass; returns how much did before `until` held."""
        start_ms = self.now_ms
        while self._queue and self._queue[0][0] <= start_ms + duration_ms:
            when_ms, _, work = heapq.heappop(self._queue)
            self.now_ms = max(self.now_ms, when_ms)
            self.passes_run += 1
            if isinstance(work, BusNode):
                work.run()
            else:
                work()
            if until is not None and until():
                return self.now_ms - start_ms
        self.now_ms = start_ms + duration_ms
        return duration_ms

    def full_mesh(self) -> bool:
        running = [node for node in self.nodes if node.running]
        return all(len(node.membership.reachable) == len(running) - 1 for node in running)

    def chain(self) -> None:
        for one, other in zip(self.nodes, self.nodes[1:], strict=False):
            one.meet(other)

    def join_all(self) -> None:
        self.chain()
        self.run(10_000, self.full_mesh)
        assert self.full_mesh()
