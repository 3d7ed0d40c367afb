"""Real servers as a cluster: joining, dying, coming back, and what they refuse."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from disqueue.testing.server import Server, free_port, server_command, wait_for

STRANGER = "10.255.255.1"


class Member:
    """A server and its directory, which outlives it."""

    def __init__(self, directory: Path, *options: str) -> None:
        directory.mkdir()
        self.server = Server(*options, directory=directory)
        self.server.start()

    def ask(self, *words: str | int) -> object:
        with self.server.client() as client:
            return client.execute(*words)

    def text(self, *words: str | int) -> str:
        reply = self.ask(*words)
        return reply.decode() if isinstance(reply, bytes) else str(reply)

    def info(self) -> dict[str, str]:
        lines = self.text("CLUSTER", "INFO").splitlines()
        return dict(line.split(":", 1) for line in lines)

    def refusal(self, *words: str | int) -> str:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the client's class depends on the prefix
            self.ask(*words)
        return str(caught.value)

    @property
    def nodes_file(self) -> Path:
        return self.server.directory / "nodes.conf"


def joined(*members: Member) -> bool:
    return all(member.info()["cluster_reachable_nodes"] == str(len(members) - 1) for member in members)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    with ExitStack() as stack:

        def start_member(*options: str) -> Member:
            member = Member(tmp_path / str(len(list(tmp_path.iterdir()))), *options)
            stack.callback(member.server.kill)
            return member

        yield start_member


def join(*members: Member) -> None:
    for one, other in itertools.pairwise(members):
        assert one.text("CLUSTER", "MEET", "127.0.0.1", other.server.port) == "OK"
    wait_for(lambda: joined(*members), "full mesh")


def test_a_killed_node_is_missed_at_once_and_comes_back_as_itself(start) -> None:  # type: ignore[no-untyped-def]
    one, two, three = start(), start(), start()
    join(one, two, three)
    before = three.text("CLUSTER", "MYID")
    three.server.kill()
    wait_for(lambda: joined(one, two), "the others notice", 2.0)
    assert one.text("ADDJOB", "q", "x", 500).startswith("D-"), "default copies follow what is reachable"
    three.server.start()
    wait_for(lambda: joined(one, two, three), "it is back")
    assert three.text("CLUSTER", "MYID") == before
    assert "fail" not in one.text("CLUSTER", "NODES")


def test_a_damaged_nodes_file_is_no_reason_not_to_start(start) -> None:  # type: ignore[no-untyped-def]
    one, two = start(), start()
    join(one, two)
    two.server.kill()
    own = next(line for line in two.nodes_file.read_text().splitlines() if "myself" in line)
    two.nodes_file.write_text(own + "\n" + "f" * 17)
    two.server.start()
    wait_for(lambda: joined(one, two), "members that know it are taken back")
    two.server.kill()
    two.nodes_file.write_bytes(bytes(200))
    two.server.start()
    assert two.text("CLUSTER", "MYID") != own.split()[0]
    assert two.nodes_file.with_name("nodes.conf.damaged-2").read_bytes() == bytes(200)


def test_a_nodes_file_that_names_nobody_leaves_a_node_with_a_journal_as_it_was(start) -> None:  # type: ignore[no-untyped-def]
    one, two = (start("--appendonly", "yes") for _ in range(2))
    join(one, two)
    job_id = two.text("ADDJOB", "q", "x", 0, "REPLICATE", 1)
    name = two.text("CLUSTER", "MYID")
    two.server.kill()
    two.nodes_file.write_bytes(bytes(200))
    two.server.start()
    assert two.text("CLUSTER", "MYID") == name
    wait_for(lambda: joined(one, two), "those that know it find it again")
    assert two.ask("GETJOB", "NOHANG", "FROM", "q") == [[b"q", job_id.encode(), b"x"]]


def test_a_directory_serves_one_process(start) -> None:  # type: ignore[no-untyped-def]
    one = start()
    arguments = [*server_command(), "--port", str(free_port()), "--dir", str(one.server.directory)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "in use by another node" in done.stderr


def test_a_password_without_a_secret_keeps_the_bus_on_this_machine(start) -> None:  # type: ignore[no-untyped-def]
    one = start("--bind", "127.0.0.1")
    assert one.text("CLUSTER", "MEET", STRANGER, 7711) == "OK"
    one.ask("CONFIG", "SET", "requirepass", "x")
    one.server.password = "x"
    assert "set the same cluster-secret" in one.refusal("CLUSTER", "MEET", STRANGER, 7712)
    one.ask("CONFIG", "SET", "cluster-secret", "s")
    assert one.text("CLUSTER", "MEET", STRANGER, 7712) == "OK"


def test_only_nodes_with_the_secret_join(start) -> None:  # type: ignore[no-untyped-def]
    options = ("--cluster-node-timeout", "1000")
    one, two, other = (start("--cluster-secret", secret, *options) for secret in ("s", "s", "t"))
    join(one, two)
    other.text("CLUSTER", "MEET", "127.0.0.1", one.server.port)
    wait_for(lambda: other.info()["cluster_meet_failures"] == "1", "the meeting fails")
    assert "another cluster-secret" in other.info()["cluster_last_meet_failure"]
    assert other.info()["cluster_size"] == "1"
    assert one.info()["cluster_size"] == "2"


def test_unusual_ports_and_announced_ones(start) -> None:  # type: ignore[no-untyped-def]
    bus_port = free_port()
    one, two = start(), start("--cluster-port", str(bus_port), "--cluster-announce-ip", "localhost")
    one.text("CLUSTER", "MEET", "localhost", two.server.port, bus_port)
    wait_for(lambda: joined(one, two), "they join")
    assert f"localhost:{two.server.port}@{bus_port}" in one.text("CLUSTER", "NODES")
    assert b"localhost" in [node[1] for node in one.ask("HELLO")[2:]]


def test_the_bus_needs_a_port_that_exists(tmp_path: Path) -> None:
    arguments = [*server_command(), "--port", "60000", "--dir", str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "set cluster-port" in done.stderr


def test_leaving_and_bans_survive_a_restart(start) -> None:  # type: ignore[no-untyped-def]
    one, two = start(), start()
    join(one, two)
    two.ask("CLUSTER", "LEAVING", "yes")
    wait_for(lambda: " leaving " in one.text("CLUSTER", "NODES"), "the other hears")
    wait_for(lambda: "leaving" in two.nodes_file.read_text(), "written")
    gone = two.text("CLUSTER", "MYID")
    two.server.kill()
    two.server.start()
    assert two.text("CLUSTER", "LEAVING") == "yes"
    one.ask("CLUSTER", "FORGET", gone)
    one.ask("CLUSTER", "SAVECONFIG")
    one.server.kill()
    one.server.start()
    assert one.info()["cluster_banned_nodes"] == "1"
    assert one.info()["cluster_size"] == "1"
    assert two.text("CLUSTER", "RESET", "HARD") == "OK"
    assert two.text("CLUSTER", "LEAVING") == "no"
    join(one, two)


@pytest.mark.parametrize("appendonly", ["no", "yes"])
def test_a_restarted_node_has_met_its_peers_before_it_serves_clients(start, appendonly: str) -> None:  # type: ignore[no-untyped-def]
    one, two = start("--appendonly", appendonly), start("--appendonly", appendonly)
    join(one, two)
    for server in (one, two):
        wait_for(lambda server=server: server.info()["cluster_reachable_nodes"] == "1", "linked")
    two.ask("CLUSTER", "SAVECONFIG")
    two.server.kill()
    two.server.start()
    assert two.info()["cluster_reachable_nodes"] == "1"
