"""The queues that clients see, in an order that can be scanned page by page: that of a hash of their names.

As in the table of jobs a cursor is a place in that order, so that a scan never misses a queue that is there all the time,
and a page costs no more for there being many queues.
"""

from __future__ import annotations

from disqueue.core.queue import Queue

SHARDS = 1024
SHARD_SHIFT = 22
"""`Queue.scan_hash` has 32 bits; the upper ones choose the shard."""


class QueueScan:
    """Visible queues by the hash of their names."""

    def __init__(self) -> None:
        self.shards: dict[int, dict[Queue, None]] = {}

    def add(self, queue: Queue) -> None:
        """Show a queue."""
        self.shards.setdefault(queue.scan_hash >> SHARD_SHIFT, {})[queue] = None

    def remove(self, queue: Queue) -> None:
        """Hide a queue."""
        number = queue.scan_hash >> SHARD_SHIFT
        shard = self.shards[number]
        del shard[queue]
        if not shard:
            del self.shards[number]

    def page(self, cursor: int, limit: int) -> tuple[list[Queue], int]:
        """Return at least `limit` queues from `cursor` on, in scan order, and the next cursor (0: the scan is complete)."""
        page: list[Queue] = []
        for number in range(cursor >> SHARD_SHIFT, SHARDS):
            found = [queue for queue in self.shards.get(number, ()) if queue.scan_hash >= cursor]
            found.sort(key=_scan_hash)
            for queue in found:
                if len(page) >= limit and queue.scan_hash > page[-1].scan_hash:
                    return page, queue.scan_hash
                page.append(queue)
        return page, 0


def _scan_hash(queue: Queue) -> int:
    return queue.scan_hash
