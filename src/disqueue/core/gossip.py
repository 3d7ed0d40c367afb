"""What nodes tell each other about third ones, carried by pings.

News (a node joined, moved, failed, came back, was forgotten) goes to every peer soon after it is known; a new link gets
all that is known; and each ordinary ping carries a few entries in turn and all failing nodes, so that whatever was
missed is repaired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.core.addresses import is_address, is_node_id
from disqueue.core.peer import MEMBER, Peer
from disqueue.wire.records import FLAG_FAILED, FLAG_SUSPECTED, MAX_GOSSIP_ENTRIES, GossipBan, GossipEntry, Ping

if TYPE_CHECKING:
    from disqueue.core.membership import Membership

SPREAD_MS = 100
"""News of this long shares a message."""
MIN_ENTRIES = 3


class Gossip:
    """Part of a `Membership`: chooses what a ping tells and takes in what one told."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._changed_nodes: dict[int, Peer] = {}
        self._changed_bans: set[bytes] = set()
        self._cursor = 0
        self._flushed_ms = -SPREAD_MS
        self.flush_ms = -1

    def clear(self) -> None:
        self._changed_nodes.clear()
        self._changed_bans.clear()
        self.flush_ms = -1

    # -- telling --------------------------------------------------------------------------------------------------

    def spread_node(self, peer: Peer) -> None:
        self._changed_nodes[peer.slot] = peer
        self._plan()

    def spread_ban(self, node_id: bytes) -> None:
        self._changed_bans.add(node_id)
        self._plan()

    def drop(self, peer: Peer) -> None:
        self._changed_nodes.pop(peer.slot, None)

    def _plan(self) -> None:
        membership = self._membership
        if self.flush_ms < 0:
            self.flush_ms = max(membership.now_ms, self._flushed_ms + SPREAD_MS)
        membership.wake_at(self.flush_ms)

    def flush(self) -> None:
        """Send the news that piled up to every peer with a link."""
        membership = self._membership
        if self.flush_ms < 0 or membership.now_ms < self.flush_ms:
            return
        news = [peer for peer in self._changed_nodes.values() if peer.address]
        bans = [ban for ban in membership.bans.export(membership.now_ms) if ban.node_id in self._changed_bans]
        self.clear()
        self._flushed_ms = membership.now_ms
        if not news and not bans:
            return
        entries = [(peer, _entry(peer)) for peer in news]
        for peer in membership.peers:
            if peer.link_up:
                told = [entry for about, entry in entries if about is not peer]
                peer.outbox.append(Ping(0, membership.me.flags, told, bans, *membership.journal_age.ping_fields(peer)))

    def introduce(self, peer: Peer) -> None:
        """A new link: tell the peer all that is known."""
        membership = self._membership
        entries = [_entry(other) for other in membership.peers if other is not peer and other.address]
        membership.heartbeat.ping(peer, entries[:MAX_GOSSIP_ENTRIES], membership.bans.export(membership.now_ms))

    def select(self, peer: Peer) -> list[GossipEntry]:
        """The entries of an ordinary ping to `peer`: the failing nodes, and the next few of the others."""
        peers = self._membership.peers
        chosen = {other.slot: other for other in peers if other.suspected and other is not peer and other.address}
        wanted = min(max(MIN_ENTRIES, len(peers) // 10) + len(chosen), len(peers) - 1)
        for _ in range(len(peers)):
            if len(chosen) >= wanted:
                break
            self._cursor = (self._cursor + 1) % len(peers)
            other = peers[self._cursor]
            if other is not peer and other.address and not other.no_address:
                chosen[other.slot] = other
        return [_entry(other) for other in chosen.values()]

    # -- hearing --------------------------------------------------------------------------------------------------

    def receive(self, teller: Peer, ping: Ping) -> None:
        for ban in ping.bans:
            self._receive_ban(ban)
        for entry in ping.nodes:
            if teller.state != MEMBER:
                return
            self._receive_entry(teller, entry)

    def _receive_ban(self, ban: GossipBan) -> None:
        if is_node_id(ban.node_id):
            self._membership.apply_ban(ban)

    def _receive_entry(self, teller: Peer, entry: GossipEntry) -> None:
        membership = self._membership
        node_id = entry.node_id
        if node_id == membership.me.node_id or not is_node_id(node_id) or not is_address(entry.address) or not entry.bus_port:
            return
        peer = membership.find(node_id)
        if peer is None:
            if not entry.flags & FLAG_FAILED and not membership.bans.holds(node_id, membership.now_ms):
                membership.joining.discover(teller, node_id, entry.address, entry.port, entry.bus_port)
            return
        if entry.flags & (FLAG_SUSPECTED | FLAG_FAILED):
            peer.reports[teller.slot] = membership.now_ms
            membership.heartbeat.count_reports(peer)
        else:
            peer.reports.pop(teller.slot, None)
        heard = (entry.address, entry.port, entry.bus_port)
        if not peer.link_up and heard != (peer.address, peer.port, peer.bus_port) and not entry.flags & FLAG_FAILED:
            peer.alternate = heard
            if not peer.address:
                peer.address, peer.port, peer.bus_port = heard


def _entry(peer: Peer) -> GossipEntry:
    return GossipEntry(peer.node_id, peer.address, peer.port, peer.bus_port, peer.flags)
