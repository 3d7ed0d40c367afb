"""How much work a server does for a job, and how many jobs it does in a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from disqueue.cli.bench_load import ACK, ADD, GET, Lane, Load, split
from disqueue.cli.bench_process import Meter, Usage, resident_bytes
from disqueue.cli.bench_protocols import Protocol
from disqueue.cli.connection import Connection, Target

Progress = Callable[[str, int, int], None]
"""Is told what runs, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. `pids`: processes whose CPU and memory count. `seconds`: nothing more is added after that."""

    protocol: Protocol
    producer: Target
    consumer: Target
    pids: Sequence[int]
    jobs: int = 100_000
    connections: int = 4
    pipeline: int = 50
    seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Measured:
    """`jobs` done and what it took; `bytes_per_job` -1: not measured."""

    name: str
    jobs: int
    usage: Usage
    bytes_per_job: float = -1.0

    @property
    def per_second(self) -> float:
        return self.jobs / self.usage.wall_s if self.usage.wall_s else 0.0

    @property
    def cpu_us(self) -> float:
        """Server CPU microseconds a job."""
        return self.usage.server_s * 1e6 / self.jobs if self.jobs else 0.0


def run_cycles(plan: Plan, progress: Progress) -> tuple[list[Measured], bool]:
    """Add, get and acknowledge a window at a time, so that few jobs are held; also whether the time was over."""
    with Lanes(plan, progress) as lanes:
        load = lanes.load("cycle", 3 * plan.jobs)
        meter = Meter(plan.pids)
        done = load.cycles(split(plan.jobs, len(lanes.lanes)))
        return [Measured("cycle", done, meter.read())], load.out_of_time


def run_phases(plan: Plan, progress: Progress) -> tuple[list[Measured], bool]:
    """Add all, get all, acknowledge all; also whether the time was over before all were added."""
    with Lanes(plan, progress) as lanes:
        first, out_of_time = _add(plan, lanes)
        results, added, count = [first], first.jobs, len(lanes.lanes)
        load = lanes.load(GET, added)
        meter = Meter(plan.pids)
        got = load.phase(GET, split(added, count))
        results.append(Measured(GET, got, meter.read()))
        load = lanes.load(ACK, got)
        meter = Meter(plan.pids)
        acked = load.phase(ACK, [len(lane.held) for lane in lanes.lanes])
        results.append(Measured(ACK, acked, meter.read()))
        return results, out_of_time


def run_adds(plan: Plan, progress: Progress) -> tuple[Measured, bool]:
    """Add jobs and leave them there; also whether the time was over."""
    with Lanes(plan, progress) as lanes:
        return _add(plan, lanes)


def _add(plan: Plan, lanes: Lanes) -> tuple[Measured, bool]:
    before_bytes = resident_bytes(plan.pids)
    load = lanes.load(ADD, plan.jobs)
    meter = Meter(plan.pids)
    added = load.phase(ADD, split(plan.jobs, len(lanes.lanes)))
    bytes_per_job = (resident_bytes(plan.pids) - before_bytes) / max(added, 1)
    return Measured(ADD, added, meter.read(), bytes_per_job), load.out_of_time


class Lanes:
    """The connections of a run, closed at its end."""

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan = plan
        self._progress = progress
        self._stack = ExitStack()
        self.lanes: list[Lane] = []

    def __enter__(self) -> Lanes:
        plan = self._plan
        try:
            for _ in range(plan.connections):
                producer = self._connect(plan.producer)
                consumer = producer if plan.consumer == plan.producer else self._connect(plan.consumer)
                self.lanes.append(Lane(plan.protocol, producer, consumer))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _connect(self, target: Target) -> Connection:
        connection = self._stack.enter_context(closing(Connection(target)))
        self._plan.protocol.greet(connection)
        connection.socket.setblocking(False)
        return connection

    def load(self, name: str, total: int) -> Load:
        load = Load(self.lanes, self._plan.pipeline, self._plan.seconds, lambda done: self._progress(name, done, total))
        self._stack.callback(load.close)
        return load
