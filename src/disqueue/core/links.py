"""Links between nodes without their sockets: handshake, framing, limits. Both shells put a transport under them.

`Bus` is the bus port of `Membership`. `Link` is one connection, dialled from here or accepted. Whatever the other end does,
the worst that comes of it is a closed link and a line in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from disqueue.core.membership import Membership
from disqueue.core.peer import MEMBER, Peer
from disqueue.wire.bus import MAX_FRAME_BYTES, BusError, FrameReader, decode_frame, encode_frames
from disqueue.wire.handshake import (
    ACCEPTOR,
    DIALLER,
    MAX_HANDSHAKE_FRAME_BYTES,
    Denied,
    Handshake,
    Refused,
    refusal_frame,
)
from disqueue.wire.job_records import AnyRecord
from disqueue.wire.records import PROTOCOL_VERSION

MAX_HANDSHAKE_MS = 5_000
"""From the start of a dial, or from accepting, to the proof; half the node timeout if that is shorter."""
MIN_HANDSHAKE_MS = 500
MAX_UNPROVEN_LINKS = 64
"""Accepted links that have not proven themselves yet; the oldest makes room for a new one."""
MAX_INCOMING_LINKS = 4
"""Of one peer: it may dial for several reasons at once, and keeps one."""
REFUSAL_LOG_MS = 10_000
MAX_REFUSAL_LOGS = 64
"""Lines about refused connections in that time, one for each kind of trouble from each address."""

CONNECTING = 0
GREETING = 1
UP = 2
CLOSED = 3


@dataclass(slots=True)
class BusSettings:
    """`buffer_bytes` is how much may wait for a slow peer before its link is given up."""

    secret: bytes = b""
    buffer_bytes: int = 256 * 1024 * 1024


class Transport(Protocol):
    """What a shell puts under a link."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None:
        """Send what was written, then close. `Link.lost` is called later, or not."""

    def abort(self) -> None:
        """Close and drop what waits."""

    def buffered_bytes(self) -> int:
        """Written and not yet taken by the network."""


class Network(Protocol):
    """The shell's side of the bus."""

    def dial(self, link: Link, host: str, port: int) -> None:
        """Connect; ends in `link.connected(...)` or `link.failed(reason)`. `link.closed` says that it is not needed any more."""

    def nonce(self) -> bytes:
        """32 fresh random bytes."""

    def refusal(self, address: str) -> str:
        """Why this node may not speak to that address, or nothing."""


class Link:
    """One connection of the bus. `peer` is who is at the other end, once known."""

    __slots__ = ("bus", "deadline_ms", "handshake", "local", "outgoing", "peer", "reader", "remote", "state", "transport")

    def __init__(self, bus: Bus, peer: Peer | None, deadline_ms: int) -> None:
        self.bus = bus
        self.peer = peer
        self.outgoing = peer is not None
        self.deadline_ms = deadline_ms
        self.state = CONNECTING
        self.transport: Transport | None = None
        self.remote = ""
        self.local = ""
        self.reader = FrameReader(MAX_HANDSHAKE_FRAME_BYTES)
        self.handshake: Handshake | None = None

    @property
    def closed(self) -> bool:
        return self.state == CLOSED

    def connected(self, transport: Transport, remote: str, local: str) -> None:
        """The connection stands. `remote` and `local` are the addresses of its ends."""
        self.transport = transport
        self.remote, self.local = remote, local
        if self.closed:
            transport.close()
            return
        self.state = GREETING
        bus = self.bus
        if self.peer is not None:
            identity = bus.membership.identity(self.peer.intent, self.peer.introducer)
            self.handshake = Handshake(DIALLER, identity, bus.settings.secret, bus.network.nonce())
            transport.write(self.handshake.start())
        else:
            identity = bus.membership.identity()
            self.handshake = Handshake(ACCEPTOR, identity, bus.settings.secret, bus.network.nonce())

    def received(self, data: bytes) -> None:
        """Bytes of the other end. Never raises on what they hold."""
        try:
            for payload in self.reader.feed(data):
                if self.state == UP:
                    self._take_records(payload)
                elif self.state == GREETING:
                    self._shake(payload)
                if self.state == CLOSED:
                    return
        except BusError as error:
            self.fail(str(error))

    def lost(self, reason: str) -> None:
        """The connection ended by itself."""
        if self.state != CLOSED:
            if self.peer is None:
                self.shut()  # a stranger came and went
            self.bus.ended(self, reason)

    failed = lost

    def fail(self, reason: str) -> None:
        """Close from this side because of what came, or did not come."""
        if self.state != CLOSED:
            self.bus.ended(self, reason)

    def shut(self, abort: bool = False) -> None:
        """Close without telling anybody but the other end; with `abort` drop what it has not taken yet."""
        self.state = CLOSED
        self.handshake = None
        if self.transport is not None:
            if abort:
                self.transport.abort()
            else:
                self.transport.close()

    def _shake(self, payload: bytes | bytearray | memoryview) -> None:
        assert self.handshake is not None
        assert self.transport is not None
        try:
            answer = self.handshake.receive(payload)
            if answer:
                self.transport.write(answer)
            if self.handshake.peer is None:
                return
            if self.outgoing:
                self.bus.proven_outgoing(self)
            else:
                self.bus.proven_incoming(self)
        except Denied as denied:
            self.bus.denied(self, denied)
            raise
        except Refused:
            raise
        except BusError as error:
            if not self.outgoing:
                proven = self.handshake.peer is not None
                self.transport.write(self.handshake.deny(str(error)) if proven else refusal_frame(str(error)))
            raise

    def _take_records(self, payload: bytes | bytearray | memoryview) -> None:
        if self.outgoing or self.peer is None:
            raise BusError("records against the direction of the link")
        records = decode_frame(payload)
        self.bus.take(self.peer, self, records)


class Bus:
    """All links of a node. `deliver(peer, records)` takes what peers send, in order, and may raise `BusError`."""

    def __init__(
        self, membership: Membership, network: Network, settings: BusSettings, deliver: Callable[[Peer, list[AnyRecord]], None]
    ) -> None:
        self.membership = membership
        self.network = network
        self.settings = settings
        self.deliver = deliver
        self.wake_ms = -1
        self._unproven: dict[Link, None] = {}  # dialled and accepted ones before their proof, oldest first
        self._refusals: dict[tuple[str, str], int] = {}
        membership.bus = self

    # -- the bus port of membership -------------------------------------------------------------------------------

    def advance(self, now_ms: int) -> None:
        """Give up on handshakes that take too long."""
        for link in [link for link in self._unproven if now_ms >= link.deadline_ms]:
            link.fail("no connection in time" if link.state == CONNECTING else "no handshake in time")
        self.wake_ms = min((link.deadline_ms for link in self._unproven), default=-1)

    def connect(self, peer: Peer) -> None:
        link = Link(self, peer, self._deadline())
        peer.dial = link
        self._unproven[link] = None
        self.network.dial(link, *peer.dial_target)

    def disconnect(self, peer: Peer) -> None:
        self.drop_link(peer)
        self.drop_dial(peer)
        self._shut_incoming(peer, len(peer.incoming))

    def drop_link(self, peer: Peer) -> None:
        if peer.link is not None:
            peer.link.shut(abort=True)
            peer.link = None

    def drop_dial(self, peer: Peer) -> None:
        if peer.dial is not None:
            self._unproven.pop(peer.dial, None)
            peer.dial.shut()
            peer.dial = None

    def refusal(self, address: str) -> str:
        return self.network.refusal(address)

    # -- the shell ------------------------------------------------------------------------------------------------

    def accept(self, transport: Transport, remote: str, local: str) -> Link:
        """Somebody connected to the bus port."""
        link = Link(self, None, self._deadline())
        if reason := self.network.refusal(remote):
            link.transport, link.remote = transport, remote
            transport.write(refusal_frame(reason))
            link.fail(reason)
            return link
        accepted = [other for other in self._unproven if not other.outgoing]
        if len(accepted) >= MAX_UNPROVEN_LINKS:
            accepted[0].fail("too many connections without a handshake")
        self._unproven[link] = None
        link.connected(transport, remote, local)
        return link

    def flush(self) -> None:
        """Send what the pass left in the outboxes: one frame for each peer."""
        for peer in self.membership.peers:
            if peer.outbox:
                if peer.link_up and peer.link is not None:  # `close` leaves none, and a pass may still come
                    self._send(peer)
                else:
                    peer.outbox.clear()
                    peer.forget_open()

    def close(self) -> None:
        """Close all links, for the end of the process."""
        for peer in self.membership.peers + self.membership.joining.handshakes:
            if peer.link is not None:
                peer.link.shut()  # what it still has to send is sent
            self.disconnect(peer)
        for link in list(self._unproven):
            link.shut()
        self._unproven.clear()

    # -- links tell -----------------------------------------------------------------------------------------------

    def proven_outgoing(self, link: Link) -> None:
        """The dialled node is who it should be, or `BusError`."""
        assert link.peer is not None
        assert link.handshake is not None
        assert link.handshake.peer is not None
        dialled, handshake = link.peer, link.handshake
        assert handshake.peer is not None
        self._unproven.pop(link, None)
        dialled.dial = None
        peer = self.membership.dialled(dialled, handshake.peer, link.remote, link.local, handshake.version)
        if peer is None:
            link.shut()
            return
        link.peer = peer
        link.state = UP
        peer.link = link
        self.membership.link_began(peer)

    def denied(self, link: Link, denied: Denied) -> None:
        """The dialled node proved who it is, and refused."""
        assert link.peer is not None
        self.membership.denied(link.peer, denied.identity)

    def proven_incoming(self, link: Link) -> None:
        """A node that knows the secret wants to send records; `BusError` when it is not wanted."""
        assert link.handshake is not None
        assert link.handshake.peer is not None
        assert link.transport is not None
        peer = self.membership.accepted(link.handshake.peer, link.remote, link.local)
        link.transport.write(link.handshake.accept())
        self._unproven.pop(link, None)
        link.peer = peer
        link.state = UP
        link.reader.max_frame_bytes = MAX_FRAME_BYTES
        peer.incoming.append(link)
        self.membership.incoming_began(peer)
        if len(peer.incoming) > MAX_INCOMING_LINKS:
            self._shut_incoming(peer, 1)

    def take(self, peer: Peer, link: Link, records: list[AnyRecord]) -> None:
        """Records of a peer. The link they come on is the one it uses: nothing may follow on older ones."""
        if peer.incoming[0] is not link:
            self._shut_incoming(peer, peer.incoming.index(link))
        self.membership.stats.messages_received += len(records)
        self.deliver(peer, records)

    def ended(self, link: Link, reason: str) -> None:
        """A link ended, here or there. Tells membership if it mattered."""
        state, peer = link.state, link.peer
        link.shut(abort=state == UP)
        self._unproven.pop(link, None)
        if peer is None:
            if state != CLOSED:
                self._log_refusal(link.remote, reason)
        elif peer.link is link:
            peer.link = None
            peer.failure = reason
            self.membership.link_lost(peer)
            self._log_lost(peer, "link lost", reason)
        elif link in peer.incoming:
            peer.incoming.remove(link)
            if not peer.incoming:
                self.membership.incoming_lost(peer)
                self._log_lost(peer, "incoming link lost", reason)
        elif state != UP and peer.dial in (link, None):
            peer.dial = None
            self.membership.dial_failed(peer, reason)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _shut_incoming(self, peer: Peer, count: int) -> None:
        """Close the `count` oldest links that `peer` dialled."""
        for link in peer.incoming[:count]:
            link.shut()
        del peer.incoming[:count]

    def _deadline(self) -> int:
        timeout_ms = self.membership.settings.node_timeout_ms
        deadline_ms = self.membership.now_ms + min(MAX_HANDSHAKE_MS, max(MIN_HANDSHAKE_MS, timeout_ms // 2))
        self.membership.wake_at(deadline_ms)
        if self.wake_ms < 0 or deadline_ms < self.wake_ms:
            self.wake_ms = deadline_ms
        return deadline_ms

    def _send(self, peer: Peer) -> None:
        link = peer.link
        assert link is not None
        assert link.transport is not None
        records = peer.outbox
        if peer.version < PROTOCOL_VERSION:  # the peer is one release behind
            records = [record for record in records if record.since <= peer.version]
        waiting = link.transport.buffered_bytes()
        if waiting > self.settings.buffer_bytes:
            link.fail(f"the peer does not keep up: {waiting} bytes wait for it")
            return
        try:
            frames = encode_frames(records) if records else []
        except BusError as error:
            link.fail(str(error))
            return
        self.membership.stats.messages_sent += len(records)
        peer.outbox.clear()
        peer.forget_open()
        for frame in frames:
            link.transport.write(frame)

    def _log_lost(self, peer: Peer, event: str, reason: str) -> None:
        if peer.state == MEMBER:
            self.membership.log("notice", event, {"node": peer.node_id.decode(), "at": peer.address, "why": reason})

    def _log_refusal(self, remote: str, reason: str) -> None:
        """One line for the same trouble from the same address in a while: strangers cannot fill the disk."""
        self.membership.stats.links_refused += 1
        now_ms = self.membership.now_ms
        kind = (remote, reason[:60])
        if kind in self._refusals or len(self._refusals) >= MAX_REFUSAL_LOGS:
            self._refusals = {known: ms for known, ms in self._refusals.items() if now_ms - ms < REFUSAL_LOG_MS}
            if kind in self._refusals or len(self._refusals) >= MAX_REFUSAL_LOGS:
                return
        self._refusals[kind] = now_ms
        self.membership.log("warning", "bus connection refused", {"from": remote, "why": reason})
