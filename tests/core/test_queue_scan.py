"""Scanning queues: all are seen, whatever comes and goes meanwhile."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from disqueue.core.queue import Queue
from disqueue.core.queue_scan import QueueScan


def make(name: bytes, scan_hash: int) -> Queue:
    queue = Queue(name, 0)
    queue.scan_hash = scan_hash
    return queue


@given(
    hashes=st.lists(st.one_of(st.integers(0, (1 << 32) - 1), st.sampled_from([0, 5, 1 << 22, (1 << 32) - 1])), max_size=60),
    limit=st.integers(1, 20),
    going=st.lists(st.integers(0, 59), max_size=20),
)
def test_every_queue_that_stays_is_seen_once(hashes: list[int], limit: int, going: list[int]) -> None:
    scan = QueueScan()
    queues = [make(b"%d" % number, value) for number, value in enumerate(hashes)]
    for queue in queues:
        scan.add(queue)
    leaving = [queues[number] for number in dict.fromkeys(going) if number < len(queues)]
    staying = [queue for queue in queues if queue not in leaving]
    seen: list[Queue] = []
    cursor = 0
    while True:
        page, cursor = scan.page(cursor, limit)
        seen += page
        if leaving:
            scan.remove(leaving.pop())
        if cursor == 0:
            break
    assert len(seen) == len(set(seen))
    assert set(staying) <= set(seen)


def test_a_removed_queue_leaves_nothing() -> None:
    scan = QueueScan()
    queues = [make(name, zlib.crc32(name)) for name in (b"a", b"b")]
    for queue in queues:
        scan.add(queue)
    for queue in queues:
        scan.remove(queue)
    assert scan.page(0, 10) == ([], 0)
    assert not scan.shards
