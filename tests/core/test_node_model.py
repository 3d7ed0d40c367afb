"""A node driven with random commands and virtual time, against a model that knows only lists and dicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from disqueue.commands import jobs as job_commands
from disqueue.commands import queues as queue_commands
from disqueue.commands.holder import NodeHolder
from disqueue.core.client import Client
from disqueue.core.node import Node
from disqueue.core.registry import JOB_BYTES, QUEUE_BYTES
from disqueue.core.scheduler import LINGER_MS, PAUSE_RETRY_MS
from disqueue.core.settings import Settings
from disqueue.wire.resp import ReplyWriter

QUEUES = [b"red", b"green", b"blue"]
WALL_MS = 1_700_000_000_000


@dataclass
class ModelJob:
    number: int
    job_id: bytes
    queue: bytes
    body: bytes
    expires_ms: int
    ttl_s: int
    retry_s: int
    due_ms: int = 0
    state: str = "active"
    order: tuple[int, int] = (0, 0)
    delivered: bool = False
    once_queued: bool = False
    nacks: int = 0
    deliveries: int = 0


@dataclass
class Waiter:
    client: Client
    queue: bytes
    count: int
    deadline_ms: int


@dataclass
class Model:
    now_ms: int = 1000
    jobs: dict[bytes, ModelJob] = field(default_factory=dict)
    pauses: dict[bytes, int] = field(default_factory=dict)
    waiters: list[Waiter] = field(default_factory=list)
    served: list[tuple[Client, list[ModelJob] | None]] = field(default_factory=list)

    def queued(self, queue: bytes) -> list[ModelJob]:
        return sorted(
            (job for job in self.jobs.values() if job.queue == queue and job.state == "queued"), key=lambda job: job.order
        )

    def enqueue(self, job: ModelJob, reason: str) -> bool:
        if job.state != "active" or (job.retry_s == 0 and job.delivered):
            return False
        if self.pauses.get(job.queue, 0) & 1:
            job.due_ms = self.now_ms + max(job.retry_s * 1000, PAUSE_RETRY_MS)
            return False
        if job.once_queued and reason != "nack":
            job.deliveries += 1
        job.once_queued = True
        job.order = (0, job.number)
        if reason == "nack":
            # Behind what is queued now; what is added later comes later still.
            last = self.queued(job.queue)
            newest = max([other.number for other in self.jobs.values()])
            job.order = max((0, newest), last[-1].order if last else (0, 0))
            job.order = (job.order[0], job.order[1] + 0.001)  # type: ignore[assignment]
        job.state = "queued"
        job.due_ms = 0
        return True

    def take(self, queue: bytes, count: int) -> list[ModelJob]:
        taken = []
        while len(taken) < count and not self.pauses.get(queue, 0) & 2:
            waiting = self.queued(queue)
            if not waiting:
                break
            job = waiting[0]
            if job.expires_ms <= self.now_ms:
                del self.jobs[job.job_id]
                continue
            job.state = "active"
            job.delivered = True
            job.due_ms = 0
            if job.retry_s:
                job.due_ms = self.now_ms + job.retry_s * 1000
            else:
                job.expires_ms = min(job.expires_ms, self.now_ms + LINGER_MS)
            taken.append(job)
        return taken

    def serve(self) -> None:
        for waiter in list(self.waiters):
            jobs = self.take(waiter.queue, waiter.count)
            if jobs:
                self.waiters.remove(waiter)
                self.served.append((waiter.client, jobs))

    def advance(self, now_ms: int) -> None:
        self.now_ms = now_ms
        for job in list(self.jobs.values()):
            if job.expires_ms <= now_ms:
                del self.jobs[job.job_id]
            elif job.state == "active" and job.due_ms and job.due_ms <= now_ms:
                self.enqueue(job, "time")
        for waiter in list(self.waiters):
            if waiter.deadline_ms <= now_ms:
                self.waiters.remove(waiter)
                self.served.append((waiter.client, None))


def parse_reply(data: bytes) -> tuple[Any, bytes]:
    line, rest = data.split(b"\r\n", 1)
    kind, text = line[:1], line[1:]
    if kind == b"$":
        length = int(text)
        return (None, rest) if length < 0 else (rest[:length], rest[length + 2 :])
    if kind == b"*":
        count = int(text)
        if count < 0:
            return None, rest
        items = []
        for _ in range(count):
            item, rest = parse_reply(rest)
            items.append(item)
        return items, rest
    if kind == b":":
        return int(text), rest
    return line, rest


class NodeMachine(RuleBasedStateMachine):
    """Each rule does a command to the node and to the model, and compares the replies."""

    @initialize()
    def start(self) -> None:
        counter = [0]

        def entropy(length: int) -> bytes:
            counter[0] += 1
            return b"".join((counter[0] * 1_000_003 + index * 7919).to_bytes(9, "big") for index in range(length // 9 + 1))[
                :length
            ]

        options = Settings()
        options.maxmemory_bytes = 0
        options.queue_idle_ms = 10**12
        self.node = Node(options, entropy, b"0123456789" * 4)
        self.broker: Any = NodeHolder(self.node)
        self.model = Model()
        self.client = Client(1, ReplyWriter())
        self.number = 0
        self.clients = 1
        self.unblocked: list[Client] = []
        self.node.on_unblock = self.unblocked.append
        self.node.begin_pass(self.model.now_ms, WALL_MS)

    def run(self, handler: Any, *args: bytes, client: Client | None = None) -> Any:
        client = client or self.client
        handler(self.broker, client, [b"x", *args])
        data = client.reply.take()
        self.node.end_pass()
        if not data:
            return "blocked"
        reply, rest = parse_reply(data)
        assert rest == b""
        return reply

    def settle(self) -> None:
        """Serve the model's waiters and compare what the blocked clients got."""
        self.model.serve()
        assert {client.id for client in self.unblocked} == {client.id for client, _ in self.model.served}
        for client, jobs in self.model.served:
            reply, rest = parse_reply(client.reply.take())
            assert rest == b""
            assert reply == ([[job.queue, job.job_id, job.body] for job in jobs] if jobs is not None else None)
            assert client.blocked == 0
        self.model.served.clear()
        self.unblocked.clear()

    def pick(self, index: int) -> ModelJob | None:
        jobs = list(self.model.jobs.values())
        return jobs[index % len(jobs)] if jobs else None

    @rule(
        queue=st.sampled_from(QUEUES),
        retry=st.sampled_from([0, 1, 2, 5]),
        ttl=st.sampled_from([1, 3, 10, 1000]),
        delay=st.sampled_from([0, 0, 0, 1, 2]),
        maxlen=st.sampled_from([0, 0, 2]),
    )
    def add(self, queue: bytes, retry: int, ttl: int, delay: int, maxlen: int) -> None:
        self.number += 1
        body = b"body-%d" % self.number
        options = [b"RETRY", b"%d" % retry, b"TTL", b"%d" % ttl, b"DELAY", b"%d" % delay]
        if maxlen:
            options += [b"MAXLEN", b"%d" % maxlen]
        reply = self.run(job_commands.addjob, queue, body, b"0", *options)
        if delay >= ttl:
            assert reply.startswith(b"-ERR The specified DELAY")
            return
        if maxlen and len(self.model.queued(queue)) >= maxlen:
            assert reply.startswith(b"-MAXLEN")
            return
        if self.model.pauses.get(queue, 0) & 1:
            assert reply.startswith(b"-PAUSED")
            return
        assert reply.startswith(b"+D-01234567-")
        now = self.model.now_ms
        job = ModelJob(self.number, reply[1:], queue, body, now + ttl * 1000, ttl, retry)
        self.model.jobs[job.job_id] = job
        if delay:
            job.due_ms = now + delay * 1000
        else:
            self.model.enqueue(job, "first")
        self.settle()

    @rule(queue=st.sampled_from(QUEUES), count=st.integers(1, 4))
    def get(self, queue: bytes, count: int) -> None:
        reply = self.run(job_commands.getjob, b"NOHANG", b"COUNT", b"%d" % count, b"WITHCOUNTERS", b"FROM", queue)
        jobs = self.model.take(queue, count)
        if not jobs:
            assert reply is None
            return
        assert reply == [
            [job.queue, job.job_id, job.body, b"nacks", job.nacks, b"additional-deliveries", job.deliveries] for job in jobs
        ]

    @rule(first=st.sampled_from(QUEUES), second=st.sampled_from(QUEUES), count=st.integers(1, 5))
    def get_from_two(self, first: bytes, second: bytes, count: int) -> None:
        reply = self.run(job_commands.getjob, b"NOHANG", b"COUNT", b"%d" % count, b"FROM", first, second)
        jobs: list[ModelJob] = []
        while len(jobs) < count:
            before = len(jobs)
            for queue in (first, second):
                if len(jobs) < count:
                    jobs += self.model.take(queue, 1)
            if len(jobs) == before:
                break
        assert reply == ([[job.queue, job.job_id, job.body] for job in jobs] if jobs else None)

    @rule(queue=st.sampled_from(QUEUES), count=st.integers(1, 3), timeout=st.sampled_from([1, 500, 3000, 0]))
    def wait(self, queue: bytes, count: int, timeout: int) -> None:
        self.clients += 1
        client = Client(self.clients, ReplyWriter())
        reply = self.run(job_commands.getjob, b"COUNT", b"%d" % count, b"TIMEOUT", b"%d" % timeout, b"FROM", queue, client=client)
        jobs = self.model.take(queue, count)
        if jobs:
            assert reply == [[job.queue, job.job_id, job.body] for job in jobs]
        else:
            assert reply == "blocked"
            deadline = self.model.now_ms + timeout if timeout else 10**15
            self.model.waiters.append(Waiter(client, queue, count, deadline))

    @rule(index=st.integers(0, 50))
    def hang_up(self, index: int) -> None:
        if self.model.waiters:
            waiter = self.model.waiters.pop(index % len(self.model.waiters))
            self.node.disconnect(waiter.client)
            assert waiter.client.reply.take() == b""
            self.unblocked.clear()

    @rule(index=st.integers(0, 100), verb=st.sampled_from(["ackjob", "fastack", "deljob"]))
    def finish(self, index: int, verb: str) -> None:
        job = self.pick(index)
        if job is not None:
            assert self.run(getattr(job_commands, verb), job.job_id, job.job_id) == 1
            del self.model.jobs[job.job_id]

    @rule(index=st.integers(0, 100))
    def nack(self, index: int) -> None:
        job = self.pick(index)
        if job is None:
            return
        allowed = job.state == "active" and not (job.retry_s == 0 and job.delivered)
        assert self.run(job_commands.nack, job.job_id) == int(allowed)
        if allowed:
            job.nacks += 1
            self.model.enqueue(job, "nack")
        self.settle()

    @rule(index=st.integers(0, 100))
    def enqueue(self, index: int) -> None:
        job = self.pick(index)
        if job is not None:
            assert self.run(job_commands.enqueue, job.job_id) == int(self.model.enqueue(job, "command"))
            self.settle()

    @rule(index=st.integers(0, 100))
    def dequeue(self, index: int) -> None:
        job = self.pick(index)
        if job is None:
            return
        assert self.run(job_commands.dequeue, job.job_id) == int(job.state == "queued")
        if job.state == "queued":
            job.state = "active"
            job.due_ms = self.model.now_ms + job.retry_s * 1000 if job.retry_s else 0

    @rule(index=st.integers(0, 100))
    def working(self, index: int) -> None:
        job = self.pick(index)
        if job is None:
            return
        reply = self.run(job_commands.working, job.job_id)
        if job.retry_s and (job.expires_ms - self.model.now_ms) * 2 < job.ttl_s * 1000:
            assert reply.startswith(b"-TOOLATE")
            return
        assert reply == job.retry_s
        delayed = not job.once_queued and job.state == "active"
        if job.retry_s and not delayed:
            job.state = "active"
            job.due_ms = self.model.now_ms + job.retry_s * 1000

    @rule(queue=st.sampled_from(QUEUES), state=st.integers(0, 3))
    def pause(self, queue: bytes, state: int) -> None:
        word = [b"none", b"in", b"out", b"all"][state]
        assert self.run(queue_commands.pause, queue, word) == b"+" + word
        self.model.pauses[queue] = state
        self.settle()

    @rule(step=st.sampled_from([0, 1, 499, 500, 999, 1000, 1001, 5000, 100_000]))
    def time_passes(self, step: int) -> None:
        now = self.model.now_ms + step
        self.node.begin_pass(now, WALL_MS + now)
        while 0 <= self.node.next_deadline_ms() <= now:
            self.node.advance()
        self.node.end_pass()
        self.model.advance(now)
        self.settle()

    @rule()
    def flush(self) -> None:
        self.node.flush()
        for waiter in self.model.waiters:
            self.model.served.append((waiter.client, None))
        self.model.waiters.clear()
        self.model.jobs.clear()
        self.model.pauses.clear()
        self.settle()

    @invariant()
    def same_state(self) -> None:
        if not hasattr(self, "node"):
            return
        for queue in QUEUES:
            expected = [job.job_id for job in self.model.queued(queue)]
            known = self.node.queues.get(queue)
            assert [job.id for job in (known.jobs.page(0, 1000, False) if known else [])] == expected
        assert {job.id for job in self.node.jobs} == set(self.model.jobs)
        assert self.node.queued_jobs == sum(job.state == "queued" for job in self.model.jobs.values())
        assert self.node.blocked_clients == len(self.model.waiters)
        timers = len(self.model.jobs) + sum(waiter.deadline_ms < 10**15 for waiter in self.model.waiters)
        assert self.node.timers.count - (self.node.idle_timer.timer_slot >= 0) == timers
        used = sum(JOB_BYTES + len(job.body) for job in self.model.jobs.values())
        used += sum(QUEUE_BYTES + len(name) for name in self.node.queues)
        assert self.node.used_bytes == used


NodeMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestNode = NodeMachine.TestCase
