"""Journals that earlier releases wrote are loaded by this one."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from disqueue.simulation.disk import SimulatedDisk
from tests.journal.support import WALL_MS, Server

FORMATS = sorted(Path(__file__).parent.glob("format_*.txt"))


def unpack(path: Path) -> SimulatedDisk:
    """Return a disk with the files in a text: a name, and below it, indented, the content in hexadecimal digits."""
    disk = SimulatedDisk(Random(1))
    content: dict[str, str] = {}
    name = ""
    for line in path.read_text().splitlines():
        if not line.startswith(" "):
            name = line
        content[name] = content.get(name, "") + (line.strip() if line.startswith(" ") else "")
    for name, digits in content.items():
        disk.create(name).write(bytes.fromhex(digits))
    return disk


@pytest.mark.parametrize("path", FORMATS, ids=lambda path: path.name)
def test_a_journal_of_an_earlier_release_is_loaded(path: Path) -> None:
    """What is in the files: three jobs in `queue`, one acknowledged and one out with a worker, and the pause of the queue.

    Format 2 has them in records about several jobs, with three jobs more that came and went.
    """
    server = Server(unpack(path), wall_ms=WALL_MS + 1000).start()
    jobs = {(job.queue.name, job.body): job for job in server.node.jobs if job.queue is not None}

    assert sorted(jobs) == [
        (b"later", b"delayed"),
        *[(b"more", b"x" * count) for count in range(4)],
        (b"once", b"\x00\xff"),
        (b"queue", b"body 1"),
        (b"queue", b"body 2"),
    ]
    assert server.queued(b"queue") == [jobs[b"queue", b"body 2"].id]
    assert server.queued(b"once") == [jobs[b"once", b"\x00\xff"].id]
    assert server.queued(b"later") == []
    assert jobs[b"later", b"delayed"].due_ms - server.node.now_ms == 3_599_000
    assert jobs[b"queue", b"body 1"].due_ms - server.node.now_ms == 59_020
    assert jobs[b"more", b"xx"].ttl_s == 1002
    assert {name: queue.pause for name, queue in server.node.queues.items() if queue.pause} == {b"queue": 1}


def test_there_is_one_for_each_format() -> None:
    assert [path.name for path in FORMATS] == ["format_1.txt", "format_2.txt"]
