"""Scripted and real servers, and the command line as a child process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from disqueue.cli.nodes import SERVER_COMMAND, LocalNode, free_ports, stop_all
from tests.cli.fake_server import Answer, FakeServer

RUN_TIMEOUT_S = 60
ROOT = Path(__file__).parents[2]

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings and no history of the person who runs the tests."""
    for name in ("DISQUEUE_URL", "DISQUEUE_AUTH", "FAKETTY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def fake() -> Iterator[Callable[[Answer], FakeServer]]:
    servers: list[FakeServer] = []

    def start(answer: Answer) -> FakeServer:
        servers.append(FakeServer(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def disqueue() -> Run:
    """Run `disqueue …` in a process of its own."""

    def run(*arguments: str | int, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "disqueue", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            timeout=RUN_TIMEOUT_S,
            env={**os.environ, **environment},
            check=False,
        )

    return run


def server_command() -> Sequence[str]:
    """Ours, or the foreign server that DISQUEUE_TEST_SERVER names."""
    foreign = os.environ.get("DISQUEUE_TEST_SERVER")
    return [foreign] if foreign else SERVER_COMMAND


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Callable[[int], list[LocalNode]]]:
    """Start so many real servers, each alone."""
    started: list[LocalNode] = []

    def start(count: int) -> list[LocalNode]:
        fresh = [LocalNode(port, tmp_path / f"node-{port}", (), server_command()) for port in free_ports(count)]
        started.extend(fresh)
        for node in fresh:
            node.start()
        for node in fresh:
            node.wait_ready()
        return fresh

    yield start
    stop_all(started)
