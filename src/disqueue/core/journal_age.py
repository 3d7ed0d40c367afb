"""How far the journals of nodes were written, so that a node back with an old copy of its disk hears of it.

Nothing on a disk says that it is old. So each ping tells how far the sender's journal is on its disk, and how far the sender has
heard that earlier processes of the receiver had come. Who hears of more than it has loaded knows that its disk is an older one.
It says so in its pings, and then the others go by what it tells from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from disqueue.core.peer import Peer
from disqueue.wire.records import Ping

if TYPE_CHECKING:
    from disqueue.core.membership import Membership

SEGMENT_BITS = 32
"""A place is the number of a segment, and below it the offset of what is on the disk. It only grows on one disk."""
MAX_KNOWN = 16_384
"""As many nodes as ids are ever seen."""


def no_journal() -> int:
    """Return the place of a journal that is not kept."""
    return 0


class Known:
    """What is known of the journal of a node: the furthest place of its processes `before`, and that of its process `now`."""

    def __init__(self, before: int) -> None:
        self.before = before
        self.now = 0
        self.incarnation = 0

    @property
    def furthest(self) -> int:
        return max(self.before, self.now)


class JournalAge:
    """Part of a `Membership`. Who keeps a journal calls `begin`."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self.place: Callable[[], int] = no_journal
        """Returns how far this node's journal is on the disk, 0 for none."""
        self.loaded = 0
        self.first = 0
        """Where the journal ended that this process has loaded, and where it has begun to write."""
        self.lost = 0
        """A place of this node's journal that was not on its disk any more, as another node has said; 0: nobody has."""
        self.known: dict[bytes, Known] = {}
        self.heard: set[int] = set()
        """The slots of nodes that have said what they know of this one."""

    def begin(self, place: Callable[[], int], loaded: int, first: int) -> None:
        """A journal is written from now on, from the place `first`; what was loaded ends at `loaded`."""
        self.place, self.loaded, self.first = place, loaded, first

    def ping_fields(self, peer: Peer) -> tuple[int, int, int]:
        """Return what a ping to a peer tells: this journal's place, that of the peer's earlier processes, and what is lost."""
        known = self.known.get(peer.node_id)
        return self.place(), 0 if known is None else known.before, self.lost

    def receive(self, peer: Peer, ping: Ping) -> None:
        """Take what a peer says of its journal and of this one."""
        self._note(peer, ping)
        self.heard.add(peer.slot)
        if ping.seen > self.lost and self._is_lost(ping.seen):
            first = not self.lost
            self.lost = ping.seen
            if first:
                self._membership.events.disk_is_old(peer)

    def _is_lost(self, place: int) -> bool:
        """Whether the journal is not what it was. A peer that was restarted may speak of what this process has written."""
        own = self.place()
        return own > 0 and (place > own or self.loaded < place < self.first)

    def restore(self, node_id: bytes, place: int) -> None:
        """Take what nodes.conf knows."""
        self.known[node_id] = Known(place)

    def _note(self, peer: Peer, ping: Ping) -> None:
        known = self.known.get(peer.node_id)
        if known is None:
            if not ping.written or len(self.known) >= MAX_KNOWN:
                return
            known = self.known[peer.node_id] = Known(0)
        if known.incarnation != peer.incarnation:
            known.incarnation = peer.incarnation
            known.before, known.now = known.furthest, 0
        segment = known.furthest >> SEGMENT_BITS
        if ping.lost >= known.before:
            known.before = 0  # the node knows
        known.now = max(known.now, ping.written)
        if known.furthest >> SEGMENT_BITS != segment:  # not at each ping: a few segments a minute at the most
            self._membership.keeper.changed()
