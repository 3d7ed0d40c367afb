"""What membership is given: settings, the bus, and who hears of changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from disqueue.core.peer import Peer

Log = Callable[[str, str, dict[str, object]], None]


class ClusterError(Exception):
    """An operator's request cannot be done. The text is the reply, without its prefix."""


@dataclass(slots=True)
class MembershipSettings:
    """What the configuration says. The announced values are what other nodes are told; an empty address is learned."""

    node_timeout_ms: int = 15_000
    announce_address: str = ""
    announce_port: int = 7711
    announce_bus_port: int = 17711


class BusPort(Protocol):
    """What membership needs of the bus."""

    wake_ms: int

    def advance(self, now_ms: int) -> None: ...
    def connect(self, peer: Peer) -> None:
        """Dial `peer.dial_target`; ends in `dialled` or `dial_failed`."""

    def disconnect(self, peer: Peer) -> None:
        """Close both links and a dial under way, without calling back."""

    def drop_link(self, peer: Peer) -> None:
        """Close the link dialled from here only, without calling back."""

    def drop_dial(self, peer: Peer) -> None:
        """Give up a dial under way, without calling back."""

    def refusal(self, address: str) -> str:
        """Why this node may not speak to that address, or nothing."""


class TableKeeper:
    """Keeps the table on disk; this one keeps nothing."""

    def changed(self) -> None:
        """Something that nodes.conf holds is different."""

    def save_now(self) -> str:
        """Write it; returns what went wrong, or nothing."""
        return ""


class MembershipEvents:
    """Callbacks; the node overrides those it needs."""

    def peer_joined(self, peer: Peer) -> None: ...
    def peer_forgotten(self, peer: Peer) -> None: ...
    def peer_reachable_changed(self, peer: Peer) -> None: ...
    def peer_link_up(self, peer: Peer) -> None:
        """Records can be sent to the peer."""

    def peer_link_down(self, peer: Peer) -> None:
        """They cannot any more, and the last ones may not have arrived."""

    def peer_incoming_up(self, peer: Peer) -> None:
        """The peer's records come on a new link; the last ones on the old one may not have arrived."""

    def peer_restarted(self, peer: Peer) -> None:
        """The peer's process is a new one: what it held in memory only is gone."""

    def disk_is_old(self, peer: Peer) -> None:
        """The peer knows of a later state of this node's journal than is on the disk."""


@dataclass(slots=True)
class MembershipStats:
    messages_sent: int = 0
    messages_received: int = 0
    meet_failures: int = 0
    last_meet_failure: str = ""
    links_refused: int = 0


class NoBus:
    """Stands in until the shell sets a bus: a node alone."""

    wake_ms = -1

    def advance(self, now_ms: int) -> None: ...
    def connect(self, peer: Peer) -> None: ...
    def disconnect(self, peer: Peer) -> None: ...
    def drop_link(self, peer: Peer) -> None: ...
    def drop_dial(self, peer: Peer) -> None: ...

    def refusal(self, address: str) -> str:
        return "this node has no bus port: set cluster-port, or port"
