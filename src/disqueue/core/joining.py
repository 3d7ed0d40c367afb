"""How nodes come in: meetings that an operator asked for, nodes that gossip told of, and who is let in here.

A meeting is a `Peer` in the state HANDSHAKE, outside the table, until the node at the address has proven who it is.

A node that dials here without being a member is let in when somebody told it to meet this node; or when a *member* told it of
this node, and it is not banned. One that merely believes to be a member was forgotten, or this node was reset: it is refused,
so that neither is drawn back in by old tables.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from disqueue.core.addresses import is_address
from disqueue.core.membership_ports import ClusterError
from disqueue.core.peer import FORGOTTEN, HANDSHAKE, Peer
from disqueue.wire.bus import BusError
from disqueue.wire.handshake import INTENT_DISCOVERY, INTENT_MEET, INTENT_MEMBER, Identity

if TYPE_CHECKING:
    from disqueue.core.membership import Membership

MAX_MEMBERS = 1024
MAX_HANDSHAKES = 128
"""Meetings under way at a time; further gossip about unknown nodes waits, it comes again."""
MIN_HANDSHAKE_MS = 1_000


class Joining:
    """Part of a `Membership`: the meetings under way."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._meetings = 0
        self.handshakes: list[Peer] = []
        self.adopting = False
        """A damaged nodes.conf lost members: those that still know this node are taken back when they dial."""

    def meet(self, address: str, port: int, bus_port: int) -> None:
        """Start to join the node at `address`, a literal or a host name; `port` is its client port."""
        if not is_address(address):
            raise ClusterError(f"Invalid node address specified: {address}:{port}")
        if reason := self._membership.bus.refusal(address):
            raise ClusterError(reason)
        if any(peer.address == address and peer.bus_port == bus_port and peer.intent == INTENT_MEET for peer in self.handshakes):
            return
        if len(self.handshakes) >= MAX_HANDSHAKES:
            raise ClusterError(f"{MAX_HANDSHAKES} nodes are being met already, try again in a moment")
        self._start(address, port, bus_port, INTENT_MEET)

    def discover(self, introducer: Peer, node_id: bytes, address: str, port: int, bus_port: int) -> None:
        """A member told of a node that is not in the table."""
        membership = self._membership
        for known in self.handshakes:
            if known.expected_id == node_id:
                known.introducer = introducer.node_id
                if known.dial_attempts:  # the address from before did not work: take the newer word
                    known.address, known.port, known.bus_port = address, port, bus_port
                return
        if len(self.handshakes) < MAX_HANDSHAKES and membership.size < MAX_MEMBERS:
            met = self._start(address, port, bus_port, INTENT_DISCOVERY)
            met.expected_id = node_id
            met.introducer = introducer.node_id

    def _start(self, address: str, port: int, bus_port: int, intent: int) -> Peer:
        membership = self._membership
        self._meetings += 1
        name = b"%b %d %d" % (membership.me.node_id, membership.me.incarnation, self._meetings)
        peer = Peer(-1, hashlib.sha1(name, usedforsecurity=False).hexdigest().encode(), HANDSHAKE)
        peer.address, peer.port, peer.bus_port = address, port, bus_port
        peer.intent = intent
        peer.expires_ms = membership.now_ms + max(membership.settings.node_timeout_ms, MIN_HANDSHAKE_MS)
        peer.next_dial_ms = membership.now_ms
        self.handshakes.append(peer)
        membership.wake_at(membership.now_ms)
        return peer

    def end(self, peer: Peer, reason: str) -> None:
        """Without success. `reason` is for people."""
        membership = self._membership
        self.handshakes.remove(peer)
        membership.bus.disconnect(peer)
        peer.state = FORGOTTEN
        if peer.intent == INTENT_MEET:
            membership.stats.meet_failures += 1
            membership.stats.last_meet_failure = f"{peer.address}:{peer.port}: {reason}"
            membership.log(
                "warning", "meet failed", {"at": f"{peer.address}:{peer.port}", "bus_port": peer.bus_port, "why": reason}
            )

    def finish(self, met: Peer, identity: Identity, remote: str) -> Peer:
        """The peer that `met` turned out to be: a new member, or one that came in on another way meanwhile."""
        membership = self._membership
        node_id = identity.node_id
        if met.intent == INTENT_MEET:
            if membership.bans.lift(node_id, membership.now_ms):
                membership.gossip.spread_ban(node_id)
        elif membership.bans.holds(node_id, membership.now_ms):
            self.end(met, "it is banned")
            raise BusError(f"node {node_id.decode()} was forgotten")
        peer = membership.find(node_id) or membership.join(identity, remote)
        self.handshakes.remove(met)
        met.state = FORGOTTEN
        return peer

    def expire(self) -> None:
        """Give up the meetings whose time is over."""
        membership = self._membership
        for peer in list(self.handshakes):
            if membership.now_ms >= peer.expires_ms:
                self.end(peer, peer.failure or "no answer")

    def admit(self, identity: Identity, remote: str) -> Peer:
        """The new member that a stranger with the right secret becomes, or `BusError` with the reason."""
        membership = self._membership
        node_id = identity.node_id
        if identity.intent == INTENT_MEET:
            if membership.bans.lift(node_id, membership.now_ms):
                membership.gossip.spread_ban(node_id)
        elif membership.bans.holds(node_id, membership.now_ms):
            raise BusError("the node was forgotten here: CLUSTER MEET brings it back, CLUSTER RESET lets it start anew")
        elif identity.intent == INTENT_DISCOVERY and membership.find(identity.introducer) is None:
            raise BusError("the node was sent by one that is not a member here")
        elif identity.intent == INTENT_MEMBER and not self.adopting:
            raise BusError("the node is not a member here (forgotten or reset): CLUSTER MEET makes it one")
        return membership.join(identity, remote)
