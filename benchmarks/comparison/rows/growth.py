"""What a cycle costs with more and more jobs held, beside a server that holds few, in turns."""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Iterable, Sequence

from comparison.peers.base import SECONDS, Peer, ProtocolPeer, Work
from comparison.peers.found import Peers
from comparison.rows.base import Context, Figure, Plot, Row, Target
from comparison.servers import Running
from disqueue.cli.bench_process import resident_bytes
from disqueue.cli.bench_throughput import Plan, run_adds, run_cycles

BASE = 10_000
LEVELS = (100_000, 1_000_000, 5_000_000)
TURNS = 5
LIMIT = 1.5


def _cost(held: int) -> str:
    return f"{held:,} held: cycle, CPU"


def _ratio(held: int) -> str:
    return f"{held:,} held: over {BASE:,} held"


def _memory(held: int) -> str:
    return f"{held:,} held: memory"


class Growth(Row):
    """Cycles in the queue that holds the jobs: add at its end, get at its head."""

    key = "growth"
    title = "Growth: a cycle in a queue of many jobs"
    rounds = 1
    long = True
    targets = tuple(Target(_ratio(held), LIMIT) for held in LEVELS[1:])
    costs = [_cost(held) for held in (BASE, *LEVELS)]
    memory = [_memory(held) for held in LEVELS]
    plots = (
        Plot("growth-cpu", "Server CPU of a job's life over jobs held", costs, kind="lines", axis="jobs held"),
        Plot("growth-memory", "Memory of a held job over jobs held", memory, kind="lines", axis="jobs held"),
    )

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return [peers.ours]

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        assert isinstance(peer, ProtocolPeer)
        work = Work(context.sizes.jobs)
        with peer.nodes() as few, peer.nodes() as many:
            base, growing = _Queue(peer, few, work), _Queue(peer, many, work)
            base.fill(BASE, context)
            few_costs: list[float] = []
            for level in LEVELS:
                held = min(level, context.sizes.most_held)
                growing.fill(held, context)
                many_costs = []
                for _ in range(TURNS):
                    few_costs.append(base.cycle(context))
                    many_costs.append(growing.cycle(context))
                remark = f"{held:,} were held" if held < level else ""
                ratio = statistics.median(many_costs) / statistics.median(few_costs[-TURNS:])
                yield Figure(_cost(level), "us a job", statistics.median(many_costs), remark)
                yield Figure(_ratio(level), "times", ratio, remark)
                yield Figure(_memory(level), "bytes a job", growing.bytes_per_job, remark)
            yield Figure(_cost(BASE), "us a job", statistics.median(few_costs))


class _Queue:
    """One server and its one queue."""

    def __init__(self, peer: ProtocolPeer, running: Running, work: Work) -> None:
        self._running = running
        self._work = work
        self._protocol = peer.protocol(b"growth-" + secrets.token_hex(4).encode(), work, False)
        self._held = 0
        self._empty_bytes = resident_bytes(running.pids)

    @property
    def bytes_per_job(self) -> float:
        return (resident_bytes(self._running.pids) - self._empty_bytes) / self._held

    def _plan(self, jobs: int, pipeline: int) -> Plan:
        target, work = self._running.target(), self._work
        return Plan(self._protocol, target, target, self._running.pids, jobs, work.connections, pipeline, SECONDS)

    def fill(self, held: int, context: Context) -> None:
        """Add jobs until so many are held."""
        if held > self._held:
            run_adds(self._plan(held - self._held, 200), context.tell)
            self._held = held

    def cycle(self, context: Context) -> float:
        """Server CPU of a job's life, us."""
        return run_cycles(self._plan(self._work.jobs, self._work.pipeline), context.tell)[0][0].cpu_us
