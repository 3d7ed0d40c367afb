"""Servers as child processes on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from disqueue.cli.connection import DEFAULT_HOST, Connection, ConnectionFailed, Target

SERVER_COMMAND = (sys.executable, "-m", "disqueue", "server")
BUS_PORT_OFFSET = 10_000
START_TIMEOUT_S = 15.0  # a slow machine loads the interpreter in about 2 s
STOP_TIMEOUT_S = 10.0
_POLL_S = 0.02
_LOG_TAIL_BYTES = 2000
# Chosen ports lie below this, so that the bus port stays below the range from which systems draw ports for
# outgoing connections (32768 and up on Linux): a port that is free now is not taken by chance a moment later.
_MAX_CLIENT_PORT = 22_767
_MIN_CLIENT_PORT = 12_000


class NodeFailed(Exception):
    """A server did not start; the text holds the end of its log."""


def is_free(port: int, host: str = DEFAULT_HOST) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_ports(count: int) -> list[int]:
    """`count` client ports that are free now, as are the bus ports that belong to them."""
    ports: list[int] = []
    # Start at a place that differs between processes, so that two that start at once seldom meet.
    span = _MAX_CLIENT_PORT - _MIN_CLIENT_PORT
    start = time.monotonic_ns() // 1000 % span
    for step in range(span):
        port = _MIN_CLIENT_PORT + (start + step) % span
        if is_free(port) and is_free(port + BUS_PORT_OFFSET):
            ports.append(port)
            if len(ports) == count:
                return ports
    raise NodeFailed(f"no {count} free ports between {_MIN_CLIENT_PORT} and {_MAX_CLIENT_PORT}")


def server_environment(password: str = "") -> dict[str, str]:
    """Ours without the settings that a server would take from it, so that each node is what its command line says.

    The password goes this way, as command lines can be seen by all users of the machine.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DISQUEUE_") or name == "DISQUEUE_PURE"}
    return {**kept, "DISQUEUE_REQUIREPASS": password} if password else kept


class LocalNode:
    """One server process with its own directory; its output and its log go to `<directory>/server.log`."""

    def __init__(
        self,
        port: int,
        directory: Path,
        options: Sequence[str] = (),
        command: Sequence[str] = SERVER_COMMAND,
        password: str = "",
    ) -> None:
        self.port = port
        self.password = password
        self.directory = directory
        self.log_path = directory / "server.log"
        self._arguments = [*command, "--port", str(port), "--bind", DEFAULT_HOST, "--dir", str(directory), *options]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def target(self) -> Target:
        return Target(DEFAULT_HOST, self.port, password=self.password)

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    @property
    def status(self) -> int | None:
        """The exit status, None while it runs."""
        return self._process.poll() if self._process else None

    def start(self) -> None:
        """Start the process; `wait_ready` tells when it serves."""
        if not is_free(self.port):
            raise NodeFailed(f"port {self.port} is in use: name another one with --port")
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            log_file = self.log_path.open("ab")
        except OSError as error:
            raise NodeFailed(f"{error.filename or self.directory} can't be made: {error.strerror}") from error
        with log_file as log:
            # A process group of its own: Ctrl-C on the terminal reaches us alone, and we stop the servers in order.
            self._process = subprocess.Popen(
                self._arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=server_environment(self.password),
                process_group=0,
            )

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Until the server answers PING. Raises NodeFailed with the end of its log."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self.status is not None:
                raise NodeFailed(f"the server on port {self.port} ended with status {self.status} at start:\n{self.log_tail()}")
            with contextlib.suppress(ConnectionFailed):
                connection = Connection(self.target)
                try:
                    connection.execute([b"PING"], timeout_s=timeout_s)
                finally:
                    connection.close()
                return
            time.sleep(_POLL_S)
        raise NodeFailed(f"the server on port {self.port} did not answer within {timeout_s:g} seconds:\n{self.log_tail()}")

    def log_tail(self) -> str:
        try:
            return self.log_path.read_bytes()[-_LOG_TAIL_BYTES:].decode("utf-8", "replace").strip()
        except OSError:
            return "(no log)"

    def kill(self) -> None:
        """Kill without warning, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def terminate(self) -> None:
        """Ask for an orderly end; `wait_stopped` waits for it."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def wait_stopped(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Whether it ended by itself; after `timeout_s` it is killed."""
        if self._process is None:
            return True
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True


def stop_all(nodes: Sequence[LocalNode]) -> list[LocalNode]:
    """Stop all at once and wait; returns those that had to be killed."""
    for node in nodes:
        node.terminate()
    deadline = time.monotonic() + STOP_TIMEOUT_S
    return [node for node in nodes if not node.wait_stopped(max(deadline - time.monotonic(), 0.1))]


@contextlib.contextmanager
def stopped_at_end(nodes: Sequence[LocalNode]) -> Iterator[None]:
    """Stop all nodes when the block ends, however it ends; tells of those that had to be killed."""
    try:
        yield
    finally:
        # An impatient second Ctrl-C must not leave servers behind; stopping takes a bounded time.
        previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for node in stop_all(nodes):
            print(f"the server on port {node.port} did not stop in time and was killed", file=sys.stderr)
        signal.signal(signal.SIGINT, previous)


@contextlib.contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """SIGTERM within the block raises KeyboardInterrupt, as Ctrl-C does, so that no server is left."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
