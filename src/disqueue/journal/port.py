"""What the core and the journal are to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from disqueue.core.job import Job
    from disqueue.core.queue import Queue


class JournalPort(Protocol):
    """What the core calls. Nothing is written before the end of the pass, and then once for each job.

    `error` is empty while the journal can be trusted. Otherwise it says why not, and the core refuses what the journal
    could not keep: adds, copies from peers, hand-outs of at-most-once jobs and, where `always_synced`, acknowledgements.
    """

    error: str
    always_synced: bool

    def job_added(self, job: Job) -> None:
        """A job is kept from now on."""

    def job_changed(self, job: Job) -> None:
        """A job's state, due time, order, counters or owners are not what they were."""

    def job_forgotten(self, job: Job) -> None:
        """A job left the registry: it was deleted, collected, evicted or it expired."""

    def queue_changed(self, queue: Queue) -> None:
        """A queue was paused or resumed."""

    def node_changed(self) -> None:
        """The node's standing changed."""


class JobSource(Protocol):
    """The registered jobs."""

    def get(self, job_id: bytes) -> Job | None:
        """Return the job with this id, or None."""

    def scan(self, cursor: int, limit: int) -> tuple[list[Job], int]:
        """Return about `limit` jobs from `cursor` on (0: the first), and the next cursor (0: that was all)."""


class Executor(Protocol):
    """Runs what may block, one task after the other, and tells the loop."""

    def submit(self, task: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        """Run `task` elsewhere; then call `done` in the loop with what it raised."""

    def wait(self) -> None:
        """Return when all tasks have run and all `done` have been called."""
