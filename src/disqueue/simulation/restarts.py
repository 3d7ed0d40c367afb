"""Checks what a machine's journal brings back (S5, S6, S22): all that was promised, and nothing that was over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from disqueue.core.job import (
    ACKED,
    ACTIVE,
    ASKED,
    CONTESTED,
    DELIVERED,
    HELD,
    LEASED,
    PLACEHOLDER,
    QUEUED,
    RESTORED,
    WAIT_REPL,
    Job,
)
from disqueue.core.replication import TAKEOVER_JITTER_MS
from disqueue.core.scheduler import ASK_AHEAD_MS, LINKS_WAIT_MS
from disqueue.simulation.ledger import NEVER_MS, OK, Entry, Ledger, Violation

if TYPE_CHECKING:
    from disqueue.simulation.process import Process

WINDOW_MS = 1000
"""With `everysec` an fsync begins so long after the one before, at the most."""


def lasting_state(job: Job) -> tuple[int, ...]:
    """Return what of a job has to survive a restart. An offer of it to another node need not."""
    if job.flags & HELD:
        return (job.state,)
    return (job.state, job.flags & ~(ASKED | CONTESTED | RESTORED), job.nacks, job.deliveries)


def _asks_first(process: Process, job: Job) -> bool:
    """Tell whether a job waits for what its other owners say: its time had come while the process was down."""
    soon_ms = LINKS_WAIT_MS + ASK_AHEAD_MS + TAKEOVER_JITTER_MS
    return job.state == ACTIVE and job.retry_s > 0 and job.owners != 1 and 0 < job.due_ms - process.node.now_ms <= soon_ms


def _after_lease(process: Process, job: Job) -> tuple[int, ...]:
    """Return what the end of a lease makes of a job; that it is over is known without its being written."""
    state = lasting_state(job)
    if job.state == ACTIVE and job.flags & LEASED and job.due_ms <= process.node.now_ms:
        return (state[0], state[1] & ~LEASED, *state[2:])
    return state


def _is_as_before(process: Process, job: Job, before: tuple[int, ...] | None) -> bool:
    """Tell whether a restored job is what it was, or what time alone has made of it."""
    if before in ((ACTIVE,), lasting_state(job), _after_lease(process, job)):
        return True
    if before is None or before[0] not in (ACTIVE, QUEUED):
        return False
    return _asks_first(process, job) and before[2:] == lasting_state(job)[2:]


def owners_of(process: Process, job: Job) -> frozenset[bytes]:
    """Return the ids of the nodes that a process takes for owners of a job."""
    by_slot = process.members.by_slot
    return frozenset(by_slot[slot].node_id for slot in range(job.owners.bit_length()) if job.owners >> slot & 1)


@dataclass
class Left:
    """What a process had when it ended. `exact`: all of that is on the disk."""

    jobs: dict[Entry, tuple[int, ...]] = field(default_factory=dict)
    owners: dict[Entry, frozenset[bytes]] = field(default_factory=dict)
    safe_ms: int = NEVER_MS
    """What was promised up to then is on the disk."""
    exact: bool = False
    whole: bool = True
    """The disk has kept all that was written to it."""
    window_ms: int = 0
    """How old the last fsync may be; 0: it may be any age, because the process stood still."""
    taken_ms: dict[Entry, int] = field(default_factory=dict)


class Restarts:
    """What each machine's last process has left."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._left: dict[str, Left] = {}
        self._taken_ms: dict[tuple[Entry, Process], int] = {}

    def taken(self, process: Process, entry: Entry) -> None:
        """A process has taken a job."""
        if process.journal is not None:
            self._taken_ms[entry, process] = process.cluster.world.now_ms

    def ended(self, process: Process) -> None:
        """A process is killed, or its machine loses power: `process_lost_power` follows in that case."""
        if process.journal is None:
            return
        now_ms = process.cluster.world.now_ms
        left = Left()
        for entry in self.ledger.by_mark.values():
            job = process.node.jobs.get(entry.id) if process in entry.holders else None
            if job is not None:
                left.jobs[entry] = lasting_state(job)
                left.owners[entry] = owners_of(process, job)
                left.taken_ms[entry] = self._taken_ms.get((entry, process), 0)
        failed_ms = process.journal.failed_ms
        left.exact = failed_ms < 0
        left.safe_ms = now_ms if failed_ms < 0 else failed_ms - 1
        window_ms = WINDOW_MS + 2 * process.machine.slowest_sync_ms + process.machine.slowest_pass_ms
        if not process.paused and now_ms - process.resumed_ms > window_ms:
            left.window_ms = window_ms
        self._left[process.machine.name] = left

    def restored(self, process: Process) -> None:
        """A process has loaded its journal. Adds it to the holders of what came back. Raises `Violation`."""
        machine = process.machine
        left = self._left.pop(machine.name, Left())
        if machine.lost_power:
            self._allow_for_power(process, left)
        if machine.disk_damaged:
            left.exact, left.whole, left.safe_ms = False, False, NEVER_MS
        machine.disk_damaged = machine.disk.misdirect_rate > 0
        machine.lost_power = False
        for job in process.node.jobs:
            self._came_back(process, left, job)
        for entry, state in left.jobs.items():
            if process not in entry.holders:
                self._did_not(process, left, entry, state)

    def _allow_for_power(self, process: Process, left: Left) -> None:
        policy = process.machine.journal_policy
        if policy == "always":
            return
        left.exact = left.whole = False
        left.safe_ms = left.safe_ms - left.window_ms if policy == "everysec" and left.window_ms else NEVER_MS

    def _came_back(self, process: Process, left: Left, job: Job) -> None:
        if job.flags & PLACEHOLDER:
            return
        entry = self.ledger.by_id.get(job.id) if job.state == ACKED else self.ledger.entry_of(job.body)
        if entry is None:
            raise Violation("S22 journal", f"{process.machine.name} brings back {job.id.decode()}, which never was")
        self.ledger.identify(entry, job.id)
        state = left.jobs.get(entry)
        if left.exact and not _is_as_before(process, job, state):
            text = f"{process.machine.name} brings back {entry} as {lasting_state(job)}, it was {state}"
            raise Violation("S22 journal", text, entry)
        missing = left.owners.get(entry, frozenset()) - owners_of(process, job)
        if left.exact and missing and not job.flags & HELD:
            text = f"{process.machine.name} brings back {entry} without {len(missing)} of its owners"
            raise Violation("S22 journal", text, entry)
        if state is not None and left.exact:
            entry.memories_lost -= 1
        if state is None:  # the disk failed when the process was to write that it had forgotten the job
            entry.revived.add(process)
            # Nor what it had told others as a leaving node, so that it knows of none of those that have the job.
            entry.outdated |= not left.whole or entry.handed_over
        entry.holders[process] = None
        entry.known_to[process] = None
        if job.state == ACKED:
            entry.acked_on[process] = process.cluster.world.now_ms
        if job.state == QUEUED:
            entry.queued_on[process] = None

    def _did_not(self, process: Process, left: Left, entry: Entry, state: tuple[int, ...]) -> None:
        now_ms = process.cluster.world.now_ms
        over = entry.at_most_once and state[0] == ACTIVE and (len(state) == 1 or state[1] & DELIVERED)
        if over or state[0] == WAIT_REPL or now_ms >= entry.expires_ms - 1:
            return
        since_ms = max(entry.answered_ms, left.taken_ms[entry])
        promised = entry.answer == OK and since_ms <= left.safe_ms and entry.ended_ms == NEVER_MS
        if left.exact or (promised and not entry.at_most_once):
            raise Violation("S5 journal", f"{process.machine.name} has lost {entry}, which was in state {state}", entry)
