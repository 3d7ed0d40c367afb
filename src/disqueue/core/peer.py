"""One other node, as this one sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from disqueue.wire.records import FLAG_FAILED, FLAG_LEAVING, FLAG_SUSPECTED

if TYPE_CHECKING:
    from disqueue.core.links import Link
    from disqueue.core.peer_jobs import PeerJobs
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

    def __init__(self, slot: int, node_id: bytes, state: int) -> None:
        self.slot = slot
        self.bit = 1 << slot if slot >= 0 else 0
        self.node_id = node_id
        self.state = state
        self.address = ""
        self.port = 0
        self.bus_port = 0
        self.incarnation = 0
        self.data: PeerJobs | None = None  # what the replication code attaches
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
        self.forget_open()
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

    def forget_open(self) -> None:
        """Let no more ids join the last record of the outbox; the record is not kept."""
        self.open_record: object = None
        """The last record of the outbox, while ids or jobs of the same kind may join it; `open_items` are those that it has."""
        self.open_type: object = None
        self.open_kind = 0
        """Kind of an open `Batch`, else 0."""
        self.open_items: list[Any] = []
        self.open_numbers: list[Any] = []

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
