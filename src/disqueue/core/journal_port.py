"""What the core tells a journal. A shell hands one in as `node.journal`; this one keeps nothing."""

from __future__ import annotations

from disqueue.core.job import Job
from disqueue.core.queue import Queue


class JournalPort:
    """What the core calls. Nothing is written before the end of the pass, and then once for each job.

    `error` is empty while the journal can be trusted. Otherwise it says why not, and the core refuses what the journal
    could not keep: adds, copies from peers, hand-outs of at-most-once jobs and, where `always_synced`, acknowledgements.
    `full`: nothing new is taken, because the disk is full, but what happens to the jobs that are there is kept.
    A class and not a protocol, so that compiled callers find methods and fields without a search by name.
    """

    def __init__(self) -> None:
        self.error = ""
        self.always_synced = False
        self.full = False

    def job_added(self, job: Job) -> None:
        """A job is kept from now on."""

    def job_changed(self, job: Job) -> None:
        """A job's state, due time, order, counters or owners are not what they were."""

    def body_dropped(self, job: Job) -> None:
        """A job was acknowledged, and its body, which it still has, is about to be dropped."""

    def job_forgotten(self, job: Job) -> None:
        """A job left the registry: it was deleted, collected, evicted or it expired."""

    def queue_changed(self, queue: Queue) -> None:
        """A queue was paused or resumed."""

    def node_changed(self) -> None:
        """LEAVING, the bans or the members changed. A journal need not keep them: nodes.conf does."""
