"""Random histories of a server, and all the states that its journal goes through."""

from __future__ import annotations

from random import Random
from typing import Any

from disqueue.core.forwarding import ACKJOB, DELJOB, DEQUEUE, ENQUEUE, NACK, WORKING
from disqueue.core.job import ACTIVE, DELIVERED, QUEUED
from disqueue.journal.image import Image
from disqueue.journal.recovery import Recovery
from disqueue.journal.segments import SegmentTable
from disqueue.simulation.disk import SimulatedDisk
from tests.journal.support import NODE_ID, Server, job_state

QUEUES = (b"a", b"b")


def random_step(server: Server, random: Random) -> None:
    """Do one thing that clients do."""
    node = server.node
    choice = random.randrange(9)
    jobs = [job for job in node.jobs if job.state in (ACTIVE, QUEUED)]
    if choice < 4 or not jobs:
        server.add(
            random.choice(QUEUES),
            random.randbytes(random.choice((0, 5, 40))),
            retry_s=random.choice((0, 1, 60)),
            delay_s=random.choice((0, 0, 0, 3)),
            ttl_s=random.choice((100, 86_400)),
        )
    elif choice < 6:
        server.get(random.choice(QUEUES), random.randrange(1, 4))
    elif choice < 8:
        node.apply(random.choice((ACKJOB, ACKJOB, NACK, WORKING, ENQUEUE, DEQUEUE, DELJOB)), random.choice(jobs))
    else:
        node.set_pause(random.choice(QUEUES), random.randrange(4), False)


def random_history(server: Server, random: Random, passes: int, longest_ms: int = 400) -> None:
    """Let a server live for so many passes."""
    for _ in range(passes):
        for _ in range(random.randrange(4)):
            random_step(server, random)
        server.run_pass(random.randrange(1, longest_ms))


def lasting(state: dict[bytes, tuple[Any, ...]]) -> dict[bytes, tuple[Any, ...]]:
    """Return a server's state without the at-most-once jobs that were handed out: they are over, and only shown for a while."""
    return {job_id: job for job_id, job in state.items() if not (job[10] == 0 and job[2] == ACTIVE and job[3] & DELIVERED)}


def slot_of(node_id: bytes) -> int:
    assert node_id == NODE_ID
    return 0


def image_state(image: Image) -> tuple[Any, ...]:
    """Return an image's content in a form that can be compared."""
    jobs = {}
    for job in image.jobs:
        name, job.queue = job.queue, None
        jobs[job.id] = (name, *job_state(job, 0))
        job.queue = name
    pauses = {name: (queue.paused_in, queue.paused_out) for name, queue in image.pauses.items()}
    return (sorted(jobs.items()), sorted(pauses.items()))


class RecordingImage(Image):
    """An image that remembers each state it went through."""

    def __init__(self, table: SegmentTable) -> None:
        super().__init__(table, slot_of)
        self.states: list[tuple[Any, ...]] = [image_state(self)]

    def apply(self, kind: int, data: bytes, start: int, end: int, segment: Any) -> None:
        super().apply(kind, data, start, end, segment)
        self.states.append(image_state(self))


def read(disk: SimulatedDisk, image_type: Any = None) -> tuple[Recovery, Image]:
    """Read a journal as a start would, without changing it."""
    table = SegmentTable(NODE_ID)
    image = RecordingImage(table) if image_type else Image(table, slot_of)
    recovery = Recovery(disk, NODE_ID, image, table)
    if recovery.open():
        while not recovery.step():
            pass
    return recovery, image
