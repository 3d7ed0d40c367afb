"""What became of every job that a client tried to add: the model that the checkers compare the cluster with.

A job is known by its mark, the first word of its body, which is unique; so it is recognised wherever it turns up, also when its
producer never heard an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from disqueue.simulation.process import Process

UNKNOWN = "unknown"
"""The producer has no answer, or none yet: the job may exist or not."""
OK = "ok"
REFUSED = "refused"
NEVER_MS = -1


class Violation(AssertionError):
    """Something happened that must not. `invariant` is its name, `marks` the jobs that it is about."""

    def __init__(self, invariant: str, text: str, *entries: Entry) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant
        self.entries = entries


class Delivery(NamedTuple):
    """A job in a reply that left a node."""

    when_ms: int
    process: Process


class Entry:
    """One attempt to add a job. Times are of the world; `NEVER_MS`: not yet."""

    def __init__(self, mark: bytes, queue: bytes, body: bytes, ttl_s: int, retry_s: int, delay_s: int, copies: int) -> None:
        self.mark = mark
        self.queue = queue
        self.body = body
        self.ttl_s = ttl_s
        self.retry_s = retry_s
        self.delay_s = delay_s
        self.copies = copies
        """REPLICATE as asked for; 0: the default."""
        self.asynchronous = False
        self.id = b""
        self.ctime_ns = 0
        self.started_ms = NEVER_MS
        self.answer = UNKNOWN
        self.answered_ms = NEVER_MS
        self.deliveries: list[Delivery] = []
        self.holders: dict[Process, None] = {}
        """Processes that know the job, in any state."""
        self.acked_on: dict[Process, int] = {}
        """Processes that keep its acknowledgement, with the time since when."""
        self.queued_on: dict[Process, None] = {}
        self.origin: Process | None = None
        self.known_to: dict[Process, None] = {}
        """Processes that have had it."""
        self.revived: set[Process] = set()
        """Processes whose journal brought it back although it had been forgotten."""
        self.outdated = False
        """One of them does not know all that it knew then: its disk was damaged or lost what was not synced, or it ended after it
        had left the job while another owner was away, to which it alone could have told where the job is."""
        self.taken = 0
        """How often a process took it into its memory."""
        self.memories_lost = 0
        self.handed_over = False
        """A leaving node, or a flush, has dropped a copy."""
        self.ended_ms = NEVER_MS
        """An ACKJOB, FASTACK or DELJOB of it was executed somewhere first."""
        self.end_confirmed_ms = NEVER_MS
        """An ACKJOB or DELJOB of it alone was answered with 1."""
        self.fast_ended = False
        self.dequeued = False
        """A client took it out of its queue: an at-most-once job does not come back by itself then."""
        self.forced_ms = NEVER_MS
        """A NACK, ENQUEUE or DEQUEUE of it was executed last."""
        self.leases: dict[Process, int] = {}
        """Until when a process may not deliver it again."""
        self.late_working_ms = NEVER_MS
        """A worker whose lease had ended said that it goes on: the job may be on its way to another one already."""
        self.counters: dict[Process, tuple[int, int]] = {}
        """NACKs and additional deliveries as a process told them last."""

    @property
    def at_most_once(self) -> bool:
        return self.retry_s == 0

    @property
    def stranded(self) -> bool:
        """Whether it comes back only when somebody says so: ENQUEUE."""
        return self.at_most_once and self.dequeued and not self.deliveries

    @property
    def expires_ms(self) -> int:
        """When its TTL ends on the node that made it."""
        return self.started_ms + self.ttl_s * 1000

    @property
    def is_lost(self) -> bool:
        """Whether the model allows that nobody has it any more: memories that held it were lost."""
        return self.memories_lost > 0 and not self.holders

    def __str__(self) -> str:
        name = self.id.decode() if self.id else "-"
        return (
            f"job {self.mark.decode()} {name} in {self.queue.decode()} (ttl {self.ttl_s} s, retry {self.retry_s} s,"
            f" delay {self.delay_s} s, replicate {self.copies or 'default'}{', async' if self.asynchronous else ''},"
            f" added at {self.started_ms}, answer {self.answer}, delivered {len(self.deliveries)} times,"
            f" ended at {self.ended_ms}, held by {', '.join(holder.machine.name for holder in self.holders) or 'nobody'})"
        )


class Ledger:
    """All entries, by mark and by id."""

    def __init__(self) -> None:
        self.by_mark: dict[bytes, Entry] = {}
        self.by_id: dict[bytes, Entry] = {}
        self.ids: list[bytes] = []

    def add(self, entry: Entry) -> None:
        """A client is about to add a job."""
        self.by_mark[entry.mark] = entry

    def entry_of(self, body: bytes) -> Entry:
        """Return the entry of a body that turned up somewhere. Raises `Violation` when nobody added it."""
        entry = self.by_mark.get(body.partition(b" ")[0])
        if entry is None or entry.body != body:
            raise Violation("S1 no invention", f"a job with the body {body[:80]!r} was never added", *([entry] if entry else []))
        return entry

    def identify(self, entry: Entry, job_id: bytes) -> None:
        """A job is seen with an id. Raises `Violation` when it had another."""
        if entry.id == job_id:
            return
        if entry.id:
            raise Violation("S2 integrity", f"{entry} turned up as {job_id.decode()}", entry)
        if job_id in self.by_id:
            raise Violation("S2 integrity", f"{entry} has the id of {self.by_id[job_id]}", entry, self.by_id[job_id])
        entry.id = job_id
        self.by_id[job_id] = entry
        self.ids.append(job_id)
