"""One node: pipelined cycles, single commands, latency, and memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from comparison.peers.base import LATENCY, PHASES, Peer, ProtocolPeer, Work
from comparison.peers.found import Peers
from comparison.priority import undisturbed
from comparison.rows.base import Context, Figure, Plot, Row, Target, generator_remark

CYCLE = "cycle, CPU"
RATE = "cycle, rate"
LATENCY_RATE = 1000.0
LATENCY_JOBS = 3000
LATE_US = 2000
PERCENTILES = ("p50", "p99", "p99.9")


class Cycle(Row):
    """Add, get and acknowledge with few jobs held."""

    key = "cycle"
    title = "One node, 4 connections, pipeline 50, short backlog"
    targets = (Target(CYCLE, 0.35, "original"), Target(CYCLE, 1.0, "Redis list"))
    plots = (
        Plot("cycle-cpu", "Server CPU of a job's life, pipelined", (CYCLE,), logarithmic=True),
        Plot("cycle-rate", "Jobs a second, pipelined (wall time)", (RATE,), logarithmic=True),
    )

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return [*peers.all(), peers.plain]

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        with peer.nodes() as running:
            measured = peer.cycle(running, Work(max(context.sizes.jobs // peer.share, 1)), context.tell)
        remark = generator_remark(measured)
        return [Figure(CYCLE, "us a job", measured.cpu_us), Figure(RATE, "jobs a second", measured.per_second, remark)]


class Single(Row):
    """One request at a time on each of 50 connections."""

    key = "single"
    title = "One node, 50 connections, no pipeline"
    phases = ("add", "get", "ack")
    targets = tuple(Target(f"{phase}, CPU", 0.85, "original") for phase in phases)
    plots = (
        Plot(
            "single-cpu",
            "Server CPU of each command, 50 connections, one request at a time",
            [f"{phase}, CPU" for phase in phases],
        ),
    )

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return peers.that_can(PHASES)

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        assert isinstance(peer, ProtocolPeer)
        with peer.nodes() as running:
            results = peer.phases(running, Work(context.sizes.jobs // 2, connections=50, pipeline=1), context.tell)
        for one in results:
            yield Figure(f"{one.name}, CPU", "us a job", one.cpu_us)
            yield Figure(f"{one.name}, rate", "jobs a second", one.per_second, generator_remark(one))


class Delivery(Row):
    """How long a job takes to a waiting consumer of the same node."""

    key = "delivery"
    title = f"One node, {LATENCY_RATE:.0f} jobs a second to waiting consumers"
    plots = (
        Plot("delivery-latency", "From when a job was due until its consumer has it, one node", PERCENTILES, logarithmic=True),
    )
    rounds = 3

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return peers.that_can(LATENCY)

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        assert isinstance(peer, ProtocolPeer)
        with peer.nodes() as running, undisturbed(running.pids):
            result = peer.latency(running, Work(LATENCY_JOBS), LATENCY_RATE, 10.0, context.tell)
        late = result.late.percentile_us(99) > LATE_US
        remark = "the load generator was late, which is part of the figure" if late else ""
        for percent in PERCENTILES:
            yield Figure(percent, "ms", result.delivered.percentile_us(float(percent[1:])) / 1000, remark)


class Memory(Row):
    """What a held job takes."""

    key = "memory"
    title = "Memory of jobs of 64 bytes held"
    rounds = 1
    long = True
    work = "held"
    targets = (Target(work, 0.55, "original"),)
    plots = (Plot("memory", "Memory of a job of 64 bytes held", (work,)),)

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return peers.that_can(PHASES)

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        assert isinstance(peer, ProtocolPeer)
        with peer.nodes() as running:
            measured = peer.adds(running, Work(context.sizes.held, pipeline=200), context.tell)
        return [Figure(self.work, "bytes a job", measured.bytes_per_job)]
