"""Jobs whose leases all end in the same second."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import closing

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
SPARE_S = 4
SECONDS = 300.0
BATCH = 1000
DRAIN_S = 120.0
POLL_S = 0.01
JOB_BYTES = len(b"*3\r\n$5\r\nburst\r\n$40\r\n\r\n$64\r\n\r\n") + 40 + BODY_BYTES
PARTS = {"a quarter": 4, "whole": 1}
"""How much of the jobs held in a run."""
PAUSE = "longest pause, CPU"
GROWTH = "CPU a job, whole over a quarter"


class _Leased(Disque):
    """ADDJOB with a lease of so many seconds."""

    def __init__(self, lease_s: int) -> None:
        super().__init__(QUEUE, BODY_BYTES, 1)
        self._lease_s = lease_s

    def add_one(self, body: bytes) -> bytes:
        return encode_request([b"ADDJOB", self.queue, body, b"10000", b"RETRY", b"%d" % self._lease_s])


class Burst(Row):
    """A million, and a quarter of it, so that the cost of one can be compared."""

    key = "burst"
    title = "Leases of many jobs end in the same second"
    rounds = 1
    targets = (Target(f"whole: {PAUSE}", 20.0), Target(GROWTH, 1.5))
    plots = (Plot("burst", "Longest pause while many leases end in one second", [f"{part}: {PAUSE}" for part in PARTS]),)

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return [peers.ours]

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        costs = []
        for part, share in PARTS.items():
            jobs = context.sizes.held // share
            with peer.nodes() as running, closing(Connection(running.target())) as connection:
                hand_out(running, connection, jobs, context.tell)
                with probing(running) as pauses:
                    cost_s, took_s = requeued(running, connection, jobs, context.tell)
            costs.append(cost_s * 1e6 / jobs)
            yield Figure(f"{part}: jobs", "jobs", jobs)
            yield Figure(f"{part}: {PAUSE}", "ms", pauses.cpu_ms)
            yield Figure(f"{part}: longest wait of a client, wall", "ms", pauses.wall_ms)
            yield Figure(f"{part}: pauses above 20 ms", "of all", pauses.above_20_ms)
            yield Figure(f"{part}: until all are queued again", "s", took_s)
            yield Figure(f"{part}: CPU", "us a job", costs[-1])
        yield Figure(GROWTH, "times", costs[1] / costs[0])


def hand_out(running: Running, connection: Connection, jobs: int, tell: Progress) -> None:
    """Add jobs and get them, so that all leases end in one second or little more. Raises ServerFailed."""
    parts = split(jobs, CHUNKS)
    for number, count in enumerate(parts):
        protocol = _Leased(SPARE_S + CHUNKS - 1 - number)
        run_adds(Plan(protocol, running.target(), running.target(), running.pids, count, 4, 200, SECONDS), tell)
    start_s = time.monotonic()
    for number, count in enumerate(parts):
        time.sleep(max(0.0, start_s + number - time.monotonic()))
        tell("get", number, CHUNKS)
        _get(connection, count)


def _get(connection: Connection, jobs: int) -> None:
    requests = [BATCH] * (jobs // BATCH) + ([jobs % BATCH] if jobs % BATCH else [])
    for count in requests:
        connection.send(encode_request([b"GETJOB", b"COUNT", b"%d" % count, b"FROM", QUEUE]))
        expected = len(b"*%d\r\n" % count) + count * JOB_BYTES
        while expected > 0:
            data = connection.socket.recv(min(expected, 1 << 18))
            if not data or data.startswith(b"-"):
                raise ServerFailed(f"GETJOB of {count} jobs: {data[:80]!r}")
            expected -= len(data)


def requeued(running: Running, connection: Connection, jobs: int, tell: Progress) -> tuple[float, float]:
    """Wait until all are queued again: server CPU seconds and wall seconds from the first one on. Raises ServerFailed."""
    deadline = time.monotonic() + DRAIN_S
    start_s = cpu_start_s = 0.0
    queued = 0
    while queued < jobs:
        now_s, now_cpu_s = time.monotonic(), cpu_s(running.pids)
        before, queued = queued, int(str(connection.call("QLEN", QUEUE)))
        if queued and not before:
            start_s, cpu_start_s = now_s, now_cpu_s
        if now_s > deadline:
            raise ServerFailed(f"only {queued} of {jobs} jobs were queued again within {DRAIN_S:g} s")
        tell("leases end", queued, jobs)
        time.sleep(POLL_S)
    return cpu_s(running.pids) - cpu_start_s, time.monotonic() - start_s
