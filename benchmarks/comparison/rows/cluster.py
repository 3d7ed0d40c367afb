"""Three nodes and three copies; two nodes and the way from one to the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from comparison.peers.base import CLUSTER, Peer, ProtocolPeer, Work
from comparison.peers.found import Peers
from comparison.priority import undisturbed
from comparison.quiet import quiet_latencies_ms
from comparison.rows.base import Context, Figure, Plot, Row, Target, generator_remark

CPU = "cycle, CPU of all nodes"
APART_SHARE = 8
"""The original moves jobs between nodes so slowly that this fraction of them has to do."""
LEAST_JOBS = 200
RATE = 100.0
RATE_JOBS = 300
ANSWER_S = 20.0
QUIET_S = 7.0
QUIET_JOBS = 40
WAYS = ("100 a second", "after 7 s quiet")


class Replicated(Row):
    """Producers and consumers at the same node."""

    key = "cluster"
    title = "3 nodes, REPLICATE 3"
    targets = (Target(CPU, 0.2, "original"),)
    plots = (Plot("cluster-cpu", "Server CPU of a job's life, 3 nodes, 3 copies", (CPU,)),)
    share = 2
    consumers_at = 0

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return peers.that_can(CLUSTER)

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        assert isinstance(peer, ProtocolPeer)
        jobs = max(context.sizes.jobs // self.share, LEAST_JOBS)
        with peer.nodes(3) as running:
            measured = peer.cycle(running, Work(jobs, copies=3, consumers_at=self.consumers_at), context.tell)
        yield Figure(CPU, "us a job", measured.cpu_us)
        yield Figure("cycle, rate", "jobs a second", measured.per_second, generator_remark(measured))


class Apart(Replicated):
    """Consumers at another node than producers."""

    key = "apart"
    title = "3 nodes, REPLICATE 3, consumers at another node"
    plots = (Plot("apart-cpu", "Server CPU of a job's life, 3 nodes, consumers at another one", (CPU,)),)
    share = APART_SHARE
    consumers_at = 1


class Across(Row):
    """How long a job takes to a consumer that waits at another node, in a steady flow and after silence."""

    key = "latency"
    title = "Added on one node, delivered to a consumer that waits at another"
    rounds = 1
    targets = tuple(Target(f"{way}, {percent}", limit) for way in WAYS for percent, limit in (("p50", 2.0), ("p99", 10.0)))
    plots = (
        Plot(
            "across-latency",
            "From ADDJOB at one node to the consumer at another",
            [f"{way}, {percent}" for way in WAYS for percent in ("p50", "p99")],
            logarithmic=True,
        ),
    )

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return peers.that_can(CLUSTER)

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        assert isinstance(peer, ProtocolPeer)
        work = Work(RATE_JOBS, copies=1, consumers_at=1)
        with peer.nodes(2) as running, undisturbed(running.pids):
            steady = peer.latency(running, work, RATE, ANSWER_S, context.tell)
            lost = steady.sent - steady.delivered.count
            remark = f"{lost} of {steady.sent} jobs did not arrive within {ANSWER_S:g} s" if lost else ""
            for percent in ("p50", "p99", "p99.9"):
                yield Figure(f"{WAYS[0]}, {percent}", "ms", steady.delivered.percentile_us(float(percent[1:])) / 1000, remark)
            quiet = quiet_latencies_ms(running.target(0), running.target(1), QUIET_JOBS, QUIET_S, ANSWER_S, context.tell)
        lost = QUIET_JOBS - len(quiet)
        remark = f"{lost} of {QUIET_JOBS} jobs did not arrive within {ANSWER_S:g} s" if lost else ""
        quiet += [ANSWER_S * 1000] * lost
        yield Figure(f"{WAYS[1]}, p50", "ms", sorted(quiet)[len(quiet) // 2], remark)
        yield Figure(f"{WAYS[1]}, p99", "ms", max(quiet), remark)
