"""Nodes that were forgotten, for as long as gossip may still bring them back."""

from __future__ import annotations

from dataclasses import dataclass

from disqueue.wire.records import MAX_GOSSIP_BANS, GossipBan

BAN_MS = 60_000
"""Longer than any gossip about a forgotten node stays on its way."""


@dataclass(slots=True)
class Ban:
    """`stamp` orders the bans of one node. A lifted ban is kept until its end, so that an old copy of it is known as such."""

    stamp: int
    until_ms: int
    lifted: bool


class Bans:
    """The bans this node knows: merged by id, the later stamp wins, and lifting wins over the ban of the same stamp.

    So all nodes come to the same result whatever the order in which they hear.
    """

    def __init__(self) -> None:
        self._bans: dict[bytes, Ban] = {}

    def __len__(self) -> int:
        return len(self._bans)

    def holds(self, node_id: bytes, now_ms: int) -> bool:
        ban = self._bans.get(node_id)
        return ban is not None and not ban.lifted and now_ms < ban.until_ms

    def add(self, node_id: bytes, wall_ms: int, now_ms: int) -> None:
        """A ban given here and now."""
        known = self._bans.get(node_id)
        stamp = max(wall_ms, known.stamp + 1 if known else 0)
        self._put(node_id, Ban(stamp, now_ms + BAN_MS, False))

    def lift(self, node_id: bytes, now_ms: int) -> bool:
        """Somebody meets the node on purpose. False when it was not banned."""
        if not self.holds(node_id, now_ms):
            return False
        self._bans[node_id].lifted = True
        return True

    def merge(self, heard: GossipBan, now_ms: int) -> bool:
        """Take over what a member says; True when that is news."""
        known = self._bans.get(heard.node_id)
        lifted = heard.remaining_ms == 0
        if known is not None:
            if heard.stamp < known.stamp or (heard.stamp == known.stamp and (known.lifted or not lifted)):
                return False
            if heard.stamp == known.stamp:
                known.lifted = True
                return True
        remaining_ms = BAN_MS if lifted else min(heard.remaining_ms, BAN_MS)
        self._put(heard.node_id, Ban(heard.stamp, now_ms + remaining_ms, lifted))
        return True

    def restore(self, node_id: bytes, stamp: int, remaining_ms: int, now_ms: int) -> None:
        """A ban read from disk."""
        self._put(node_id, Ban(stamp, now_ms + min(remaining_ms, BAN_MS), False))

    def expire(self, now_ms: int) -> None:
        for node_id in [node_id for node_id, ban in self._bans.items() if now_ms >= ban.until_ms]:
            del self._bans[node_id]

    def clear(self) -> None:
        self._bans.clear()

    def export(self, now_ms: int) -> list[GossipBan]:
        """All of them, as they are told to others."""
        return [
            GossipBan(node_id, ban.stamp, 0 if ban.lifted else ban.until_ms - now_ms)
            for node_id, ban in self._bans.items()
            if now_ms < ban.until_ms
        ]

    def _put(self, node_id: bytes, ban: Ban) -> None:
        self._bans.pop(node_id, None)
        if len(self._bans) >= MAX_GOSSIP_BANS:
            del self._bans[min(self._bans, key=lambda key: self._bans[key].until_ms)]
        self._bans[node_id] = ban
