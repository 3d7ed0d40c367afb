"""One other node, as this one sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.wire.records import FLAG_FAILED, FLAG_LEAVING, FLAG_SUSPECTED

if TYPE_CHECKING:
    from disqueue.core.links import Link
    from disqueue.wire.job_records import AnyRecord

UNKNOWN = 0
"""Only its id is known, from a job's list of owners."""
HANDSHAKE = 1
"""Being met: nothing about it is proven yet."""
MEMBER = 2
FORGOTTEN = 3


class Peer:
    """A node of the cluster, this one included.

    `slot` is the node's number in this process: bit `1 << slot` stands for it in the owner masks of jobs. It is given
    once for each node id and never to another; a node in handshake has none yet (-1). Times are monotonic milliseconds;
    0 means never.
    """

    __slots__ = (
        "address",
        "alternate",
        "bus_port",
        "data",
        "dial",
        "dial_attempts",
        "dial_target",
        "dialled_ms",
        "dialling",
        "expected_id",
        "expires_ms",
        "failed",
        "failure",
        "incarnation",
        "incoming",
        "incoming_up",
        "intent",
        "introducer",
        "leaving",
        "link",
        "link_up",
        "link_up_ms",
        "next_dial_ms",
        "no_address",
        "node_id",
        "outbox",
        "ping_sent_ms",
        "ping_stamp",
        "pong_ms",
        "pong_owed",
        "port",
        "reachable",
        "reports",
        "rtt_ms",
        "silent_since_ms",
        "slot",
        "state",
        "suspected",
        "takeover_ms",
        "version",
    )

    def __init__(self, slot: int, node_id: bytes, state: int) -> None:
        self.slot = slot
        self.node_id = node_id
        self.state = state
        self.address = ""
        self.port = 0
        self.bus_port = 0
        self.incarnation = 0
        self.data: object = None  # what the replication code attaches
        self.clear()

    def clear(self) -> None:
        """Back to a node that nothing was heard of."""
        self.leaving = False
        self.suspected = False
        self.failed = False
        self.no_address = False
        self.reachable = False
        # `link` was dialled from here and carries records there; `incoming` were dialled by the peer: one, or for a
        # moment several, of which it will use one
        self.link: Link | None = None
        self.incoming: list[Link] = []
        self.dial: Link | None = None
        self.link_up = False
        self.incoming_up = False
        self.link_up_ms = 0
        self.version = 0
        self.outbox: list[AnyRecord] = []
        # dialling
        self.dialling = False
        self.dialled_ms = 0
        self.dial_attempts = 0
        self.next_dial_ms = 0
        self.dial_target = ("", 0)
        self.alternate = ("", 0, 0)
        self.takeover_ms = 0
        # handshake
        self.intent = 0
        self.introducer = b""
        self.expected_id = b""
        self.expires_ms = 0
        self.failure = ""
        # heartbeat
        self.ping_stamp = 0
        self.ping_sent_ms = 0
        self.pong_ms = 0
        self.pong_owed = 0
        self.silent_since_ms = 0
        self.rtt_ms = 0.0
        self.reports: dict[int, int] = {}  # slot of a member that cannot reach this node -> when it said so

    @property
    def bit(self) -> int:
        return 1 << self.slot

    @property
    def short_id(self) -> bytes:
        """The part of the id that stands in the ids of jobs made there."""
        return self.node_id[:8]

    @property
    def flags(self) -> int:
        """The flags as they travel in gossip."""
        return (
            (FLAG_SUSPECTED if self.suspected else 0)
            | (FLAG_FAILED if self.failed else 0)
            | (FLAG_LEAVING if self.leaving else 0)
        )

    def __repr__(self) -> str:
        return f"<Peer {self.slot} {self.short_id.decode('ascii', 'replace')} {self.address}:{self.port}>"
