"""A server of our own, or the one that DISQUEUE_TEST_SERVER names, as a child process on a free port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from disqueue.testing.server import free_port

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0


def foreign_server() -> str | None:
    """The path of another server to test instead of ours."""
    return os.environ.get("DISQUEUE_TEST_SERVER")


def original_under_test() -> bool:
    """Whether the server under test is the original Disque, from which ours differs on purpose in places."""
    return Path(foreign_server() or "").name == "disque-server"


def server_command() -> list[str]:
    """What starts a server, before its arguments."""
    foreign = foreign_server()
    return [foreign] if foreign else [sys.executable, "-m", "disqueue", "server"]


class ServerProcess:
    """A running server; `directory` holds its files and `output` what it printed."""

    def __init__(self, directory: Path, options: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self.options = options
        self.output = directory / "output.log"
        for attempt in range(3):
            self.port = free_port()
            if self.start_again():
                return
            if attempt == 2:
                raise RuntimeError(f"the server did not start:\n{self.output.read_text(errors='replace')}")

    def command(self) -> list[str]:
        """The command line that starts it."""
        return [*server_command(), "--port", str(self.port), "--dir", str(self.directory), "--bind", "127.0.0.1", *self.options]

    def start_again(self) -> bool:
        """Start the process and wait until it listens; False if it ended before."""
        with self.output.open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            except OSError:
                time.sleep(0.01)
        self.stop()
        return False

    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def stop(self) -> int:
        """End it and return its exit code."""
        if self.alive():
            self.process.terminate()
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()
