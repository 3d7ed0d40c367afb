"""Nodes as processes, each in a network namespace of its own where that is possible, and what can be done to them.

In namespaces a node has two ways: one to this program, which always works, and one to the other nodes, over a bridge. A partition
moves the nodes of one side to another bridge. Without root or iproute2 all nodes are on loopback, and there are no partitions.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from disqueue.testing.server import free_port

BUS_PORT_OFFSET = 10_000
STOP_TIMEOUT_S = 10.0


def ip(*words: str) -> None:
    """Run iproute2. Raises CalledProcessError with what it said."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def can_have_namespaces() -> bool:
    """Whether this machine and user can make network namespaces."""
    name = f"dqtry{os.getpid()}"
    try:
        ip("netns", "add", name)
        ip("netns", "del", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


class Network:
    """Loopback: every node is at 127.0.0.1, on a port of its own, and nothing can be cut."""

    can_be_cut = False

    def __init__(self, size: int, base_port: int) -> None:
        self.ports = [base_port + number if base_port else free_port() for number in range(size)]

    def command(self, _number: int, command: list[str]) -> list[str]:
        return command

    def client_address(self, number: int) -> tuple[str, int]:
        return "127.0.0.1", self.ports[number]

    def node_address(self, number: int) -> tuple[str, int]:
        return "127.0.0.1", self.ports[number]

    def cut(self, side: set[int]) -> None:
        raise SystemExit("partitions need network namespaces: nodes on loopback cannot be cut off from each other")

    def heal(self) -> None: ...

    def close(self) -> None: ...


class Namespaces(Network):
    """One namespace a node."""

    can_be_cut = True

    def __init__(self, size: int, base_port: int) -> None:
        super().__init__(size, base_port)
        tag = os.getpid() % 10_000
        self.subnet = 100 + tag % 100
        self.bridges = [f"dq{tag}b0", f"dq{tag}b1"]
        self.names = [f"dq{tag}n{number}" for number in range(size)]
        self.bus_ends = [f"dq{tag}e{number}" for number in range(size)]
        try:
            self._make(tag)
        except BaseException:
            self.close()
            raise

    def _make(self, tag: int) -> None:
        for bridge in self.bridges:
            ip("link", "add", bridge, "type", "bridge")
            ip("link", "set", bridge, "up")
        for number, name in enumerate(self.names):
            control = f"dq{tag}c{number}"
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            ip("link", "add", self.bus_ends[number], "type", "veth", "peer", "name", "bus", "netns", name)
            ip("-n", name, "addr", "add", f"{self.node_address(number)[0]}/24", "dev", "bus")
            ip("-n", name, "link", "set", "bus", "up")
            ip("link", "set", self.bus_ends[number], "master", self.bridges[0], "up")
            ip("link", "add", control, "type", "veth", "peer", "name", "control", "netns", name)
            host, node = f"10.231.{self.subnet}.{4 * number + 1}", self.client_address(number)[0]
            ip("addr", "add", f"{host}/30", "dev", control)
            ip("link", "set", control, "up")
            ip("-n", name, "addr", "add", f"{node}/30", "dev", "control")
            ip("-n", name, "link", "set", "control", "up")

    def command(self, number: int, command: list[str]) -> list[str]:
        return ["ip", "netns", "exec", self.names[number], *command]

    def client_address(self, number: int) -> tuple[str, int]:
        return f"10.231.{self.subnet}.{4 * number + 2}", self.ports[number]

    def node_address(self, number: int) -> tuple[str, int]:
        return f"10.232.{self.subnet}.{number + 1}", self.ports[number]

    def cut(self, side: set[int]) -> None:
        for number in side:
            ip("link", "set", self.bus_ends[number], "master", self.bridges[1])

    def heal(self) -> None:
        for end in self.bus_ends:
            ip("link", "set", end, "master", self.bridges[0])

    def close(self) -> None:
        for name in self.names:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)
        for device in (*self.bridges, *self.bus_ends):
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("link", "del", device)


class NodeProcess:
    """One node: its directory outlives its processes."""

    def __init__(self, network: Network, number: int, releases: list[str], options: list[str], directory: Path) -> None:
        self.network = network
        self.number = number
        self.directory = directory / f"node{number}"
        self.directory.mkdir()
        port = network.ports[number]
        options = ["--port", str(port), "--dir", str(self.directory), *options]
        self.commands = [network.command(number, [*shlex.split(release), *options]) for release in releases]
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False

    def start(self) -> None:
        with (self.directory / "server.log").open("ab") as log:
            self.process = subprocess.Popen(self.commands[0], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.stopped = False

    def change_release(self) -> None:
        """The next process of this node is one of the other release."""
        self.commands.reverse()

    def end(self) -> None:
        """Let the process end in its orderly way. Raises TimeoutExpired."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(STOP_TIMEOUT_S)
            self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_TIMEOUT_S)
            self.process = None

    def pause(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGSTOP)
            self.stopped = True

    def resume(self) -> None:
        if self.process is not None and self.stopped:
            self.process.send_signal(signal.SIGCONT)
        self.stopped = False

    @property
    def crashed(self) -> bool:
        """Whether the process has ended by itself."""
        return self.process is not None and self.process.poll() is not None

    def log_tail(self) -> str:
        return (self.directory / "server.log").read_bytes()[-3000:].decode(errors="replace")


class Nodes:
    """All nodes of a run. Use as a context: everything is gone at its end."""

    def __init__(self, size: int, releases: list[str], options: list[str], base_port: int, namespaces: bool, keep: str) -> None:
        self.directory = Path(keep) if keep else Path(tempfile.mkdtemp(prefix="disqueue-faults-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        self._keep = bool(keep)
        self.network = Namespaces(size, base_port) if namespaces else Network(size, base_port)
        self.all = [NodeProcess(self.network, number, releases, options, self.directory) for number in range(size)]

    def __enter__(self) -> Nodes:
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.all:
            node.kill()
        self.network.close()
        if not self._keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def wait_for_ports(self, limit_s: float = 20.0) -> None:
        """Until all nodes accept connections. Raises TimeoutError."""
        end = time.monotonic() + limit_s
        for node in self.all:
            while True:
                with socket.socket() as probe:
                    probe.settimeout(1.0)
                    if probe.connect_ex(self.network.client_address(node.number)) == 0:
                        break
                if node.crashed or time.monotonic() > end:
                    raise TimeoutError(f"node {node.number} does not accept connections\n{node.log_tail()}")
                time.sleep(0.02)
