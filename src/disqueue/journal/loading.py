"""Brings a journal back into a node, in steps: reads it, repairs what a crash left, hands the jobs over, and goes on writing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from disqueue.core.job import ACTIVE, DELIVERED, QUEUED, Job
from disqueue.core.node import Node
from disqueue.core.queue import PAUSED_IN, PAUSED_OUT
from disqueue.core.restoring import restore_job, slot_of
from disqueue.journal.disk import Disk
from disqueue.journal.image import Image
from disqueue.journal.recorder import Recorder
from disqueue.journal.recovery import Cut, Recovery, load_truncated_refused
from disqueue.journal.writer import ALWAYS


@dataclass
class Loaded:
    """What came of loading."""

    jobs: int = 0
    records: int = 0
    bytes: int = 0
    cut: Cut | None = None
    withheld: int = 0
    """At-most-once jobs that may have been delivered shortly before the crash, so they are not delivered again."""
    incomplete: bool = False


class Loading:
    """One load. Call `step` until it returns True; `recorder` hears of the jobs of the journal that the node does not keep."""

    def __init__(self, disk: Disk, node: Node, recorder: Recorder, truncated: bool) -> None:
        self.disk = disk
        self.node = node
        self.recorder = recorder
        self.truncated = truncated
        self.table = recorder.table
        self.image = Image(self.table, self._slot_of)
        self.recovery = Recovery(disk, node.node_id, self.image, self.table)
        self.result = Loaded()
        self.is_read = False
        """All is read and judged; what is left is to hand the jobs over."""
        self.is_settled = False
        """The disk is ready to be written on."""
        self._blocks = 0
        """Blocks of jobs that are handed over."""
        self._doubtful = False
        if not self.recovery.open():
            self.is_read = True

    def _slot_of(self, node_id: bytes) -> int:
        return slot_of(self.node, node_id)

    def step(self) -> bool:
        """Do a piece of the work; True when it is done. Raises `JournalError` and OSError."""
        if not self.is_read:
            if self.recovery.step():
                self._read()
                self.is_read = True
            return False
        image = self.image
        if self._blocks < len(image.order.blocks):
            for job in image.order.take_block(self._blocks):
                image.jobs.remove(job)
                self._restore(job)
            self._blocks += 1
        return self._blocks >= len(image.order.blocks)

    def progress(self) -> float:
        """Return how much is done, 0 to 1. Handing over counts as a third."""
        total = self.recovery.total_bytes
        blocks = len(self.image.order.blocks)
        if not self.is_read:
            return self.recovery.read_bytes / total * 0.67 if total else 0.0
        return 0.67 + 0.33 * self._blocks / blocks if blocks else 1.0

    def _read(self) -> None:
        """All is read: decide on a cut, and what can be believed."""
        recovery = self.recovery
        if recovery.cut is not None and not self.truncated:
            raise load_truncated_refused(recovery.cut)
        image = self.image
        result = self.result
        result.records = image.records
        result.bytes = recovery.total_bytes
        result.cut = recovery.cut
        result.incomplete = not self.table.complete
        self._doubtful = not self._end_is_known()
        for queue in image.pauses.values():
            self.node.pause_here(queue.name, PAUSED_IN * queue.paused_in | PAUSED_OUT * queue.paused_out)

    def _end_is_known(self) -> bool:
        """Return whether nothing can have happened that the journal does not tell."""
        run = self.image.run
        closed = self.image.closed
        if closed is not None:
            return not closed.switched_off
        cut = self.recovery.cut
        if cut is not None and cut.changed:
            return False
        if run is None or run.policy == ALWAYS:
            return True
        if cut is not None and not cut.torn:
            return False  # no process that is killed leaves that: a record was there, and the disk has lost it
        return run.boot_id != b"" and run.boot_id == self.disk.boot_id()

    def _restore(self, job: Job) -> None:
        node = self.node
        image = self.image
        # By the clock of the image; one that was set back while the node was down has stood still.
        offset_ms = node.now_ms - max(node.wall_ms + image.shift_ms, image.last_ms)
        name: Any = job.queue
        job.queue = None
        job.expires_ms += offset_ms
        if job.due_ms != 0:
            job.due_ms += offset_ms
        if job.retry_s == 0 and job.state in (ACTIVE, QUEUED) and not job.flags & DELIVERED and self._is_doubtful(job):
            self.result.withheld += 1
            self.recorder.job_forgotten(job)
        elif restore_job(node, job, name):
            self.result.jobs += 1
        else:
            self.recorder.job_forgotten(job)

    def _is_doubtful(self, job: Job) -> bool:
        return self._doubtful or max(job.journal_segment, job.journal_state) <= self.table.doubtful
