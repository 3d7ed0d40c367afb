"""When which node is dialled, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.core.peer import Peer

if TYPE_CHECKING:
    from disqueue.core.membership import Membership

RETRY_MS = 100
MAX_RETRY_MS = 2_000
STALE_MS = 300
"""A dial that takes longer than this while the other side gets through is begun anew."""


class Dialling:
    """Part of a `Membership`."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    def due(self) -> None:
        """Dial the nodes whose time has come."""
        membership = self._membership
        for peer in membership.joining.handshakes + membership.peers:
            if peer.link_up or peer.dialling or membership.now_ms < peer.next_dial_ms:
                continue
            host, bus_port = peer.address, peer.bus_port
            if peer.alternate[0] and peer.dial_attempts % 2:
                host, bus_port = peer.alternate[0], peer.alternate[2]
            if not host:
                self.plan(peer)
                continue
            peer.dialling = True
            peer.dialled_ms = membership.now_ms
            peer.dial_target = (host, bus_port)
            membership.bus.connect(peer)

    def plan(self, peer: Peer) -> None:
        """Back off: 100 ms, doubling to at most 2 s, plus up to a quarter so that nodes do not dial in step."""
        membership = self._membership
        longest_ms = min(MAX_RETRY_MS, max(RETRY_MS, membership.settings.node_timeout_ms // 4))
        delay_ms = min(RETRY_MS << min(peer.dial_attempts, 10), longest_ms)
        spread = (membership.me.incarnation + 37 * peer.dial_attempts + 11 * peer.slot) % 64
        peer.dial_attempts += 1
        peer.next_dial_ms = membership.now_ms + delay_ms + delay_ms * spread // 256
        membership.wake_at(peer.next_dial_ms)
