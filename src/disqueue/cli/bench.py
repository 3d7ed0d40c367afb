"""`disqueue bench`: measure a running server."""

from __future__ import annotations

import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from disqueue.cli import bench_report as report
from disqueue.cli.bench_latency import LatencyPlan, run_latency
from disqueue.cli.bench_options import CYCLE, LATENCY, BenchOptions, parse_options
from disqueue.cli.bench_protocols import PROTOCOLS, Disque, Protocol, RedisList, RedisStream, ReplyError
from disqueue.cli.bench_servers import find_processes
from disqueue.cli.bench_throughput import Plan, run_cycles, run_phases
from disqueue.cli.cluster_status import console
from disqueue.cli.connection import Connection, ConnectionFailed
from disqueue.cli.reply import ErrorReply

_PROGRESS_EVERY_S = 0.1

Tell = Callable[[str, int, int], None]


def run(argv: Sequence[str]) -> int:
    """Run `disqueue bench`; returns the exit status."""
    options = parse_options(argv)
    try:
        pids = list(options.pids)
        if not pids and PROTOCOLS[options.protocol].has_info:
            pids = find_processes([options.producer, options.consumer])
        bench = _Bench(options, pids)
        with _progress() as tell:
            for mode in options.modes:
                bench.run(mode, tell)
    except (ConnectionFailed, ReplyError, ErrorReply, OSError) as error:
        print(f"disqueue bench: {_reason(error)}", file=sys.stderr)
        return 1
    bench.show()
    return 0


class _Bench:
    """The runs that were asked for, and what came of them."""

    def __init__(self, options: BenchOptions, pids: list[int]) -> None:
        self._options = options
        self._pids = pids
        self._tables: list[object] = []
        self._remarks: list[str] = []
        self._json: list[dict[str, object]] = []

    def run(self, mode: str, tell: Tell) -> None:
        """One mode. Raises ConnectionFailed, ReplyError, ErrorReply."""
        protocol = self._protocol(waits=mode == LATENCY or self._options.consumer != self._options.producer)
        with closing(Connection(self._options.producer)) as connection:
            protocol.prepare(connection)
        if mode == LATENCY:
            self._latency(protocol, tell)
        else:
            self._throughput(mode, protocol, tell)

    def _protocol(self, waits: bool) -> Protocol:
        options = self._options
        queue = b"bench-" + secrets.token_hex(6).encode()
        kind = PROTOCOLS[options.protocol]
        if kind is Disque:
            return Disque(queue, options.size, options.replicate, b"FASTACK" if options.fastack else b"ACKJOB")
        if kind is RedisList or kind is RedisStream:
            return kind(queue, options.size, 0, waits)
        return kind(queue, options.size, 0)

    def _throughput(self, mode: str, protocol: Protocol, tell: Tell) -> None:
        options = self._options
        plan = Plan(
            protocol,
            options.producer,
            options.consumer,
            self._pids,
            options.jobs,
            min(options.connections, options.jobs),
            options.pipeline,
            options.seconds,
        )
        measured, out_of_time = (run_cycles if mode == CYCLE else run_phases)(plan, tell)
        knows = bool(self._pids)
        self._tables.append(report.throughput_table(measured, knows))
        self._remarks += report.throughput_remarks(measured, knows)
        self._json += [report.throughput_json(one, knows) for one in measured]
        if out_of_time:
            self._remarks.append(f"{mode}: {measured[0].jobs} of {options.jobs} jobs were added in {options.seconds:g} seconds")

    def _latency(self, protocol: Protocol, tell: Tell) -> None:
        options = self._options
        plan = LatencyPlan(
            protocol,
            options.producer,
            options.consumer,
            self._pids,
            options.rate,
            options.jobs,
            options.seconds,
            options.connections,
        )
        result = run_latency(plan, tell)
        self._tables.append(report.latency_table(result))
        self._remarks += report.latency_remarks(result)
        self._json.append(report.latency_json(result, options.rate, bool(self._pids)))

    def show(self) -> None:
        """Print what was measured."""
        options = self._options
        if options.as_json:
            conditions = {
                "producer": options.producer.label,
                "consumer": options.consumer.label,
                "protocol": options.protocol,
                "connections": options.connections,
                "pipeline": options.pipeline,
                "body_bytes": options.size,
                "replicate": options.replicate or None,
                "server_pids": self._pids,
            }
            print(json.dumps({"conditions": conditions, "results": self._json, "remarks": list(dict.fromkeys(self._remarks))}))
            return
        out = console()
        for table in self._tables:
            out.print(table)
        for remark in dict.fromkeys(self._remarks):
            print(f"! {remark}", file=sys.stderr)


@contextmanager
def _progress() -> Iterator[Tell]:
    """A bar on the terminal's standard error, nothing elsewhere."""
    columns = (TextColumn("{task.description:8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=None)
        shown = ("", 0.0)

        def tell(name: str, done: int, total: int) -> None:
            nonlocal shown
            now_s = time.monotonic()
            if name != shown[0] or now_s - shown[1] >= _PROGRESS_EVERY_S:
                shown = (name, now_s)
                progress.update(task, description=name, completed=done, total=total)

        yield tell


def _reason(error: Exception) -> str:
    if isinstance(error, ReplyError):
        return f"the server answered with an error: {error}"
    if isinstance(error, ErrorReply):
        return f"the server answered with an error: {error.text}"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
