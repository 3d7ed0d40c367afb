"""Jobs in order, for a queue: by `order_ns`, then id.

A list of blocks, each a plain list of at most twice BLOCK_JOBS jobs. A job that arrives in order is appended in O(1); one
that comes late finds its place by bisection in O(log n) and moves at most a block; taking the first is O(1) amortised;
taking one out of the middle is O(log n). Eight bytes a job.
"""

from __future__ import annotations

from disqueue.core.job import Job, is_before

BLOCK_JOBS = 256
_BLOCK_JOBS = BLOCK_JOBS
COMPACT_AT = 64
"""Emptied blocks at the front that are kept before the list of blocks is shortened."""


class JobList:
    """An ordered collection of jobs. A job is in it at most once."""

    def __init__(self) -> None:
        self.blocks: list[list[Job]] = []
        self.first_block = 0
        self.count = 0

    def add(self, job: Job) -> None:
        """Put a job into its place."""
        self.count += 1
        blocks = self.blocks
        if self.first_block == len(blocks):
            blocks.append([job])
            return
        block = blocks[-1]
        last = block[-1]
        if is_before(last, job):
            if len(block) < _BLOCK_JOBS:
                block.append(job)
            else:
                blocks.append([job])
            return
        self._insert(job)

    def last(self) -> Job | None:
        """Return the last job, or None."""
        if self.count == 0:
            return None
        return self.blocks[-1][-1]

    def pop_first(self) -> Job | None:
        """Take the first job out and return it, or None."""
        if self.count == 0:
            return None
        block = self.blocks[self.first_block]
        job = block.pop(0)
        self.count -= 1
        if not block:
            self._drop_first()
        return job

    def remove(self, job: Job) -> None:
        """Take out a job that is in the list; its order must not have changed since it was added."""
        blocks = self.blocks
        number = self._block_of(job)
        block = blocks[number]
        index = _place(block, job)
        if block[index] is not job:
            raise AssertionError("job is not where its order says")
        del block[index]
        self.count -= 1
        if not block:
            if number == self.first_block:
                self._drop_first()
            else:
                del blocks[number]

    def page(self, offset: int, count: int, newest_first: bool) -> list[Job]:
        """Return up to `count` jobs after skipping `offset`, from the front or from the back."""
        found: list[Job] = []
        blocks = self.blocks[self.first_block :]
        if newest_first:
            blocks.reverse()
        for block in blocks:
            if offset >= len(block):
                offset -= len(block)
                continue
            wanted = block[::-1] if newest_first else block
            found.extend(wanted[offset : offset + count - len(found)])
            offset = 0
            if len(found) >= count:
                break
        return found

    def clear(self) -> None:
        """Forget all jobs."""
        self.blocks = []
        self.first_block = 0
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def _drop_first(self) -> None:
        self.first_block += 1
        if self.first_block == len(self.blocks):
            self.clear()
        elif self.first_block >= COMPACT_AT and self.first_block * 2 >= len(self.blocks):
            del self.blocks[: self.first_block]
            self.first_block = 0

    def _insert(self, job: Job) -> None:
        number = self._block_of(job)
        block = self.blocks[number]
        block.insert(_place(block, job), job)
        if len(block) >= 2 * _BLOCK_JOBS:
            half = block[_BLOCK_JOBS:]
            del block[_BLOCK_JOBS:]
            self.blocks.insert(number + 1, half)

    def _block_of(self, job: Job) -> int:
        """Return the number of the first block whose last job is not before `job`."""
        low = self.first_block
        high = len(self.blocks) - 1
        while low < high:
            middle = (low + high) >> 1
            block = self.blocks[middle]
            last = block[-1]
            if is_before(last, job):
                low = middle + 1
            else:
                high = middle
        return low


def _place(block: list[Job], job: Job) -> int:
    """Return the index of the first job in the block that is not before `job`."""
    low = 0
    high = len(block)
    while low < high:
        middle = (low + high) >> 1
        other = block[middle]
        if is_before(other, job):
            low = middle + 1
        else:
            high = middle
    return low
