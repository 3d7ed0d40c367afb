"""A node with a journal on a simulated disk, and what a restart has to bring back."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from disqueue.core.client import Client
from disqueue.core.job import ASKED, DELIVERED, QUEUED, RESTORED, Job
from disqueue.core.node import Node
from disqueue.core.settings import Settings
from disqueue.journal.runtime import JournalRuntime, JournalSettings
from disqueue.simulation.disk import SimulatedDisk
from disqueue.wire.resp import ReplyWriter

NODE_ID = b"0123456789abcdef0123456789abcdef01234567"
WALL_MS = 1_800_000_000_000


class ManualExecutor:
    """Runs tasks when a test says so, or at once."""

    def __init__(self, at_once: bool = True) -> None:
        self.at_once = at_once
        self.tasks: list[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = []

    def submit(self, task: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        if self.at_once:
            self._run(task, done)
        else:
            self.tasks.append((task, done))

    def wait(self) -> None:
        while self.tasks:
            self.run_one()

    def run_one(self) -> None:
        self._run(*self.tasks.pop(0))

    def _run(self, task: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        error: BaseException | None = None
        try:
            task()
        except OSError as raised:
            error = raised
        done(error)


class Server:
    """A node alone, in virtual time, whose passes are driven by hand."""

    def __init__(
        self, disk: SimulatedDisk, now_ms: int = 1000, wall_ms: int = WALL_MS, node_id: bytes = NODE_ID, **settings: Any
    ) -> None:
        self.disk = disk
        self.node = Node(Settings(), Random(disk.written_bytes * 1000 + disk.process).randbytes, node_id)
        self.executor = ManualExecutor()
        self.settings = JournalSettings(**settings)
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.runtime = JournalRuntime(self.settings, disk, self.executor, self.node, self.log)
        self.client = Client(1, ReplyWriter())
        self.node.begin_pass(now_ms, wall_ms)

    def log(self, level: str, event: str, **fields: Any) -> None:
        self.events.append((f"{level}: {event}", fields))

    def start(self) -> Server:
        """Load what is there and write from now on."""
        self.runtime.load()
        while not self.runtime.load_step():
            pass
        self.runtime.start()
        return self

    def restarted(self, after_ms: int = 0, **settings: Any) -> Server:
        """Return a server that has loaded what this one left; this one ended without notice."""
        self.disk.kill()
        return self.successor(after_ms, **settings).start()

    def successor(self, after_ms: int = 0, **settings: Any) -> Server:
        wall_ms = self.node.wall_ms + after_ms
        return Server(self.disk, now_ms=500 + after_ms, wall_ms=wall_ms, **{**self.settings.__dict__, **settings})

    def run_pass(self, milliseconds: int = 1) -> bool:
        """End this pass and begin the next."""
        node = self.node
        kept = self.end_pass()
        node.begin_pass(node.now_ms + milliseconds, node.wall_ms + milliseconds)
        node.advance()
        return kept

    def end_pass(self) -> bool:
        """End this pass."""
        self.node.end_pass()
        return self.runtime.end_pass(self.node.now_ms, self.node.wall_ms)

    def idle(self, passes: int = 20, milliseconds: int = 300) -> None:
        for _ in range(passes):
            self.run_pass(milliseconds)

    # -- what clients do

    def add(self, queue: bytes = b"q", body: bytes = b"body", retry_s: int = 60, delay_s: int = 0, ttl_s: int = 86_400) -> bytes:
        self.node.add_job(self.client, queue, body, 0, 1, ttl_s, retry_s, delay_s, 0, False)
        return self.client.reply.take()[1:-2]

    def get(self, queue: bytes = b"q", count: int = 1) -> list[bytes]:
        before = {job.id for job in self.node.jobs if job.flags & DELIVERED and job.state == 1}
        self.node.get_jobs(self.client, [queue], count, 0, True, False)
        self.client.reply.take()
        return [job.id for job in self.node.jobs if job.flags & DELIVERED and job.state == 1 and job.id not in before]

    def ack(self, job_id: bytes) -> None:
        job = self.node.jobs.get(job_id)
        assert job is not None
        self.node.ack(job)

    def state(self) -> dict[bytes, tuple[Any, ...]]:
        """Return what has to survive a restart, with times as Unix times."""
        offset_ms = self.node.wall_ms - self.node.now_ms
        return {job.id: job_state(job, offset_ms) for job in self.node.jobs}

    def queued(self, queue: bytes = b"q") -> list[bytes]:
        """Return the ids in a queue, in order."""
        found = self.node.queues.get(queue)
        if found is None:
            return []
        jobs = [job for job in self.node.jobs if job.state == QUEUED and job.queue is found]
        ids = [job.id for job in sorted(jobs, key=lambda job: (job.order_ns, job.id))]
        assert [job.id for job in found.jobs.page(0, 1, False)] == ids[:1]
        return ids


def job_state(job: Job, offset_ms: int) -> tuple[Any, ...]:
    return (
        None if job.queue is None else job.queue.name,
        job.body,
        job.state,
        job.flags & ~(ASKED | RESTORED),
        job.nacks,
        job.deliveries,
        job.ctime_ns,
        job.order_ns,
        job.expires_ms + offset_ms,
        job.due_ms + offset_ms if job.due_ms and job.state != 3 else 0,
        job.retry_s,
        job.delay_s,
        job.ttl_s,
        job.replicate,
        job.owners,
        job.confirmed,
    )


def new_server(seed: int = 1, **settings: Any) -> Server:
    """Return a started server on an empty disk."""
    return Server(SimulatedDisk(Random(seed)), **settings).start()
