"""The jobs that a journal tells of, in the order in which they came."""

from __future__ import annotations

from disqueue.core.job import Job

BLOCK_JOBS = 2000
"""Jobs that are handed over in one step: about 5 ms."""
_BLOCK_JOBS = BLOCK_JOBS


class JobOrder:
    """Jobs in blocks, so that nothing that is done with a million of them takes longer than a block does.

    While a job is here its `wake_ms`, which nothing else needs yet, is the number of its block; -1: it was taken out.
    """

    def __init__(self) -> None:
        self.blocks: list[list[Job]] = []
        self.gone: list[int] = []
        """How many of each block were taken out and still stand there: at most half."""

    def add(self, job: Job) -> None:
        """Take in a job behind all others."""
        if not self.blocks or len(self.blocks[-1]) >= _BLOCK_JOBS:
            self.blocks.append([])
            self.gone.append(0)
        job.wake_ms = len(self.blocks) - 1
        self.blocks[-1].append(job)

    def remove(self, job: Job) -> None:
        """Take a job out."""
        number = job.wake_ms
        job.wake_ms = -1
        gone = self.gone[number] + 1
        block = self.blocks[number]
        if 2 * gone > len(block):
            self.blocks[number] = [one for one in block if one.wake_ms >= 0]
            gone = 0
        self.gone[number] = gone

    def take_block(self, number: int) -> list[Job]:
        """Return the jobs of a block, and forget it."""
        jobs = [job for job in self.blocks[number] if job.wake_ms >= 0]
        self.blocks[number] = []
        for job in jobs:
            job.wake_ms = 0
        return jobs
