"""What handlers of hot commands need of a broker, with a C type."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqueue.core.node import Node


class NodeHolder:
    """Something with a node."""

    def __init__(self, node: Node) -> None:
        self.node = node
