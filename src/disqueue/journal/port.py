"""What the journal needs of others. What the core tells it is `core.journal_port`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from disqueue.core.job import Job


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
