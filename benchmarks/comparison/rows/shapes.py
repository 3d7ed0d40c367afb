"""What a cycle costs with larger bodies, more nodes, more queues, and more consumers that wait elsewhere."""

from __future__ import annotations

import resource
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing

from comparison.peers.base import CLUSTER, Peer, ProtocolPeer, Work
from comparison.peers.found import Peers
from comparison.rows.base import Context, Figure, Plot, Row
from comparison.servers import Running, ServerFailed, wait_for
from disqueue.cli.connection import Connection, encode_request
from disqueue.cli.watch import info_fields

ROUNDS = 3
BODIES = (16, 1_000, 30_000, 1_000_000)
BYTES = 64_000_000
"""Of bodies in a turn at the most, so that large ones do not take long."""
NODES = (1, 3, 5, 7)
QUEUES = (1, 1_000, 100_000)
CONSUMERS = (1, 1_000, 8_000)
SPARE_FILES = 500
BATCH = 1000


class Bodies(Row):
    """The same cycle with larger bodies."""

    key = "bodies"
    title = "Growth: larger bodies"
    rounds = ROUNDS
    works = [f"{size:,} bytes: cycle, CPU" for size in BODIES]
    plots = (Plot("growth-bodies", "Server CPU of a job's life over its body", works, "lines", True, "bytes of a body"),)

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return peers.that_can(CLUSTER)

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        with peer.nodes() as running:
            for work, size in zip(self.works, BODIES, strict=True):
                jobs = max(min(context.sizes.jobs, BYTES // size) // 4, 4)
                measured = peer.cycle(running, Work(jobs, pipeline=min(50, max(jobs // 8, 1)), body_bytes=size), context.tell)
                yield Figure(work, "us a job", measured.cpu_us)


class Nodes(Row):
    """The same cycle in larger clusters, with three copies (one on one node)."""

    key = "nodes"
    title = "Growth: more nodes, 3 copies"
    rounds = ROUNDS
    works = [f"{count} nodes: cycle, CPU of all nodes" for count in NODES]
    plots = (Plot("growth-nodes", "Server CPU of a job's life over nodes", works, "lines", axis="nodes"),)

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return peers.that_can(CLUSTER)

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        for work, count in zip(self.works, NODES, strict=True):
            with peer.nodes(count) as running:
                measured = peer.cycle(running, Work(max(context.sizes.jobs // 4, 1), copies=min(count, 3)), context.tell)
            yield Figure(work, "us a job", measured.cpu_us)


class Queues(Row):
    """The same cycle beside many queues that hold a job each."""

    key = "queues"
    title = "Growth: more queues"
    rounds = ROUNDS
    works = [f"{count:,} queues: cycle, CPU" for count in QUEUES]
    plots = (Plot("growth-queues", "Server CPU of a job's life over queues", works, "lines", axis="queues"),)

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return [peers.ours]

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        with peer.nodes() as running, closing(Connection(running.target())) as connection:
            made = 0
            for work, count in zip(self.works, QUEUES, strict=True):
                while made < count - 1:
                    batch = range(made, min(made + BATCH, count - 1))
                    connection.send(b"".join(encode_request([b"ADDJOB", b"other-%d" % number, b"x", b"0"]) for number in batch))
                    for _ in batch:
                        connection.read()
                    made = batch.stop
                    context.tell("queues", made, count)
                yield Figure(work, "us a job", peer.cycle(running, Work(context.sizes.jobs), context.tell).cpu_us)


class Consumers(Row):
    """The same cycle while many clients wait for jobs of another queue."""

    key = "consumers"
    title = "Growth: more consumers that wait"
    rounds = ROUNDS
    works = [f"{count:,} consumers: cycle, CPU" for count in CONSUMERS]
    plots = (Plot("growth-consumers", "Server CPU of a job's life over consumers that wait", works, "lines", axis="consumers"),)

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return [peers.ours]

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        assert isinstance(peer, ProtocolPeer)
        _allow_files(CONSUMERS[-1] + SPARE_FILES)
        with ExitStack() as stack:
            running = stack.enter_context(peer.nodes())
            waiting = 0
            for work, count in zip(self.works, CONSUMERS, strict=True):
                while waiting < count:
                    one = stack.enter_context(closing(Connection(running.target())))
                    one.send(encode_request([b"GETJOB", b"FROM", b"never"]))
                    waiting += 1
                    context.tell("consumers", waiting, count)
                wait_for(lambda count=count: _blocked(running) == count, f"{count} clients wait")  # type: ignore[misc]
                yield Figure(work, "us a job", peer.cycle(running, Work(context.sizes.jobs), context.tell).cpu_us)


def _blocked(running: Running) -> int:
    with closing(Connection(running.target())) as asking:
        return int(info_fields(asking.call("INFO", "clients")).get("blocked_clients", "-1"))


def _allow_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= count:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        raise ServerFailed(f"only {hard} files may be open here, {count} are needed (ulimit -n)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
