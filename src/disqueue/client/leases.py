"""Leases of the jobs that are held, and when to send WORKING for which. No I/O, no clock.

The server does not say with a job how long its lease (RETRY) is. A lease is at least one second, so the first
WORKING goes out after `FIRST_S`: short work costs nothing more, and the answer tells the length of the lease. From
then on a third of it passes between two: two may get lost before the job is given to somebody else.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

from disqueue.client.errors import DisqueueError, TooLateError, UnknownJobError

FIRST_S = 0.4
SHORTEST_LEASE_S = 1.0
MAX_INTERVAL_S = 60.0
# After an attempt that reached no node.
AGAIN_S = 0.25


@dataclass(slots=True, eq=False)
class Lease:
    """The lease of one job that is held."""

    job_id: str
    received_at: float
    until: float
    """Until when nobody else gets the job; a lower bound, infinity for at-most-once jobs."""
    next_at: float
    confirmed: bool = False
    held: bool = False
    lost: bool = False
    final: bool = False
    """No WORKING is of use any more."""
    ticket: int = 0
    """Of its one valid entry in the heap."""


class LeaseBook:
    """Which leases are to be prolonged when."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Lease]] = []
        self._order = itertools.count(1)
        self._held = 0

    def __len__(self) -> int:
        return self._held

    def start(self, job_id: str, received_at: float) -> Lease:
        """A lease as it is when a job has just come."""
        return Lease(job_id, received_at, received_at + SHORTEST_LEASE_S, received_at + FIRST_S)

    def hold(self, lease: Lease) -> None:
        """Keep this lease alive from now on."""
        if not lease.held:
            lease.held = True
            self._held += 1
            self._schedule(lease)

    def release(self, lease: Lease) -> None:
        """It need not be kept alive any more. Its entry in the heap goes when its time comes."""
        if lease.held:
            lease.held = False
            self._held -= 1
            if len(self._due) > 2 * self._held + 64:
                self._due = [entry for entry in self._due if self._live(entry)]
                heapq.heapify(self._due)

    def _schedule(self, lease: Lease) -> None:
        if not lease.final:
            lease.ticket = next(self._order)
            heapq.heappush(self._due, (lease.next_at, lease.ticket, lease))

    @staticmethod
    def _live(entry: tuple[float, int, Lease]) -> bool:
        return entry[2].held and not entry[2].final and entry[1] == entry[2].ticket

    def next_due(self) -> float | None:
        """When the next WORKING is to be sent; None if for none."""
        while self._due and not self._live(self._due[0]):
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def take_due(self, now: float, limit: int = 200) -> list[Lease]:
        """Leases to prolong now. Tell of each what came of it: `prolonged` or `refused`."""
        due: list[Lease] = []
        while len(due) < limit:
            first = self.next_due()
            if first is None or first > now:
                break
            due.append(heapq.heappop(self._due)[2])
        return due

    def prolonged(self, lease: Lease, lease_s: int, asked_at: float) -> None:
        """WORKING, sent at `asked_at`, answered with the length of the lease; 0: an at-most-once job."""
        lease.confirmed = True
        if lease_s == 0:
            lease.until = float("inf")
            lease.final = True
            return
        lease.until = asked_at + lease_s
        lease.next_at = asked_at + min(lease_s / 3, MAX_INTERVAL_S)
        if lease.held:
            self._schedule(lease)

    def refused(self, lease: Lease, error: DisqueueError, now: float) -> None:
        """WORKING failed: for good when the server said so, else it is tried again soon."""
        if isinstance(error, UnknownJobError):
            lease.lost = lease.final = True
        elif isinstance(error, TooLateError):
            lease.final = True
        else:
            lease.lost = lease.lost or now > lease.until
            lease.next_at = now + AGAIN_S
            if lease.held:
                self._schedule(lease)

    @staticmethod
    def over(lease: Lease, now: float) -> bool:
        """Whether somebody else may have the job by now."""
        return lease.lost or now >= lease.until
