"""What the journal costs: CPU of a cycle with `everysec`, and the rate of many producers with `always`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from comparison.peers.base import Peer, ProtocolPeer, Work
from comparison.peers.found import Peers
from comparison.rows.base import Context, Figure, Plot, Row, Target, generator_remark

CPU = "cycle, CPU"
ADDED = "added"
EVERYSEC = "Disqueue, journal everysec"
ALWAYS = "Disqueue, journal always"


class Everysec(Row):
    """The pipelined cycle without and with the journal."""

    key = "everysec"
    title = "Journal, one node, 4 connections, pipeline 50"
    targets = (Target(CPU, 1.5, over="Disqueue", of=EVERYSEC),)
    plots = (Plot("journal-cpu", "Server CPU of a job's life, with and without the journal", (CPU,)),)

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return [peers.ours, peers.everysec, peers.always]

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        with peer.nodes() as running:
            measured = peer.cycle(running, Work(context.sizes.jobs), context.tell)
        yield Figure(CPU, "us a job", measured.cpu_us)
        yield Figure("cycle, rate", "jobs a second", measured.per_second, generator_remark(measured))


class Always(Row):
    """100 producers that wait for each answer, so for each fsync."""

    key = "always"
    title = "Journal, 100 producers, no pipeline"
    targets = (Target(ADDED, 0.5, over="Disqueue", of=ALWAYS, at_least=True),)
    plots = (Plot("journal-rate", "Jobs that 100 producers add in a second (wall time)", (ADDED,)),)

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return [peers.ours, peers.everysec, peers.always]

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        assert isinstance(peer, ProtocolPeer)
        with peer.nodes() as running:
            measured = peer.adds(running, Work(context.sizes.jobs, connections=100, pipeline=1), context.tell)
        yield Figure(ADDED, "jobs a second", measured.per_second, generator_remark(measured))
        yield Figure("added, CPU", "us a job", measured.cpu_us)
