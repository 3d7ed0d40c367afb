"""Disqueue beside its peers on this machine, in one run: server CPU for each job, memory, latency.

    python benchmarks/compare.py [--original PATH/disque-server] [--rounds 5] [--jobs 40000] [--held 200000] [--output FILE]

Starts what is there: this package compiled and plain, redis-server, and the original when its binary is named. `disqueue bench`
drives each through its own protocol; servers take turns, and medians of the rounds are told. CPU time is compared, not wall
time: other work on the machine changes the second far more than the first.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import disqueue

FIRST_PORT = 18_500
PORTS_END = 22_768
START_S = 30
HERE = "127.0.0.1"


def free_port(used: set[int]) -> int:
    """A client port whose bus port, 10000 higher, is free too."""
    for port in range(FIRST_PORT, PORTS_END):
        if port in used:
            continue
        with socket.socket() as client, socket.socket() as bus:
            try:
                client.bind((HERE, port))
                bus.bind((HERE, port + 10_000))
            except OSError:
                continue
        used.add(port)
        return port
    raise SystemExit("no free port")


class Contender:
    """A kind of server: how to start it, and what `disqueue bench` calls its protocol."""

    def __init__(
        self, name: str, protocol: str, command: list[str], environment: dict[str, str] | None = None, policy: str = ""
    ) -> None:
        self.name = name
        self.protocol = protocol
        self.command = command
        self.environment = {**os.environ, **(environment or {})}
        self.journal = ["--appendonly", "yes", "--appendfsync", policy] if policy else []

    def options(self, port: int, folder: str) -> list[str]:
        """Arguments behind the command."""
        if self.protocol.startswith("redis"):
            return ["--port", str(port), "--dir", folder, "--save", "", "--appendonly", "no"]
        return ["--port", str(port), "--dir", folder, "--maxmemory", "8gb", "--loglevel", "warning", *self.journal]

    @contextmanager
    def nodes(self, count: int) -> Iterator[tuple[list[int], list[int]]]:
        """Run so many nodes, joined; gives their ports and process ids."""
        used: set[int] = set()
        with ExitStack() as stack:
            ports, pids = [], []
            for _ in range(count):
                port = free_port(used)
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                process = subprocess.Popen(
                    [*self.command, *self.options(port, folder)],
                    env=self.environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                stack.callback(_end, process)
                ports.append(port)
                pids.append(process.pid)
            for port in ports:
                _wait(port, lambda port=port: _ask(port, "PING").startswith(b"+PONG"))
            for port in ports[1:]:
                _ask(ports[0], f"CLUSTER MEET {HERE} {port}")
            if count > 1:
                for port in ports:
                    _wait(port, lambda port=port: b"cluster_reachable_nodes:%d" % (count - 1) in _ask(port, "CLUSTER INFO"))
            yield ports, pids


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _ask(port: int, line: str) -> bytes:
    try:
        with socket.create_connection((HERE, port), 5) as one:
            one.sendall(line.encode() + b"\r\n")
            return one.recv(4096)
    except OSError:
        return b""


def _wait(port: int, condition: object) -> None:
    deadline = time.monotonic() + START_S
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            raise SystemExit(f"the server on port {port} is not ready after {START_S} s")
        time.sleep(0.02)


def bench(contender: Contender, ports: list[int], pids: list[int], *options: str) -> dict[str, dict[str, float]]:
    """One run of `disqueue bench`; the results by phase."""
    command = [sys.executable, "-m", "disqueue", "bench", "-p", str(ports[0]), "--protocol", contender.protocol, "--json"]
    command += [word for pid in pids for word in ("--pid", str(pid))]
    done = subprocess.run([*command, *options], capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{contender.name}: {done.stderr.decode()}")
    return {result["phase"]: result for result in json.loads(done.stdout)["results"]}


class Comparison:
    """The rows of the table, filled round by round."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        python = [sys.executable, "-m", "disqueue", "server"]
        self.ours = Contender("Disqueue", "disque", python)
        self.plain = Contender("Disqueue, plain Python", "disque", python, {"DISQUEUE_PURE": "1"})
        self.journals = {
            policy: Contender(f"Disqueue, journal {policy}", "disque", python, policy=policy) for policy in ("everysec", "always")
        }
        self.peers: list[Contender] = []
        if arguments.original:
            self.peers.append(Contender("original", "disque", [arguments.original]))
        redis = shutil.which("redis-server")
        self.redis = [Contender(f"Redis {kind}", f"redis-{kind}", [redis]) for kind in ("list", "stream")] if redis else []
        self.rows: dict[tuple[str, str], dict[str, list[float]]] = {}

    def note(self, work: str, unit: str, contender: Contender, value: float) -> None:
        """Keep one measured value."""
        self.rows.setdefault((work, unit), {}).setdefault(contender.name, []).append(value)

    def round(self, number: int) -> None:
        """One turn of every contender in every kind of work."""
        arguments = self.arguments
        many = str(arguments.jobs)
        everysec = self.journals["everysec"]
        for contender in [self.ours, everysec, *self.peers, *self.redis]:
            with contender.nodes(1) as (ports, pids):
                result = bench(contender, ports, pids, "--mode", "cycle", "-n", many)
                self.note(
                    "one node, 4 connections, pipeline 50: cycle", "us", contender, result["cycle"]["server_cpu_us_per_job"]
                )
        if number == 0:
            with self.plain.nodes(1) as (ports, pids):
                result = bench(self.plain, ports, pids, "--mode", "cycle", "-n", "10000")
                self.note(
                    "one node, 4 connections, pipeline 50: cycle", "us", self.plain, result["cycle"]["server_cpu_us_per_job"]
                )
        for contender in [self.ours, everysec, *self.peers]:
            with contender.nodes(1) as (ports, pids):
                result = bench(contender, ports, pids, "--mode", "phases", "-c", "50", "-P", "1", "-n", many)
                for phase in ("add", "get", "ack"):
                    work = f"one node, 50 connections, no pipeline: {phase}"
                    self.note(work, "us", contender, result[phase]["server_cpu_us_per_job"])
            if contender is not everysec:
                self._cluster(contender, many)
        for contender in [self.ours, self.journals["always"]]:
            with contender.nodes(1) as (ports, pids):
                result = bench(contender, ports, pids, "--mode", "phases", "-c", "100", "-P", "1", "-n", many)
                self.note("one node, 100 producers: added", "jobs a second", contender, result["add"]["jobs_per_s"])
        if number == 0:
            for contender in [self.ours, *self.peers]:
                self._once(contender)

    def _cluster(self, contender: Contender, many: str) -> None:
        with contender.nodes(3) as (ports, pids):
            result = bench(contender, ports, pids, "--mode", "cycle", "-n", many, "-r", "3")
            self.note("3 nodes, REPLICATE 3: cycle, all nodes", "us", contender, result["cycle"]["server_cpu_us_per_job"])
            other = f"{HERE}:{ports[1]}"
            fewer = str(max(int(many) // 8, 200))
            result = bench(contender, ports, pids, "--mode", "cycle", "-n", fewer, "-r", "3", "--consume-from", other)
            self.note("the same, consumers on another node", "us", contender, result["cycle"]["server_cpu_us_per_job"])

    def _once(self, contender: Contender) -> None:
        with contender.nodes(1) as (ports, pids):
            result = bench(contender, ports, pids, "--mode", "phases", "-n", str(self.arguments.held), "--seconds", "300")
            self.note(f"{self.arguments.held:,} jobs of 64 bytes held", "bytes a job", contender, result["add"]["bytes_per_job"])
        with contender.nodes(2) as (ports, pids):
            options = ["--mode", "latency", "--rate", "100", "-n", "300", "-r", "1", "--consume-from", f"{HERE}:{ports[1]}"]
            delivered = bench(contender, ports, pids, *options)["latency"]["delivered"]
            for percent in ("p50", "p99"):
                work = f"added on one node, delivered on another, 100 a second: {percent}"
                self.note(work, "ms", contender, delivered[f"{percent}_us"] / 1000)  # type: ignore[index]

    def document(self) -> str:
        """The page: conditions, the table, a picture of the first row."""
        own = [self.ours.name, *(one.name for one in self.journals.values()), self.plain.name]
        names = [*own[:-1], *(one.name for one in [*self.peers, *self.redis]), self.plain.name]
        arguments = self.arguments
        about = (
            "Server CPU time (user and system, all nodes) for each job, measured in one run, the servers taking turns; medians of"
            f" {arguments.rounds} rounds of {arguments.jobs:,} jobs of 64 bytes (memory and latency once)."
            " In brackets: ours over the peer."
        )
        original = " --original …/disque-server" if arguments.original else ""
        command = f"--rounds {arguments.rounds} --jobs {arguments.jobs} --held {arguments.held}{original}"
        lines = [
            "# Benchmarks",
            "",
            about,
            "Wall times are left out where CPU time tells the same: on a shared machine they say more about the neighbours.",
            "",
            f"- Machine: {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
            f"- Disqueue {disqueue.__version__}, Python {platform.python_version()}; {_versions(self)}",
            f"- Command: `python benchmarks/compare.py {command}`",
            "",
            "| Work | Unit | " + " | ".join(names) + " |",
            "|---|---|" + "---|" * len(names),
        ]
        for (work, unit), values in self.rows.items():
            ours = statistics.median(values[self.ours.name])
            cells = []
            for name in names:
                if name not in values:
                    cells.append("")
                    continue
                value = statistics.median(values[name])
                ratio = f" ({ours / value:.2f})" if name not in own and value else ""
                cells.append(f"{value:.2f}{ratio}")
            lines.append(f"| {work} | {unit} | " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _versions(comparison: Comparison) -> str:
    found = []
    for contender in [*comparison.peers, *comparison.redis[:1]]:
        done = subprocess.run([contender.command[0], "--version"], capture_output=True, check=False)
        found.append(" ".join(done.stdout.decode().split()[:4]))
    return "; ".join(found) or "no peers"


def main() -> int:
    """Run the comparison and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--original", help="path of the original's server")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=40_000)
    parser.add_argument("--held", type=int, default=200_000, help="jobs held for the memory row")
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks.md"))
    arguments = parser.parse_args()
    comparison = Comparison(arguments)
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
        comparison.round(number)
    page = comparison.document()
    arguments.output.write_text(page)
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
