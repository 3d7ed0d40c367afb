"""Real servers for tests: started, paused, killed and restarted as a test wants it."""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from disqueue.client.errors import DisqueueError, LoadingError, NoNodeError
from disqueue.client.sync import Client

# A command to run instead of this package's own server, to try a client against another one.
SERVER_VARIABLE = "DISQUEUE_TEST_SERVER"

# The bus port is 10000 above; both stay below the range from which systems draw ports for outgoing connections, and no port of
# clients is the bus port of another.
PORTS = range(12_000, 22_000)
BUS_PORT_OFFSET = 10_000
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0
POLL_S = 0.01
LOG_TAIL_BYTES = 2000


class ServerFailedError(RuntimeError):
    """A server did not start or did not end; the text has the end of its log."""


def wait_for(condition: Callable[[], Any], what: str, timeout: float = START_TIMEOUT_S) -> Any:
    """Poll until the condition holds, and return what it returned. Raises TimeoutError."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"not within {timeout:g} s: {what}")
        time.sleep(POLL_S)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _own_ports() -> range:
    """The ports of this worker of pytest-xdist: two that draw the same one would take each other's server for theirs."""
    worker, count = os.environ.get("PYTEST_XDIST_WORKER", "gw0"), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    number = worker.removeprefix("gw")
    return PORTS[int(number) :: int(count)] if number.isdigit() and count.isdigit() else PORTS


def free_port() -> int:
    """A client port that is free now, as is its bus port."""
    drawn = random.SystemRandom()
    ports = _own_ports()
    for _ in range(1000):
        port = drawn.choice(ports)
        if _is_free(port) and _is_free(port + BUS_PORT_OFFSET):
            return port
    raise ServerFailedError("no free port found")


def server_command() -> list[str]:
    """The command that runs a server."""
    override = os.environ.get(SERVER_VARIABLE)
    return shlex.split(override) if override else [sys.executable, "-m", "disqueue", "server"]


class Server:
    """One server process. It is started by `start()` or on entering its context, and gone when that ends.

    `options`: further arguments of the server, for example "--requirepass", "secret".
    `directory`: where it keeps its files; by default a temporary one that goes with it.
    """

    def __init__(
        self, *options: str, port: int | None = None, directory: Path | None = None, password: str | None = None
    ) -> None:
        self.options = [*options, *(("--requirepass", password) if password is not None else ())]
        self.password = password
        self.port = port or free_port()
        self._temporary = tempfile.TemporaryDirectory(prefix="disqueue-") if directory is None else None
        self.directory = Path(self._temporary.name) if self._temporary is not None else Path(str(directory))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL for `Client`."""
        credentials = f":{self.password}@" if self.password is not None else ""
        return f"disque://{credentials}127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id. Raises ServerFailedError if it does not run."""
        if self._process is None:
            raise ServerFailedError("the server is not running")
        return self._process.pid

    def client(self, **settings: Any) -> Client:
        """A client that knows this node only."""
        return Client(self.url, **({"discover": False} | settings))

    def start(self) -> Self:
        """Start, and wait until it has loaded its journal and answers."""
        log = (self.directory / "server.log").open("ab")
        arguments = [*server_command(), "--port", str(self.port), "--dir", str(self.directory), *self.options]
        with log:
            self._process = subprocess.Popen(arguments, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            wait_for(self._answers, f"server on port {self.port} answers", START_TIMEOUT_S)
        except TimeoutError as error:
            self.kill()
            raise ServerFailedError(f"{error}\n{self.log_tail()}") from None
        return self

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise ServerFailedError(f"the server ended with status {self._process.returncode}\n{self.log_tail()}")
        with self.client(retry_for=0, response_timeout=1.0) as probe:
            try:
                probe.execute("QLEN", "ready", resend=True)  # PING is answered while a journal that may yet be refused is loaded
            except (NoNodeError, LoadingError):
                return False
        return True

    def log_tail(self) -> str:
        """The end of what the server wrote."""
        try:
            return (self.directory / "server.log").read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
        except OSError:
            return ""

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise ServerFailedError(f"the server did not end in {STOP_TIMEOUT_S:g} s\n{self.log_tail()}") from None

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start it again on the same port and directory, after `kill` or `stop`."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """Let it hang: connections stay, nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """End a `pause`."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """Kill it, and remove its temporary directory."""
        self.kill()
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Cluster:
    """Servers that know each other."""

    def __init__(self, size: int, options: Sequence[str] = ()) -> None:
        self.servers = [Server(*options) for _ in range(size)]

    @property
    def url(self) -> str:
        """The URL for `Client`, with all the nodes."""
        return "disque://" + ",".join(f"127.0.0.1:{server.port}" for server in self.servers)

    def start(self) -> Self:
        """Start all, and wait until all agree."""
        for server in self.servers:
            server.start()
        with self.servers[0].client() as client:
            for server in self.servers[1:]:
                client.cluster("meet", "127.0.0.1", server.port)
        self.wait_until_whole()
        return self

    def wait_until_whole(self, timeout: float = START_TIMEOUT_S) -> None:
        """Until every node is linked with every other."""
        for server in self.servers:
            with server.client() as client:
                wait_for(partial(self._sees_all, client), f"node {server.port} sees the whole cluster", timeout)

    def _sees_all(self, client: Client) -> bool:
        try:
            reachable = client.cluster("info")["cluster_reachable_nodes"]
            nodes = client.hello().nodes
        except DisqueueError:
            return False
        size = len(self.servers)
        return reachable == size - 1 and len(nodes) == size and all(node.priority == 1 and node.host for node in nodes)

    def close(self) -> None:
        """Kill all."""
        for server in self.servers:
            server.close()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
