"""Pings, and what follows when they are not answered.

Each second the peer that answered longest ago is pinged, and every one not heard of for half the node timeout. A peer is
*suspected* (`fail?`) when it has been silent for the node timeout; *failed* when most of the members that this node hears
suspect it too. A node that hears nobody else has nobody to ask and calls it failed after another node timeout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from disqueue.core.peer import Peer
from disqueue.wire.bus import BusError
from disqueue.wire.records import GossipBan, GossipEntry, Ping

if TYPE_CHECKING:
    from disqueue.core.membership import Membership

PING_PERIOD_MS = 1_000
RTT_WEIGHT = 0.125
"""Weight of a new sample in the round trip estimate."""


class Heartbeat:
    """Part of a `Membership`."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._next_round_ms = 0
        self._stamp = 0

    # -- asking ---------------------------------------------------------------------------------------------------

    def ping(self, peer: Peer, nodes: list[GossipEntry], bans: Sequence[GossipBan] = ()) -> None:
        membership = self._membership
        self._stamp += 1
        peer.ping_stamp = self._stamp
        peer.ping_sent_ms = membership.now_ms
        if not peer.silent_since_ms:
            peer.silent_since_ms = membership.now_ms or 1
        told = membership.journal_age.ping_fields(peer)
        peer.outbox.append(Ping(self._stamp, membership.me.flags, nodes, list(bans), *told))
        membership.wake_at(membership.now_ms + PING_PERIOD_MS)

    def ping_all(self) -> None:
        for peer in self._membership.peers:
            if peer.link_up:
                self.ping(peer, self._membership.gossip.select(peer))

    def receive_pong(self, peer: Peer, stamp: int) -> None:
        if not 0 < stamp <= self._stamp:
            raise BusError("answer to a ping that was not sent")
        membership = self._membership
        now_ms = membership.now_ms
        peer.pong_ms = now_ms
        peer.silent_since_ms = 0
        peer.dial_attempts = 0
        if stamp == peer.ping_stamp:
            sample = float(now_ms - peer.ping_sent_ms)
            peer.rtt_ms = peer.rtt_ms + RTT_WEIGHT * (sample - peer.rtt_ms) if peer.rtt_ms else sample
        membership.set_failing(peer, False, False)

    # -- judging --------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        membership = self._membership
        if membership.now_ms >= self._next_round_ms and membership.peers:
            self._next_round_ms = membership.now_ms + PING_PERIOD_MS
            self._ping_round()
        for peer in list(membership.peers):
            if peer.silent_since_ms:
                self._judge(peer)

    def next_deadline_ms(self) -> int:
        """The next round, or the moment at which a silent peer is judged; -1 on a node alone."""
        membership = self._membership
        if not membership.peers:
            return -1
        timeout_ms = membership.settings.node_timeout_ms
        deadline_ms = self._next_round_ms
        for peer in membership.peers:
            if peer.silent_since_ms and not peer.failed:
                waits = (timeout_ms // 2 if peer.link_up else timeout_ms, timeout_ms, 2 * timeout_ms)
                waited_ms = membership.now_ms - peer.silent_since_ms
                nearest_ms = next((wait for wait in waits if wait > waited_ms), -1)
                if nearest_ms >= 0:
                    deadline_ms = min(deadline_ms, peer.silent_since_ms + nearest_ms)
        return deadline_ms

    def forgive_stall(self, late_ms: int) -> None:
        """This process slept (stopped, swapped out, a suspended machine): its own silence proves nothing about others."""
        if late_ms >= PING_PERIOD_MS:
            for peer in self._membership.peers:
                if peer.silent_since_ms:
                    peer.silent_since_ms += late_ms

    def count_reports(self, peer: Peer) -> None:
        """Call a suspected peer failed when enough others say so too."""
        membership = self._membership
        if not peer.suspected or peer.failed:
            return
        timeout_ms = membership.settings.node_timeout_ms
        voters = votes = 1
        for other in membership.peers:
            if other is not peer and other.link_up and not other.suspected:
                voters += 1
                reported_ms = peer.reports.get(other.slot)
                votes += reported_ms is not None and membership.now_ms - reported_ms <= 2 * timeout_ms
        alone = voters == 1
        if votes > voters // 2 and (not alone or membership.now_ms - peer.silent_since_ms >= 2 * timeout_ms):
            membership.set_failing(peer, True, True)

    def _ping_round(self) -> None:
        membership = self._membership
        stale_ms = membership.now_ms - membership.settings.node_timeout_ms // 2
        idle = [peer for peer in membership.peers if peer.link_up and not peer.silent_since_ms]
        oldest = min(idle, key=lambda peer: peer.pong_ms, default=None)
        for peer in membership.peers:
            if not peer.link_up:
                continue
            if peer.silent_since_ms:  # the answer to the last one may have been lost with a link
                self.ping(peer, [])
            elif peer is oldest or peer.pong_ms <= stale_ms:
                self.ping(peer, membership.gossip.select(peer))

    def _judge(self, peer: Peer) -> None:
        membership = self._membership
        now_ms = membership.now_ms
        timeout_ms = membership.settings.node_timeout_ms
        silent_ms = now_ms - peer.silent_since_ms
        if peer.link_up and silent_ms >= timeout_ms // 2 and now_ms - peer.link_up_ms >= timeout_ms // 2:
            peer.failure = "no answer on the link"
            membership.drop_link(peer)
        if silent_ms >= timeout_ms:
            if not peer.suspected:
                membership.set_failing(peer, True, False)
            self.count_reports(peer)
