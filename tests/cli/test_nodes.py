"""Servers as child processes: those that fail."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from disqueue.cli.nodes import BUS_PORT_OFFSET, LocalNode, NodeFailed, free_ports, is_free, server_environment


def script(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_ports_leave_room_for_the_bus() -> None:
    ports = free_ports(3)
    assert len(set(ports)) == 3
    assert all(port + BUS_PORT_OFFSET < 32768 for port in ports)


def test_a_server_that_ends_at_start_shows_its_log(tmp_path: Path) -> None:
    node = LocalNode(free_ports(1)[0], tmp_path / "n", (), script("import sys; sys.exit('bad directive')"))
    node.start()
    with pytest.raises(NodeFailed, match=r"status 1 at start:\nbad directive"):
        node.wait_ready()


def test_a_server_that_is_silent_is_not_waited_for_without_end(tmp_path: Path) -> None:
    node = LocalNode(free_ports(1)[0], tmp_path / "n", (), script("import time; time.sleep(60)"))
    node.start()
    with pytest.raises(NodeFailed, match="did not answer within"):
        node.wait_ready(0.05)
    node.kill()
    assert node.status == -9


def test_a_server_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    ready = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    node = LocalNode(free_ports(1)[0], tmp_path / "n", (), script(ready))
    node.start()
    while "ready" not in node.log_tail():
        assert node.status is None
    node.terminate()
    assert not node.wait_stopped(0.05)
    assert node.status == -9


def test_a_taken_port_is_told_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert not is_free(port)
        with pytest.raises(NodeFailed, match=f"port {port} is in use"):
            LocalNode(port, tmp_path / "n").start()
    assert not (tmp_path / "n").exists()


def test_a_directory_that_can_not_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NodeFailed, match=r"file/node can't be made: Not a directory"):
        LocalNode(free_ports(1)[0], tmp_path / "file" / "node").start()


def test_stopping_what_never_started(tmp_path: Path) -> None:
    node = LocalNode(1, tmp_path / "n")
    node.terminate()
    assert node.wait_stopped()
    assert node.log_tail() == "(no log)"


def test_nodes_take_nothing_from_the_environment_but_what_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISQUEUE_APPENDONLY", "yes")
    monkeypatch.setenv("DISQUEUE_PURE", "1")
    assert {name: value for name, value in server_environment("p").items() if name.startswith("DISQUEUE_")} == {
        "DISQUEUE_PURE": "1",
        "DISQUEUE_REQUIREPASS": "p",
    }
    assert "DISQUEUE_REQUIREPASS" not in server_environment()
