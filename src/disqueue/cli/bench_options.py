"""The options of `disqueue bench`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from disqueue.cli.bench_latency import MAX_CONNECTIONS, MIN_BODY_BYTES
from disqueue.cli.bench_protocols import PROTOCOLS
from disqueue.cli.connection import AddressError, Target, default_target, parse_address, parse_port

CYCLE, PHASES, LATENCY = "cycle", "phases", "latency"
MODES = (CYCLE, PHASES, LATENCY)
MAX_JOBS = 100_000_000
MAX_PIPELINE = 10_000
MAX_BODY_BYTES = 64 << 20
MAX_SECONDS = 86_400.0
MAX_RATE = 1_000_000.0

_EPILOG = """\
Modes: cycle    add, get and acknowledge --pipeline jobs at a time on each connection, so that few are held
       phases   add all jobs, then get all, then acknowledge all, each measured on its own
       latency  send jobs at a constant --rate to consumers that wait; times count from when a job was due

Jobs go to a queue of their own with a random name, and all are acknowledged. The server's CPU time is read from /proc of this
machine, for all nodes of its cluster that run here. Exit status: 0; 1 when the run failed; 2 after wrong options;
130 after Ctrl-C.

Examples:
  disqueue bench -n 200000 -P 50
  disqueue bench --mode phases -c 50 -P 1 --json
  disqueue bench -p 7711 --consume-from :7712 --replicate 3
  disqueue bench --mode latency --rate 1000 --seconds 30 --consume-from :7712
"""


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What was asked for."""

    producer: Target
    consumer: Target
    modes: tuple[str, ...]
    protocol: str
    jobs: int
    connections: int
    pipeline: int
    size: int
    replicate: int
    fastack: bool
    rate: float
    seconds: float
    pids: tuple[int, ...]
    as_json: bool


def parse_options(argv: Sequence[str], environment: Mapping[str, str] = os.environ) -> BenchOptions:
    """Options from arguments and environment. SystemExit(2) with a message on wrong ones."""
    parser = _make_parser()
    given = parser.parse_args(argv)
    try:
        producer = _producer(given, environment)
        consumer = producer
        if given.consume_from is not None:
            host, port = parse_address(given.consume_from)
            consumer = replace(producer, host=host, port=port, socket_path="")
    except AddressError as error:
        parser.error(str(error))
    modes = tuple(given.mode or (CYCLE, PHASES))
    if LATENCY in modes and given.size < MIN_BODY_BYTES:
        parser.error(f"--size {given.size}: latency needs bodies of {MIN_BODY_BYTES} bytes or more, they hold the job's number")
    if LATENCY in modes and given.connections > MAX_CONNECTIONS:
        parser.error(f"--connections {given.connections}: latency takes {MAX_CONNECTIONS} at the most")
    if given.protocol != "disque" and (given.replicate or given.fastack):
        parser.error(f"--replicate and --fastack are Disque's; --protocol {given.protocol} has neither")
    return BenchOptions(
        producer,
        consumer,
        modes,
        given.protocol,
        given.jobs,
        given.connections,
        given.pipeline,
        given.size,
        given.replicate,
        given.fastack,
        given.rate,
        given.seconds,
        tuple(given.pid or ()),
        given.json,
    )


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="disqueue bench",
        usage="disqueue bench [options]",
        description="Measure a running server: how many jobs it does, what they cost it, and how long they take.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-h", dest="host", metavar="HOST", help="server's host (127.0.0.1)")
    add("-p", dest="port", metavar="PORT", help="server's port (7711)")
    add("-s", dest="socket_path", metavar="PATH", help="server's Unix socket, in place of host and port")
    add("-a", dest="password", metavar="PASSWORD", help="password; better in DISQUEUE_AUTH, which other users can't see")
    add("--consume-from", metavar="HOST:PORT", help="get and acknowledge at another node of the cluster")
    add("--mode", action="append", choices=MODES, help="what to measure; may be given again (cycle and phases)")
    add("--protocol", choices=tuple(PROTOCOLS), default="disque", help="what the server speaks (disque)")
    add("-n", "--jobs", type=_whole("jobs", 1, MAX_JOBS), default=100_000, metavar="N", help="how many (100000)")
    add("-c", "--connections", type=_whole("connections", 1, 10_000), default=4, metavar="N", help="how many (4)")
    add("-P", "--pipeline", type=_whole("requests", 1, MAX_PIPELINE), default=50, metavar="N", help="requests at once each (50)")
    add("-d", "--size", type=_whole("bytes", 1, MAX_BODY_BYTES), default=64, metavar="BYTES", help="of a job's body (64)")
    add("-r", "--replicate", type=_whole("copies", 1, 65_535), default=0, metavar="N", help="copies (the server's default)")
    add("--fastack", action="store_true", help="acknowledge with FASTACK")
    add("--rate", type=_number("rate", MAX_RATE), default=100.0, metavar="JOBS", help="latency: jobs a second (100)")
    add("--seconds", type=_number("time", MAX_SECONDS), default=60.0, metavar="S", help="add nothing more after this time (60)")
    add("--pid", action="append", type=_whole("process id", 1, 1 << 30), metavar="PID", help="server process; may be repeated")
    add("--json", action="store_true", help="print one JSON object")
    add("--help", action="help", help="show this help")
    return parser


def _producer(given: argparse.Namespace, environment: Mapping[str, str]) -> Target:
    target = default_target(environment)
    if given.socket_path is not None:
        target = replace(target, socket_path=given.socket_path)
    elif given.host is not None or given.port is not None:
        port = parse_port(given.port) if given.port is not None else target.port
        target = replace(target, host=given.host or target.host, port=port, socket_path="")
    return target if given.password is None else replace(target, password=given.password)


def _whole(what: str, least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"'{text}' is no number of {what}: {least} to {most}")
        return int(text)

    return parse


def _number(what: str, most: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value <= most:
            raise argparse.ArgumentTypeError(f"'{text}' is no {what}: above 0 and up to {most:g}")
        return value

    return parse
