"""Fixed work for counting instructions: `python work.py WORKLOAD JOBS`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from machine import Client, Machine, make_cluster, run_until_idle

from disqueue.cli.bench_protocols import Disque, Replies

BODY_BYTES = 64
PIPELINE = 50


class Cycle:
    """Jobs go in at one machine and out at another (or the same), `window` at a time."""

    def __init__(self, machines: list[Machine], producer: Client, consumer: Client, copies: int) -> None:
        self._machines = machines
        self._producer = producer
        self._consumer = consumer
        self._protocol = Disque(b"queue", BODY_BYTES, copies)
        self._replies: dict[str, Replies] = {phase: self._protocol.replies(phase) for phase in ("add", "get", "ack")}

    def run(self, jobs: int, window: int) -> None:
        for _ in range(jobs // window):
            self._exchange(self._producer, "add", self._protocol.add(window), window)
            handles = self._exchange(self._consumer, "get", self._protocol.get(window), window)
            self._exchange(self._consumer, "ack", self._protocol.ack(handles), window)

    def _exchange(self, client: Client, phase: str, requests: bytes, window: int) -> list[bytes]:
        replies = self._replies[phase]
        replies.reset()
        client.send(requests)
        run_until_idle(self._machines)
        replies.feed(client.take())
        if replies.count != window:
            raise RuntimeError(f"{phase}: {replies.count} replies, {window} are right")
        return replies.found


def pipelined(jobs: int) -> None:
    """One server, many requests at once."""
    (machine,) = machines = make_cluster(1)
    client = Client(machine)
    Cycle(machines, client, client, 1).run(jobs, PIPELINE)


def journaled(jobs: int) -> None:
    """The same with a journal that is forced to the disk each second."""
    (machine,) = machines = make_cluster(1)
    with tempfile.TemporaryDirectory() as folder:
        machine.keep_journal(folder)
        client = Client(machine)
        Cycle(machines, client, client, 1).run(jobs, PIPELINE)


def single(jobs: int) -> None:
    """One server, each request in a pass of its own."""
    (machine,) = machines = make_cluster(1)
    client = Client(machine)
    Cycle(machines, client, client, 1).run(jobs, 1)


def replicated(jobs: int) -> None:
    """Three servers that all keep a copy."""
    machines = make_cluster(3)
    client = Client(machines[0])
    Cycle(machines, client, client, 3).run(jobs, PIPELINE)


def federated(jobs: int) -> None:
    """The same, with producer and consumer at different servers."""
    machines = make_cluster(3)
    Cycle(machines, Client(machines[0]), Client(machines[1]), 3).run(jobs, PIPELINE)


def calibration(rounds: int) -> None:
    """Work that has nothing to do with this project: what a machine and an interpreter make of it is the unit."""
    words = b" ".join(b"%d" % number for number in range(100))
    for _ in range(rounds):
        parts = words.split(b" ")
        table = dict.fromkeys(parts, 1)
        b"".join(sorted(table))


WORKLOADS: dict[str, Callable[[int], None]] = {
    work.__name__: work for work in (calibration, pipelined, journaled, single, replicated, federated)
}

if __name__ == "__main__":
    WORKLOADS[sys.argv[1]](int(sys.argv[2]))
