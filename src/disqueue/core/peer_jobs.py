"""What the job layers of a node know about one peer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqueue.core.job import Job
    from disqueue.wire.job_records import Mask


class PeerJobs:
    """Kept in `Peer.data` for as long as the peer is known."""

    def __init__(self) -> None:
        self.slot_map: list[int] = []
        """The slots here of the peer's slots, by the peer's number; -1 for an id that was refused."""
        self.translated: dict[int, int] = {}
        self.heard_mask: Mask | None = None
        self.heard_owners = 0
        """The mask that came last, and what it is here: the jobs of a frame mostly have the same owners."""
        self.slots_told = 0
        """So many of this node's slots have been explained on the present link."""
        self.in_flight: dict[bytes, Job] = {}
        """Jobs moved to the peer that it has not said to have received."""
        self.offered: dict[bytes, Job] = {}
        """At-most-once jobs offered to the peer; held here until it accepts."""
        self.held: dict[bytes, Job] = {}
        """At-most-once jobs that the peer has offered; held until it releases or withdraws them."""
        self.released: dict[bytes, int] = {}
        """At-most-once jobs given up to the peer, until it knows; with the time until which to remember them."""
        self.wanted: dict[bytes, int] = {}
        """Queue name -> credit: what the peer's consumers wait for."""
