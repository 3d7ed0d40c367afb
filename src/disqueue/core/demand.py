"""What federation knows about one queue: who wants its jobs, and what this node's consumers have asked of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.core.timers import Timed

if TYPE_CHECKING:
    from disqueue.core.peer import Peer
    from disqueue.core.queue import Queue

RATE_WINDOW_MS = 5000
MIN_RATE_SPAN_MS = 50
SOURCE_MS = 5000
"""A peer counts as a source of jobs for this long after its last one."""
MAX_BATCH = 512


class Demand(Timed):
    """Kept in `Queue.demand` while it is of use. Its timer withdraws what nobody waits for."""

    def __init__(self, queue: Queue) -> None:
        Timed.__init__(self)
        self.queue = queue
        self.wanted_by: dict[Peer, int] = {}
        """Peer -> how many jobs may still be sent to it; the first is served first."""
        self.waiting: dict[Peer, None] = {}
        """Those of them at which consumers are blocked."""
        self.told_waiting = False
        """The peers have been told that consumers are blocked here."""
        self.asked: dict[Peer, int] = {}
        """Peer -> how many jobs it may still send, as far as is known here."""
        self.sources: dict[Peer, int] = {}
        self.import_started_ms = 0
        self.import_previous_ms = 0
        self.import_count = 0
        self.import_previous = 0
        self.missed_ms = 0
        """When a consumer that does not wait found nothing last."""
        self.missed_count = 0

    def note_import(self, peer: Peer, now_ms: int, count: int) -> None:
        """Count jobs that came from a peer."""
        self.sources[peer] = now_ms
        if now_ms - self.import_started_ms > 1000:
            self.import_previous_ms = self.import_started_ms
            self.import_previous = self.import_count
            self.import_started_ms = now_ms
            self.import_count = 0
        self.import_count += count

    def import_rate(self, now_ms: int) -> int:
        """Return the jobs a second that have come from peers lately."""
        if self.import_count == 0 or now_ms - self.import_started_ms > RATE_WINDOW_MS:
            return 0
        count = self.import_count
        start_ms = self.import_started_ms
        if now_ms - self.import_previous_ms <= 2 * RATE_WINDOW_MS and self.import_previous:
            count += self.import_previous
            start_ms = self.import_previous_ms
        span_ms = now_ms - start_ms
        if span_ms < MIN_RATE_SPAN_MS:
            span_ms = MIN_RATE_SPAN_MS
        return (count * 1000 + span_ms - 1) // span_ms

    def recent_sources(self, now_ms: int) -> list[Peer]:
        """Return the peers that sent jobs lately; forget the others."""
        for peer in [peer for peer, last_ms in self.sources.items() if now_ms - last_ms > SOURCE_MS]:
            del self.sources[peer]
        return list(self.sources)
