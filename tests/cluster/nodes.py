"""A cluster of whole nodes in this process, on virtual time, with clients that talk to them over the simulated network."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from disqueue.core.job import QUEUED, Job
from disqueue.core.journal_port import JournalPort
from disqueue.core.node import Node
from disqueue.simulation.cluster import Cluster, Machine
from disqueue.simulation.network import Endpoint
from disqueue.simulation.observer import Observer
from disqueue.simulation.process import CLIENT_PORT
from disqueue.simulation.replies import Reply, ReplyError, ReplyReader, encode_request
from disqueue.simulation.state import check_process

Word = str | bytes | int
ANSWER_MS = 120_000


class NoFailures(Observer):
    """Keeps the first exception that a node raised; the process raises it too, and so does the test."""


class Caller:
    """One client connection to a node. `send` and `replies` for what blocks, `ask` for the rest."""

    def __init__(self, one: OneNode, name: str) -> None:
        self._one = one
        self._world = one.machine.cluster.world
        self._reader = ReplyReader()
        self.replies: deque[Any] = deque()
        self.endpoint: Endpoint | None = None
        self.closed = False
        network = one.machine.cluster.network
        host = network.host(name)
        host.post = lambda call: call()
        network.dial(host, one.machine.host.address, CLIENT_PORT, self._connected, self._refused, lambda: False)
        self._world.run(self._world.now_ms + ANSWER_MS, lambda: self.endpoint is not None or self.closed)
        assert self.endpoint is not None, "no connection"

    def _connected(self, endpoint: Endpoint) -> None:
        endpoint.receiver = self
        self.endpoint = endpoint

    def _refused(self, _reason: str) -> None:
        self.closed = True

    def received(self, data: bytes) -> None:
        self.replies.extend(self._reader.feed(data))

    def lost(self, _reason: str) -> None:
        self.closed = True

    def send(self, *words: Word) -> None:
        """Send a request; its reply turns up in `replies`."""
        assert self.endpoint is not None
        self.endpoint.write(encode_request([word if isinstance(word, bytes) else str(word).encode() for word in words]))

    def reply(self, limit_ms: int = ANSWER_MS) -> Any:
        """Let time pass until there is a reply, and return it; an error reply is returned as its text."""
        self._world.run(self._world.now_ms + limit_ms, lambda: bool(self.replies) or self.closed)
        assert self.replies, "no reply" + (", connection lost" if self.closed else "")
        reply: Reply = self.replies.popleft()
        return reply.text if isinstance(reply, ReplyError) else reply

    def ask(self, *words: Word) -> Any:
        """Send a request and return its reply."""
        self.send(*words)
        return self.reply()

    def close(self) -> None:
        assert self.endpoint is not None
        self.endpoint.abort()


class OneNode:
    """A node of the cluster, and a client that is connected to it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._caller: Caller | None = None
        self._callers = 0

    @property
    def node(self) -> Node:
        assert self.machine.process is not None
        return self.machine.process.node

    @property
    def id(self) -> bytes:
        return self.machine.node_id

    def caller(self) -> Caller:
        """Return a connection of its own."""
        self._callers += 1
        return Caller(self, f"10.1.{self.machine.index}.{self._callers}")

    def ask(self, *words: Word) -> Any:
        if self._caller is None or self._caller.closed:
            self._caller = self.caller()
        return self._caller.ask(*words)

    def add(self, queue: str, *options: Word, body: Word = "x", timeout_ms: int = 0) -> bytes:
        job_id = self.ask("ADDJOB", queue, body, timeout_ms, *options)
        assert isinstance(job_id, bytes), job_id
        return job_id

    def add_many(self, count: int, queue: str, *options: Word) -> list[bytes]:
        return [self.add(queue, *options, body=f"{queue} {number}") for number in range(count)]

    def get(self, queue: str, count: int = 1, timeout_ms: int = 5000) -> list[bytes]:
        """Get so many jobs, or as many as come in time; return their ids."""
        ids: list[bytes] = []
        while len(ids) < count:
            jobs = self.ask("GETJOB", "TIMEOUT", timeout_ms, "COUNT", count - len(ids), "FROM", queue)
            if not isinstance(jobs, list):
                assert jobs is None, jobs
                break
            ids += [job[1] for job in jobs]
        return ids

    def show(self, job_id: bytes) -> dict[str, Any]:
        reply = self.ask("SHOW", job_id)
        if reply is None:
            return {}
        return {key.decode(): value for key, value in zip(reply[::2], reply[1::2], strict=True)}

    def info(self) -> dict[str, str]:
        lines = self.ask("INFO").decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def job(self, job_id: bytes) -> Job | None:
        return self.node.jobs.get(job_id)

    def kill(self) -> None:
        self.machine.kill()

    def start(self) -> None:
        self.machine.start()


class Nodes:
    """So many nodes that have met. Fails when a node raises, and checks their tables at the end of each `wait`.

    `journal`: the fsync policy of all of them; "": they keep none.
    """

    def __init__(
        self,
        size: int,
        *,
        seed: int = 1,
        latency_ms: tuple[int, int] = (1, 1),
        node_timeout_ms: int = 5000,
        journal: str = "",
    ) -> None:
        self.cluster = Cluster(seed, size, NoFailures(), node_timeout_ms)
        self.cluster.network.min_latency_ms, self.cluster.network.max_latency_ms = latency_ms
        self.world = self.cluster.world
        for machine in self.cluster.machines:
            machine.journal_policy = journal
        self.all = [OneNode(machine) for machine in self.cluster.machines]
        self.cluster.start()
        assert self.cluster.join()

    def __iter__(self) -> Any:
        return iter(self.all)

    def __getitem__(self, index: int) -> OneNode:
        return self.all[index]

    @property
    def running(self) -> list[OneNode]:
        return [one for one in self.all if one.machine.running]

    def wait(self, milliseconds: int) -> None:
        """Let time pass."""
        self.world.run(self.world.now_ms + milliseconds)
        for one in self.running:
            assert one.machine.process is not None
            check_process(one.machine.process)

    def until(self, condition: Callable[[], bool], limit_ms: int = 30_000) -> int:
        """Let time pass until a condition holds; return how long that took."""
        start_ms = self.world.now_ms
        assert condition() or self.world.run(start_ms + limit_ms, condition), "it did not happen"
        return self.world.now_ms - start_ms

    def joined(self) -> None:
        self.until(self.cluster.is_joined, 60_000)

    def partition(self, *sides: tuple[int, ...]) -> None:
        """Let nothing through between nodes of different sides."""
        for side in sides:
            for other in sides:
                if side is not other:
                    for one in side:
                        for two in other:
                            self.cluster.network.block(self[one].machine.host.address, self[two].machine.host.address)

    def heal(self) -> None:
        self.cluster.network.heal()
        self.joined()

    def lengths(self, queue: str) -> list[int]:
        found = [one.node.queues.get(queue.encode()) for one in self.running]
        return [len(queue.jobs) if queue is not None else 0 for queue in found]

    def registered(self) -> list[int]:
        return [len(one.node.jobs) for one in self.running]

    def nothing_left(self, limit_ms: int = 10_000) -> int:
        """Let time pass until no node keeps any job; return how long that took."""
        return self.until(lambda: not any(self.registered()), limit_ms)

    def watch_queueing(self) -> Counter[bytes]:
        """Count from now on how often each job is put into a queue, on any node."""
        counts: Counter[bytes] = Counter()

        class Watch(JournalPort):
            def job_changed(self, job: Job) -> None:
                if job.state == QUEUED:
                    counts[job.id] += 1

        for one in self.running:
            one.node.journal = Watch()
        return counts

    def records(self) -> list[int]:
        """How many records each node has sent."""
        return [one.node.members.stats.messages_sent for one in self.running]
