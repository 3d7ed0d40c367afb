"""What a peer is: a kind of server that can be started here, and a way to drive the life cycle of jobs through it."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from comparison.priority import undisturbed
from comparison.servers import Running, ask, run_servers
from disqueue.cli.bench_latency import LatencyPlan, LatencyResult, run_latency
from disqueue.cli.bench_protocols import Protocol
from disqueue.cli.bench_throughput import Measured, Plan, Progress, run_adds, run_cycles, run_phases
from disqueue.cli.connection import Connection

CYCLE, PHASES, LATENCY, CLUSTER = "cycle", "phases", "latency", "cluster"
"""What a peer can do."""
SECONDS = 300.0
_VERSION_S = 20


@dataclass(frozen=True, slots=True)
class Work:
    """Jobs to drive through a peer. `copies` 0: one node's own. `consumers_at`: which node gets and acknowledges."""

    jobs: int
    connections: int = 4
    pipeline: int = 50
    body_bytes: int = 64
    copies: int = 0
    consumers_at: int = 0


class Peer(ABC):
    """A kind of server."""

    name: str
    program: str
    share = 1
    """A slow one does this fraction of the jobs."""
    can: frozenset[str]
    real_time = False
    """Whether its servers and the load generator have real-time priority all the time."""

    def missing(self) -> str:
        """Why it can't be run here, or nothing."""
        return "" if shutil.which(self.program) else f"{Path(self.program).name} is not installed"

    def version(self) -> str:
        """What its program says about itself, on one line."""
        done = subprocess.run([self.program, *self.version_words()], capture_output=True, check=False, timeout=_VERSION_S)
        return " ".join((done.stdout or done.stderr).decode("utf-8", "replace").split()[:3])

    def version_words(self) -> Sequence[str]:
        return ["--version"]

    @abstractmethod
    def command(self, port: int, folder: str) -> Sequence[str]:
        """The words that start a node."""

    def environment(self, port: int, folder: str) -> Mapping[str, str]:
        """Variables for a node besides those of this process."""
        return {}

    def is_ready(self, port: int) -> bool:
        """Whether the node answers."""
        return ask(port, b"PING").startswith(b"+PONG")

    def join(self, running: Running) -> None:  # noqa: B027 - most are never more than one node
        """Make one cluster of several nodes."""

    @contextmanager
    def nodes(self, count: int = 1) -> Iterator[Running]:
        """Run so many nodes, joined. Raises ServerFailed."""
        with run_servers(self.command, count, self.is_ready, self.environment) as running:
            if count > 1:
                self.join(running)
            with undisturbed(running.pids) if self.real_time else nullcontext():
                yield running

    @abstractmethod
    def cycle(self, running: Running, work: Work, tell: Progress) -> Measured:
        """Add, get and acknowledge, few held at a time."""


class ProtocolPeer(Peer):
    """A server that `disqueue bench` drives, by a protocol of its table."""

    can = frozenset((CYCLE, PHASES, LATENCY))

    @abstractmethod
    def protocol(self, queue: bytes, work: Work, waits: bool) -> Protocol:
        """The words of the life cycle. `waits`: a get waits for its job."""

    def plan(self, running: Running, work: Work) -> Plan:
        """A run of the load generator, in a queue of its own."""
        producer, consumer = running.target(), running.target(work.consumers_at)
        protocol = self.protocol(b"compare-" + secrets.token_hex(4).encode(), work, producer != consumer)
        self._prepare(running, protocol)
        return Plan(protocol, producer, consumer, running.pids, work.jobs, work.connections, work.pipeline, SECONDS)

    def _prepare(self, running: Running, protocol: Protocol) -> None:
        with closing(Connection(running.target())) as connection:
            protocol.prepare(connection)

    def cycle(self, running: Running, work: Work, tell: Progress) -> Measured:
        return run_cycles(self.plan(running, work), tell)[0][0]

    def phases(self, running: Running, work: Work, tell: Progress) -> list[Measured]:
        """Add all, get all, acknowledge all."""
        return run_phases(self.plan(running, work), tell)[0]

    def adds(self, running: Running, work: Work, tell: Progress) -> Measured:
        """Add jobs and leave them."""
        return run_adds(self.plan(running, work), tell)[0]

    def latency(self, running: Running, work: Work, rate: float, answer_s: float, tell: Progress) -> LatencyResult:
        """Jobs at a constant rate to consumers that wait."""
        protocol = self.protocol(b"compare-" + secrets.token_hex(4).encode(), work, True)
        self._prepare(running, protocol)
        plan = LatencyPlan(
            protocol,
            running.target(),
            running.target(work.consumers_at),
            running.pids,
            rate,
            work.jobs,
            SECONDS,
            work.connections,
            answer_s,
        )
        return run_latency(plan, tell)
