"""A cluster of real processes under kill -9, SIGSTOP and partitions, while clients add, take and acknowledge jobs.

The shape of Jepsen's test for Disque: faults for some seconds, none for some seconds, and so on; then all is healed, drained, and
every job is accounted for. A confirmed job that nobody was given is lost, one that nobody added is unexpected: either fails
the run. `--server` runs it on another server that speaks the protocol, for a comparison.

    python benchmarks/faults.py --nemesis kill
    python benchmarks/faults.py --nemesis kill,stop,partition --nodes 7 --duration 200
    python benchmarks/faults.py --nemesis kill-all --appendfsync always
    python benchmarks/faults.py --nemesis upgrade --other "/path/to/other/release/python -m disqueue server"
    python benchmarks/faults.py --nemesis partition --server /usr/local/bin/disque-server
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import shlex
import sys
import time
from typing import Any

from faults_load import Connection, ConnectionLostError, Load, registered_jobs
from faults_nodes import BUS_PORT_OFFSET, NodeProcess, Nodes, can_have_namespaces

OWN_OPTIONS = ["--protected-mode", "no", "--loglevel", "notice"]
JOIN_LIMIT_S = 30.0
HEAL_LIMIT_S = 60.0
COLLECT_LIMIT_S = 60.0


class Nemesis:
    """Does harm for a while, and undoes it. In memory fewer nodes than there are copies die at a time."""

    def __init__(self, nodes: Nodes, arguments: argparse.Namespace) -> None:
        self.nodes = nodes
        self.dice = random.Random(arguments.seed)
        self.most = max(1, min(arguments.replicate - 1, len(nodes.all) - 1))
        self.kinds = arguments.nemesis.split(",")
        self._round = 0

    def strike(self) -> str:
        """Begin the next fault; return what it is."""
        kind = self.kinds[self._round % len(self.kinds)]
        self._round += 1
        count = len(self.nodes.all)
        numbers = list(range(count))
        self.dice.shuffle(numbers)
        if kind == "partition":
            side = set(numbers[: self.dice.randint(1, count // 2)])
            self.nodes.network.cut(side)
            return f"partition {sorted(side)} | {sorted(set(numbers) - side)}"
        if kind == "upgrade":
            return self._upgrade(self.nodes.all[(self._round - 1) % count])
        victims = numbers if kind == "kill-all" else numbers[: self.dice.randint(1, self.most)]
        for number in victims:
            if kind == "stop":
                self.nodes.all[number].pause()
            else:
                self.nodes.all[number].kill()
        return f"{kind} {sorted(victims)}"

    def _upgrade(self, node: NodeProcess) -> str:
        """End a node in the orderly way; it comes back as the other release. Once all had their turn, they go back one by one."""
        node.end()
        node.change_release()
        return f"upgrade {node.number}"

    def relent(self) -> None:
        """Undo it."""
        if self.nodes.network.can_be_cut:
            self.nodes.network.heal()
        for node in self.nodes.all:
            node.resume()
            if node.process is None:
                node.start()


async def ask(address: tuple[str, int], *words: bytes) -> Any:
    """One request on a connection of its own. Raises `ConnectionLostError`."""
    connection = Connection(address)
    try:
        await connection.open(5.0)
        return await connection.call(*words, timeout_s=5.0)
    finally:
        connection.close()


async def seen(address: tuple[str, int]) -> int:
    """Return how many nodes a node offers to clients with a good priority."""
    with contextlib.suppress(ConnectionLostError, TypeError, IndexError):
        reply = await ask(address, b"HELLO")
        return sum(entry[3] == b"1" for entry in reply[2:])
    return 0


async def until_whole(addresses: list[tuple[str, int]], limit_s: float) -> float:
    """Wait until all nodes see all others; return how long it took. Raises TimeoutError."""
    start = time.monotonic()
    for address in addresses:
        while await seen(address) != len(addresses):
            if time.monotonic() - start > limit_s:
                raise TimeoutError(f"{address} does not see {len(addresses)} nodes after {limit_s:g} s")
            await asyncio.sleep(0.1)
    return time.monotonic() - start


async def collect(addresses: list[tuple[str, int]], limit_s: float) -> tuple[float, list[int]]:
    """Wait until no node keeps a job; return how long that took and what is left."""
    start = time.monotonic()
    while True:
        left = await registered_jobs(addresses)
        took = time.monotonic() - start
        if not any(left) or took > limit_s:
            return took, left
        await asyncio.sleep(0.2)


async def run(nodes: Nodes, arguments: argparse.Namespace) -> dict[str, Any]:
    """One run from start to verdict."""
    addresses = [nodes.network.client_address(node.number) for node in nodes.all]
    for node in nodes.all:
        node.start()
    nodes.wait_for_ports()
    first, port = nodes.network.node_address(0)
    for address in addresses[1:]:
        extra = () if arguments.server else (b"%d" % (port + BUS_PORT_OFFSET),)
        await ask(address, b"CLUSTER", b"MEET", first.encode(), b"%d" % port, *extra)
    await until_whole(addresses, JOIN_LIMIT_S)
    load, nemesis = Load(addresses, arguments), Nemesis(nodes, arguments)
    load.start()
    start = time.monotonic()
    await asyncio.sleep(min(arguments.off, 2.0))
    while time.monotonic() - start < arguments.duration:
        what = nemesis.strike()
        say(arguments, f"{time.monotonic() - start:6.1f} s  {what}")
        await asyncio.sleep(arguments.on)
        nemesis.relent()
        say(arguments, f"{time.monotonic() - start:6.1f} s  healed")
        await asyncio.sleep(arguments.off)
    healed_s = await until_whole(addresses, HEAL_LIMIT_S)
    load.producing = False
    await asyncio.sleep(arguments.calm)
    await load.stop()
    drained_s = await load.drain(max(arguments.quiet, 3 * arguments.retry), HEAL_LIMIT_S)
    collected_s, left = await collect(addresses, COLLECT_LIMIT_S if not arguments.server else 0.0)
    result = load.history.verdict() | {
        "healed_s": round(healed_s, 1),
        "drained_s": round(drained_s, 1),
        "collected_s": round(collected_s, 1),
        "registered_jobs": left,
        "crashed": [node.number for node in nodes.all if node.crashed],
        "warnings": warnings(nodes),
    }
    result["valid"] = not result["lost"] and not result["unexpected"] and not result["crashed"]
    if not arguments.server:
        result["valid"] = result["valid"] and not any(left) and not result["warnings"]
    return result


def warnings(nodes: Nodes) -> list[str]:
    """Return what nodes say of faults in themselves."""
    words = ("Traceback", "fault in", "failed inside")
    return [
        f"node {node.number}: {line.strip()}"
        for node in nodes.all
        for line in (node.directory / "server.log").read_text(errors="replace").splitlines()
        if any(word in line for word in words)
    ][:10]


def say(arguments: argparse.Namespace, line: str) -> None:
    if not arguments.json:
        print(line, flush=True)


def report(result: dict[str, Any]) -> None:
    """Print a result for people."""
    for key, value in result.items():
        print(f"{key:>16}  {value}")


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Return the arguments of a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="", help="command of another server to try")
    parser.add_argument(
        "--other", default="", help="command of the release that --nemesis upgrade changes to, node by node, and back"
    )
    parser.add_argument("--options", default="", help="more options for the server")
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--nemesis", default="kill", help="a list of kill, stop, partition, kill-all, upgrade; they take turns")
    parser.add_argument("--duration", type=float, default=100.0, help="seconds of faults and pauses between them")
    parser.add_argument("--on", type=float, default=10.0, help="seconds of each fault")
    parser.add_argument("--off", type=float, default=10.0, help="seconds after each fault")
    parser.add_argument("--calm", type=float, default=10.0, help="seconds without faults and new jobs before the drain")
    parser.add_argument("--quiet", type=float, default=5.0, help="seconds without a job, and three RETRY, that end the drain")
    parser.add_argument("--rate", type=float, default=100.0, help="jobs a second, all nodes together")
    parser.add_argument("--retry", type=int, default=1)
    parser.add_argument("--replicate", type=int, default=3)
    parser.add_argument("--timeout-ms", type=int, default=100, help="of ADDJOB")
    parser.add_argument("--node-timeout", type=int, default=5000)
    parser.add_argument("--appendfsync", default="", help="with a journal and this policy; without: memory only")
    parser.add_argument("--base-port", type=int, default=0, help="of the first node; 0: free ones")
    parser.add_argument("--check", action="store_true", help="only tell, by the exit code, whether this machine can do that")
    parser.add_argument("--network", choices=("auto", "loopback", "namespaces"), default="auto")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", default="", help="directory for the files of the nodes; without it they are deleted")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(words)
    kinds = set(arguments.nemesis.split(","))
    if not kinds <= {"kill", "stop", "partition", "kill-all", "upgrade"}:
        parser.error(f"--nemesis {arguments.nemesis}: a list of kill, stop, partition, kill-all, upgrade")
    if ("upgrade" in kinds) != bool(arguments.other):
        parser.error("--nemesis upgrade and --other COMMAND need each other")
    if "kill-all" in kinds and not arguments.appendfsync:
        parser.error("--nemesis kill-all needs --appendfsync: in memory all jobs would be gone")
    if "partition" in kinds and (arguments.network == "loopback" or not can_have_namespaces()):
        parser.error("--nemesis partition needs network namespaces: Linux, root and iproute2")
    return arguments


def main() -> int:
    """Run, report; 0 when nothing was lost and nothing unexpected came."""
    arguments = parse()
    if arguments.check:
        return 0
    options = ["--cluster-node-timeout", str(arguments.node_timeout), *shlex.split(arguments.options)]
    if arguments.appendfsync:
        options += ["--appendonly", "yes", "--appendfsync", arguments.appendfsync]
    if not arguments.server:
        options += OWN_OPTIONS
    command = arguments.server or shlex.join([sys.executable, "-m", "disqueue", "server"])
    namespaces = arguments.network == "namespaces" or (arguments.network == "auto" and "partition" in arguments.nemesis)
    with Nodes(
        arguments.nodes, [command, arguments.other or command], options, arguments.base_port, namespaces, arguments.keep
    ) as nodes:
        result = asyncio.run(run(nodes, arguments))
    if arguments.json:
        print(json.dumps(result))
    else:
        report(result)
    return 0 if result["valid"] else 1


if __name__ == "__main__":
    sys.exit(main())
