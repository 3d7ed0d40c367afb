"""The membership of a node that is alone, for tests and for a broker inside another program."""

from __future__ import annotations

from typing import Any


class _Self:
    """This node in its own table."""

    def __init__(self, node_id: bytes) -> None:
        self.slot = 0
        self.node_id = node_id


class LoneMembers:
    """Stands in for `Membership` where there is no bus."""

    def __init__(self, node_id: bytes) -> None:
        self.by_slot: list[Any] = [_Self(node_id)]
        self.peers: list[Any] = []
        self.reachable: list[Any] = []
        self.members_mask = 1

    def intern(self, _node_id: bytes) -> None:
        """Know no other node."""

    def set_leaving(self, _leaving: bool) -> None:
        """Have nobody to tell."""
