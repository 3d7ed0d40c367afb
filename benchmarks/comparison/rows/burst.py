"""Jobs whose leases all end in the same second."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing

from comparison.pauses import probing
from comparison.peers.base import Peer
from comparison.peers.found import Peers
from comparison.rows.base import Context, Figure, Plot, Row, Target
from comparison.servers import Running, ServerFailed
from disqueue.cli.bench_load import split
from disqueue.cli.bench_process import cpu_s
from disqueue.cli.bench_protocols import Disque
from disqueue.cli.bench_throughput import Plan, Progress, run_adds
from disqueue.cli.connection import Connection, encode_request

QUEUE = b"burst"
BODY_BYTES = 64
CHUNKS = 4
"""Jobs are handed out in so many parts, one a second, the first with the longest lease, so that all leases end in one second."""
SPARE_S = 8
SECONDS = 300.0
BATCH = 1000
DRAIN_S = 120.0
ANSWER_S = 30.0
POLL_S = 0.01
JOB_BYTES = len(b"*3\r\n$5\r\nburst\r\n$40\r\n\r\n$64\r\n\r\n") + 40 + BODY_BYTES
PARTS = {"a quarter": 4, "whole": 1}
"""How much of the jobs held in a run."""
PAUSE = "longest pause, CPU"
GROWTH = "CPU a job, whole over a quarter"


class _Leased(Disque):
    """ADDJOB with a lease of so many seconds."""

    def __init__(self, copies: int, lease_s: int) -> None:
        super().__init__(QUEUE, BODY_BYTES, copies)
        self._lease_s = lease_s

    def add_one(self, body: bytes) -> bytes:
        options = [b"REPLICATE", b"%d" % self.copies, b"RETRY", b"%d" % self._lease_s]
        return encode_request([b"ADDJOB", self.queue, body, b"10000", *options])


class Burst(Row):
    """All jobs, and a quarter of them, so that the cost of one can be compared."""

    key = "burst"
    title = "Leases of many jobs end in the same second"
    rounds = 1
    long = True
    targets = (
        Target(f"whole: {PAUSE}", 20.0),
        Target(f"whole: {PAUSE}", 20.0, of="Disqueue, journal everysec"),
        Target(GROWTH, 1.5),
    )
    plots = (Plot("burst", "Longest pause while many leases end in one second", [f"{part}: {PAUSE}" for part in PARTS]),)

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return [peers.ours, peers.everysec]

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        costs = []
        for part, share in PARTS.items():
            figures, cost_us = _burst(peer, 1, context.sizes.held // share, part, context.tell)
            costs.append(cost_us)
            yield from figures
        yield Figure(GROWTH, "times", costs[1] / costs[0])


class Spread(Row):
    """A quarter of the jobs, each on three nodes, which ask each other before one of them queues it."""

    key = "burst3"
    title = "Leases of many jobs end in the same second, 3 nodes, 3 copies"
    rounds = 1
    long = True
    part = "a quarter"
    targets = (Target(f"{part}: {PAUSE}", 20.0),)

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return [peers.ours]

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        return _burst(peer, 3, context.sizes.held // PARTS[self.part], self.part, context.tell)[0]


def _burst(peer: Peer, nodes: int, jobs: int, part: str, tell: Progress) -> tuple[list[Figure], float]:
    """The figures of one burst, and its cost in CPU us a job. Pauses are the worst of all nodes."""
    with peer.nodes(nodes) as running, ExitStack() as stack:
        asking = [stack.enter_context(closing(Connection(running.target(node)))) for node in range(nodes)]
        hand_out(running, asking[0], jobs, nodes, tell)
        with ExitStack() as probes:
            seen = [probes.enter_context(probing(running, node)) for node in range(nodes)]
            cost_s, took_s = requeued(running, asking, jobs, tell)
    cost_us = cost_s * 1e6 / jobs
    return [
        Figure(f"{part}: jobs", "jobs", jobs),
        Figure(f"{part}: {PAUSE}", "ms", max(one.cpu_ms for one in seen)),
        Figure(f"{part}: longest wait of a client, wall", "ms", max(one.wall_ms for one in seen)),
        Figure(f"{part}: pauses above 20 ms", "of all", sum(one.above_20_ms for one in seen)),
        Figure(f"{part}: until all are queued again", "s", took_s),
        Figure(f"{part}: CPU", "us a job", cost_us),
    ], cost_us


def hand_out(running: Running, connection: Connection, jobs: int, copies: int, tell: Progress) -> None:
    """Add jobs and get them, so that all leases end in one second or little more. Raises ServerFailed."""
    parts = split(jobs, CHUNKS)
    for number, count in enumerate(parts):
        protocol = _Leased(copies, SPARE_S + CHUNKS - 1 - number)
        run_adds(Plan(protocol, running.target(), running.target(), running.pids, count, 4, 200, SECONDS), tell)
    start_s = time.monotonic()
    for number, count in enumerate(parts):
        time.sleep(max(0.0, start_s + number - time.monotonic()))
        tell("get", number, CHUNKS)
        _get(connection, count)


def _get(connection: Connection, jobs: int) -> None:
    """Get so many jobs and do nothing with them. Raises ServerFailed when they are not there."""
    connection.socket.settimeout(ANSWER_S)
    while jobs > 0:
        connection.send(encode_request([b"GETJOB", b"NOHANG", b"COUNT", b"%d" % min(BATCH, jobs), b"FROM", QUEUE]))
        answer = connection.socket.recv(1 << 18)
        head, _, _ = answer.partition(b"\r\n")
        if not (head.startswith(b"*") and head[1:].isdigit() and int(head[1:])):
            raise ServerFailed(f"{jobs} jobs are missing, GETJOB is answered {head[:80]!r}: too slow for leases of {SPARE_S} s?")
        left = len(head) + 2 + int(head[1:]) * JOB_BYTES - len(answer)
        while left > 0:
            left -= len(connection.socket.recv(min(left, 1 << 18)) or _closed())
        jobs -= int(head[1:])
    connection.socket.settimeout(None)


def _closed() -> bytes:
    raise ServerFailed("the server closed the connection")


def requeued(running: Running, asking: Sequence[Connection], jobs: int, tell: Progress) -> tuple[float, float]:
    """Wait until all are queued again: server CPU seconds and wall seconds from the first one on. Raises ServerFailed."""
    deadline = time.monotonic() + DRAIN_S
    start_s = cpu_start_s = 0.0
    queued = 0
    while queued < jobs:
        now_s, now_cpu_s = time.monotonic(), cpu_s(running.pids)
        before, queued = queued, sum(int(str(one.call("QLEN", QUEUE))) for one in asking)
        if queued and not before:
            start_s, cpu_start_s = now_s, now_cpu_s
        if now_s > deadline:
            raise ServerFailed(f"only {queued} of {jobs} jobs were queued again within {DRAIN_S:g} s")
        tell("leases end", queued, jobs)
        time.sleep(POLL_S)
    return cpu_s(running.pids) - cpu_start_s, time.monotonic() - start_s
