"""All jobs of a node by id, in an order that can be scanned page by page. The plain twin of `job_table.pyx`.

The table is a fixed number of small dicts, chosen by the first two characters of the random part of the id, so that growing
never copies more than one of them: a single dict of millions would stop the loop for tens of milliseconds. A scan goes
through ids in the order of their random part; its cursor is a place in that order, so a scan never misses a job
that is there all the time, whatever comes and goes meanwhile, and no state is kept for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from disqueue.core.job import Job

SHARDS = 4096
RANDOM_AT = 11
CURSOR_CHARACTERS = 9
"""54 bits of the random part: a cursor fits into the 64 bits that clients allow."""
BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
ORDER = bytes(max(BASE64.find(character), 0) for character in range(256))


class JobTable:
    """The registered jobs."""

    def __init__(self) -> None:
        self.shards: list[dict[bytes, Job]] = [{} for _ in range(SHARDS)]
        self.count = 0

    def get(self, job_id: bytes) -> Job | None:
        """Return the job with this (valid) id, or None."""
        shard = self.shards[_shard_of(job_id)]
        return shard.get(job_id)

    def add(self, job: Job) -> None:
        """Register a job whose id is not in the table."""
        shard = self.shards[_shard_of(job.id)]
        shard[job.id] = job
        self.count += 1

    def remove(self, job: Job) -> None:
        """Take a registered job out."""
        shard = self.shards[_shard_of(job.id)]
        del shard[job.id]
        self.count -= 1
        if not shard:
            shard.clear()  # an emptied dict keeps its memory until it is cleared

    def scan(self, cursor: int, limit: int) -> tuple[list[Job], int]:
        """Return at least `limit` jobs from `cursor` on, in scan order, and the next cursor (0: the scan is complete)."""
        page: list[Job] = []
        number = cursor >> (6 * (CURSOR_CHARACTERS - 2))
        while number < SHARDS:
            shard = self.shards[number]
            if not shard:
                number += 1
                continue
            found = [(scan_position(job.id), job) for job in shard.values()]
            found = [entry for entry in found if entry[0] >= cursor]
            found.sort(key=_first)
            for position, job in found:
                if len(page) >= limit and position > scan_position(page[-1].id):
                    return page, position
                page.append(job)
            number += 1
        return page, 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Job]:
        """Iterate over a copy of each part: jobs may come and go meanwhile."""
        for shard in filter(None, self.shards):
            yield from list(shard.values())


def _first(entry: tuple[int, Job]) -> int:
    return entry[0]


def _shard_of(job_id: bytes) -> int:
    return ORDER[job_id[RANDOM_AT]] * 64 + ORDER[job_id[RANDOM_AT + 1]]


def scan_position(job_id: bytes) -> int:
    """Return the place of an id in scan order."""
    position = 0
    for character in job_id[RANDOM_AT : RANDOM_AT + CURSOR_CHARACTERS]:
        position = position * 64 + ORDER[character]
    return position
