"""`disqueue cluster …` with real nodes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from disqueue.cli.cluster import run
from disqueue.cli.cluster_changes import ChangeRefused, Waiting
from disqueue.cli.cluster_local import run_local
from disqueue.cli.connection import Connection, Target
from disqueue.cli.membership import ask, wait_for
from disqueue.cli.nodes import LocalNode, free_ports
from tests.cli.conftest import ROOT
from tests.cli.fake_server import Answer, FakeServer, answers

Nodes = Callable[[int], list[LocalNode]]


def address(node: LocalNode) -> str:
    return f"127.0.0.1:{node.port}"


def call(node: LocalNode, *words: str | int) -> object:
    connection = Connection(node.target)
    try:
        return connection.call(*words, timeout_s=10)
    finally:
        connection.close()


def test_a_cluster_s_life(nodes: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    """Create, add, look, leave, forget."""
    first, second, third = nodes(3)
    assert run(["create", address(first), address(second)]) == 0
    assert "all 2 nodes agree" in capsys.readouterr().out
    assert run(["create", address(first), address(second)]) == 0  # once more changes nothing
    assert run(["add", address(second), address(third)]) == 0
    assert "all 3 nodes agree" in capsys.readouterr().out

    assert run(["status", address(third), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert status["agree"]
    assert {node["address"] for node in status["nodes"]} == {address(first), address(second), address(third)}
    assert all(node["seen_by"] == node["others"] == 2 and node["state"] == "up" for node in status["nodes"])

    assert run(["forget", address(first), address(third)]) == 1
    assert f"{address(third)} is up: 'disqueue cluster leave" in capsys.readouterr().err

    assert run(["leave", address(third), "--shutdown"]) == 0
    assert "holds no job and was stopped" in capsys.readouterr().out
    assert third.wait_stopped()
    assert wait_for(lambda: run(["status", address(first)]) == 1, 10)
    assert f"{address(first)} has no link to {address(third)}" in capsys.readouterr().err

    assert run(["forget", address(first), address(third)]) == 0
    assert "all 2 nodes agree" in capsys.readouterr().out
    assert len(ask(second.target).members) == 2


def test_leaving_waits_for_the_jobs_and_names_their_queues(nodes: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    (node,) = nodes(1)
    call(node, "ADDJOB", "mail", "x", 0)
    assert run(["leave", address(node), "--timeout", "0.05"]) == 1
    told = capsys.readouterr().err
    assert "still holds 1 job after" in told
    assert "queue mail: 1 job" in told
    assert call(node, "CLUSTER", "LEAVING") == b"yes"
    assert run(["forget", address(node), address(node)]) == 1
    assert "still holds 1 job: 'disqueue cluster leave" in capsys.readouterr().err
    assert run(["forget", address(node), address(node), "--force"]) == 1
    assert "can't forget itself" in capsys.readouterr().err
    assert run(["leave", address(node), "--stay"]) == 0
    assert call(node, "CLUSTER", "LEAVING") == b"no"


def test_a_node_in_another_cluster_is_not_taken(nodes: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, third = nodes(3)
    assert run(["create", address(first), address(second)]) == 0
    assert run(["create", address(third), address(second)]) == 1
    assert f"{address(second)} is in a cluster with 1 other node" in capsys.readouterr().err
    assert run(["add", address(third), address(second)]) == 1
    assert "belongs to another cluster" in capsys.readouterr().err
    assert len(ask(third.target).members) == 1


def test_nothing_changes_when_one_can_not_be_reached(nodes: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    (node,) = nodes(1)
    nowhere = free_ports(1)[0]
    assert run(["create", address(node), f"127.0.0.1:{nowhere}"]) == 1
    assert f"can't connect to 127.0.0.1:{nowhere}" in capsys.readouterr().err
    assert run(["create", address(node), address(node)]) == 1
    assert "have the same node id" in capsys.readouterr().err
    assert len(ask(node.target).members) == 1


def test_an_unknown_node_is_not_forgotten(nodes: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    (node,) = nodes(1)
    assert run(["forget", address(node), "127.0.0.1:1"]) == 1
    assert "no node '127.0.0.1:1' in this cluster" in capsys.readouterr().err


def node_reply(text: str) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(text), text.encode())


def test_a_join_that_does_not_happen_is_explained(
    fake: Callable[[Answer], FakeServer], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two nodes that answer clients but never find each other: a wrong secret looks like this."""

    def lonely(node_id: str) -> Answer:
        def answer(words: list[bytes]) -> bytes:
            if words[:2] == [b"CLUSTER", b"NODES"]:
                return node_reply(f"{node_id} :1 myself 0 0 connected\n")
            return b"+OK\r\n" if words[:2] == [b"CLUSTER", b"MEET"] else node_reply("")

        return answer

    first, second = fake(lonely("a" * 40)), fake(lonely("b" * 40))
    assert run(["create", f"127.0.0.1:{first.port}", f"127.0.0.1:{second.port}", "--timeout", "0.05"]) == 1
    told = capsys.readouterr().err
    assert "no agreement after 0.05 seconds" in told
    assert "same cluster secret" in told
    assert "bus port" in told
    assert [b"CLUSTER", b"MEET", b"127.0.0.1", str(second.port).encode()] in first.requests


def test_a_failed_join_is_told_at_once_with_the_node_s_reason(
    fake: Callable[[Answer], FakeServer], capsys: pytest.CaptureFixture[str]
) -> None:
    met: list[bytes] = []

    def answer(words: list[bytes]) -> bytes:
        if words[:2] == [b"CLUSTER", b"MEET"]:
            met.extend(words[2:])
            return b"+OK\r\n"
        if words[:2] == [b"CLUSTER", b"NODES"]:
            return node_reply(f"{'a' * 40} :1 myself 0 0 connected\n")
        failure = "cluster_meet_failures:3\ncluster_last_meet_failure:h:1: another secret\n"
        return node_reply(failure if met else "cluster_meet_failures:2\n")

    def other(words: list[bytes]) -> bytes:
        if words[:2] == [b"CLUSTER", b"NODES"]:
            return node_reply(f"{'b' * 40} :1 myself 0 0 connected\n")
        return b"*2\r\n$12\r\ncluster-port\r\n$3\r\n999\r\n" if words[0] == b"CONFIG" else node_reply("")

    first, second = fake(answer), fake(other)
    assert run(["create", f"127.0.0.1:{first.port}", f"127.0.0.1:{second.port}"]) == 1
    told = capsys.readouterr().err
    assert f"! 127.0.0.1:{first.port} could not join h:1: another secret" in told
    assert "127.0.0.1:999 can't be reached" in told
    assert met == [b"127.0.0.1", str(second.port).encode(), b"999"]


def test_loopback_and_other_machines_do_not_mix(
    fake: Callable[[Answer], FakeServer], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disqueue.cli.cluster_changes._is_loopback", lambda host: host == "127.0.0.1")
    replies = iter("ab")

    def answer(words: list[bytes]) -> bytes:
        return node_reply(f"{next(replies) * 40} :1 myself 0 0 connected\n" if words[:2] == [b"CLUSTER", b"NODES"] else "")

    port = fake(answer).port
    assert run(["create", f"127.0.0.1:{port}", f"localhost:{port}"]) == 1
    assert "is this machine only" in capsys.readouterr().err


def test_a_server_of_another_kind(fake: Callable[[Answer], FakeServer], capsys: pytest.CaptureFixture[str]) -> None:
    port = fake(answers(CLUSTER=b"-ERR This instance has cluster support disabled\r\n")).port
    assert run(["status", f"127.0.0.1:{port}"]) == 1
    assert "cluster support disabled" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["create", "h"], "write it as h:7711"),
        (["local", "0"], "1 to 64"),
        (["local", "3", "--port", "60000"], "bus ports"),
        (["local", "3", "--port", "-1"], "from 1 to 65535"),
        (["status", "--timeout", "x"], "no time in seconds"),
        (["status", "--", "--hz", "1"], "only 'local'"),
        ([], "create,status"),
    ],
)
def test_wrong_arguments(argv: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(argv)
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_local_nodes_run_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    ports = free_ports(2)
    port = ports[0] if ports[1] == ports[0] + 1 else _two_in_a_row()
    process = subprocess.Popen(
        [sys.executable, "-c", _LOCAL, str(port), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "Ctrl-C stops all" in line:
            break
    assert "all 2 nodes agree\n" in lines
    assert len(ask(Target(port=port)).members) == 2
    process.send_signal(number)
    out, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, "")
    assert "stopping all nodes" in out
    assert ask(Target(port=port)).error
    assert ask(Target(port=port + 1)).error
    assert (tmp_path / f"node-{port}" / "server.log").exists()


_LOCAL = """
import sys
from pathlib import Path
from disqueue.cli.cluster_changes import Waiting
from disqueue.cli.cluster_local import run_local
from tests.cli.conftest import server_command
sys.exit(run_local(2, int(sys.argv[1]), Path(sys.argv[2]), (), Waiting(30, False), command=server_command()))
"""


def _two_in_a_row() -> int:
    ports = set(free_ports(100))
    return next(port for port in ports if port + 1 in ports)


def test_local_nodes_that_do_not_start(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('bad directive')"]
    with pytest.raises(ChangeRefused, match="bad directive"):
        run_local(1, free_ports(1)[0], tmp_path, (), Waiting(1, False), command=command)
