"""Servers as processes of this machine: a free port, a directory of their own, gone at the end."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from disqueue.cli.connection import Target

HERE = "127.0.0.1"
FIRST_PORT = 15_000
PORTS_END = 22_768
BUS_OFFSET = 10_000
START_S = 60.0
_POLL_S = 0.02
_ANSWER_S = 5.0
_LOG_BYTES = 2000


class ServerFailed(RuntimeError):
    """A server did not start; the text has the end of what it said."""


@dataclass(frozen=True, slots=True)
class Running:
    """Servers that answer: their ports and process ids, node by node."""

    ports: tuple[int, ...]
    pids: tuple[int, ...]

    def target(self, node: int = 0) -> Target:
        """Where a client finds a node."""
        return Target(HERE, self.ports[node])


@dataclass(slots=True)
class _Started:
    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        return self.log.read_bytes()[-_LOG_BYTES:].decode("utf-8", "replace").strip()


def free_port(used: set[int]) -> int:
    """A client port whose bus port is free too; it joins `used`. Raises ServerFailed."""
    ports = range(FIRST_PORT, PORTS_END)
    start = random.randrange(len(ports))  # not where another run beside this one looks too
    order: list[int] = [*ports[start:], *ports[:start]]
    for port in order:
        if port in used:
            continue
        with socket.socket() as client, socket.socket() as bus:
            try:
                client.bind((HERE, port))
                bus.bind((HERE, port + BUS_OFFSET))
            except OSError:
                continue
        used.add(port)
        return port
    raise ServerFailed(f"no port from {FIRST_PORT} to {PORTS_END - 1} is free")


@contextmanager
def run_servers(
    command: Callable[[int, str], Sequence[str]],
    count: int,
    is_ready: Callable[[int], bool],
    environment: Callable[[int, str], Mapping[str, str]],
) -> Iterator[Running]:
    """Run `count` servers; `command` makes the words from port and directory. Raises ServerFailed."""
    used: set[int] = set()
    with ExitStack() as stack:
        started = []
        for _ in range(count):
            port = free_port(used)
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="disqueue-compare-", ignore_cleanup_errors=True))
            log = Path(folder) / "server.log"
            with log.open("wb") as output:
                process = subprocess.Popen(
                    command(port, folder),
                    env={**os.environ, **environment(port, folder)},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            stack.callback(_end, process)
            started.append(_Started(port, process, log))
        for one in started:
            _wait_until_ready(one, is_ready)
        groups = [pid for one in started for pid in _group(one.process.pid)]
        yield Running(tuple(one.port for one in started), tuple(groups))


def _wait_until_ready(one: _Started, is_ready: Callable[[int], bool]) -> None:
    deadline = time.monotonic() + START_S
    while not is_ready(one.port):
        if one.process.poll() is not None:
            raise ServerFailed(f"it ended with status {one.process.returncode}: {one.said()}")
        if time.monotonic() > deadline:
            raise ServerFailed(f"it does not answer on port {one.port} after {START_S:g} s: {one.said()}")
        time.sleep(_POLL_S)
    if one.process.poll() is not None:  # another program has the port, and answered
        raise ServerFailed(f"it ended with status {one.process.returncode}: {one.said()}")


def _group(leader: int) -> list[int]:
    """The processes of a group, its leader first: some servers are started by a script."""
    found = [leader]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != leader:
            with suppress(OSError):
                if os.getpgid(int(entry.name)) == leader:
                    found.append(int(entry.name))
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ask(port: int, line: bytes) -> bytes:
    """The first part of the answer to one line of text; nothing when nobody answers."""
    try:
        with socket.create_connection((HERE, port), _ANSWER_S) as one:
            one.sendall(line + b"\r\n")
            return one.recv(4096)
    except OSError:
        return b""


def wait_for(condition: Callable[[], bool], what: str, limit_s: float = START_S) -> None:
    """Poll until the condition holds. Raises ServerFailed."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise ServerFailed(f"not within {limit_s:g} s: {what}")
        time.sleep(_POLL_S)
