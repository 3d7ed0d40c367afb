"""CONFIG GET and SET for every option, and what old tools take for granted of a server and its file."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from disqueue.config.directives import DIRECTIVES, Directive
from disqueue.testing.server import free_port

from .server_process import ServerProcess, server_command
from .socket_session import Connection, SocketSession

START_TIMEOUT_S = 20.0


@pytest.mark.differs("configuration")
@pytest.mark.parametrize("directive", DIRECTIVES, ids=lambda directive: directive.name)
def test_every_option_is_in_config_get_and_takes_its_own_value(session: SocketSession, directive: Directive) -> None:
    client = session.connection("A")
    name, value = client.call("CONFIG", "GET", directive.name).items
    assert name.data.decode() == directive.name
    if directive.hidden:
        return
    reply = str(client.call(b"CONFIG", b"SET", name.data, value.data))
    if directive.runtime:
        assert reply == "+OK"
    else:
        assert reply.startswith("-ERR ")
        assert directive.name in reply


@pytest.mark.differs("configuration")
def test_words_of_the_file_are_words_of_config_set(session: SocketSession) -> None:
    client = session.connection("A")
    for name, value, shown in (
        ("tcp-keepalive", "60", "60"),
        ("tcp-keepalive", "no", "0"),
        ("slowlog-log-slower-than", "-1", "-1"),
        ("auto-aof-rewrite-min-size", "32mb", "33554432"),
        ("no-appendfsync-on-rewrite", "yes", "yes"),
        ("client-output-buffer-limit", "normal 1mb 512kb 10", "normal 1048576 524288 10"),
    ):
        before = client.call("CONFIG", "GET", name).items[1].data
        assert str(client.call("CONFIG", "SET", name, value)) == "+OK", name
        assert client.call("CONFIG", "GET", name).items[1].data.decode() == shown
        assert str(client.call(b"CONFIG", b"SET", name.encode(), before)) == "+OK"


def environment() -> dict[str, str]:
    """This environment for a process in another directory."""
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


class FileServer:
    """A server with nothing but a configuration file, in its own directory."""

    def __init__(self, directory: Path, text: str) -> None:
        self.directory = directory
        (directory / "node.conf").write_text(text)
        self.start()

    def start(self) -> None:
        with (self.directory / "output.log").open("ab") as log:
            command = [*server_command(), "node.conf"]
            self.process = subprocess.Popen(
                command, cwd=self.directory, env=environment(), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def connect(self, address: tuple[str, int] | str) -> Connection:
        """Connect once it listens."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                return Connection(address)
            except OSError:
                assert self.process.poll() is None, (self.directory / "output.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.005)

    def stop(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)


def test_a_file_by_relative_path_rewritten_and_read_again_after_a_crash(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "data").mkdir()
    server = FileServer(tmp_path, f"port {port}\nbind 127.0.0.1\ndir ./data\nlogfile log.txt\nloglevel notice\n")
    try:
        client = server.connect(("127.0.0.1", port))
        client.send(b"PING\r\n")
        assert str(client.receive()) == "+PONG"
        identity = client.call("CLUSTER", "MYID").data
        assert str(client.call("CONFIG", "SET", "maxmemory", "123mb")) == "+OK"
        assert str(client.call("CONFIG", "REWRITE")) == "+OK"
        assert str(client.call("DEBUG", "FLUSHALL")) == "+OK"
        client.close()
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
        assert str(tmp_path / "data") in (tmp_path / "node.conf").read_text()
        assert (tmp_path / "data" / "log.txt").stat().st_size > 0
        server.start()
        client = server.connect(("127.0.0.1", port))
        assert client.call("CLUSTER", "MYID").data == identity
        assert client.call("CONFIG", "GET", "maxmemory").items[1].data == b"%d" % (123 << 20)
        client.close()
    finally:
        assert server.stop(signal.SIGTERM) == 0


def test_a_unix_socket(tmp_path: Path) -> None:
    server = FileServer(tmp_path, "port 0\nunixsocket server.sock\nunixsocketperm 700\n")
    path = tmp_path / "server.sock"
    try:
        client = server.connect(str(path))
        job = client.call("ADDJOB", "q", "x", "0")
        assert client.call("GETJOB", "FROM", "q").items[0].items[1].data == job.data
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert b" flags=U " in client.call("CLIENT", "LIST").data
        client.close()
    finally:
        assert server.stop(signal.SIGTERM) == 0
    assert not path.exists()


def test_ipv6(tmp_path: Path) -> None:
    port = free_port()
    server = FileServer(tmp_path, f"port {port}\nbind ::1\n")
    try:
        client = server.connect(("::1", port))
        assert str(client.call("PING")) == "+PONG"
        assert b" addr=[::1]:" in client.call("CLIENT", "LIST").data
        client.close()
    finally:
        assert server.stop(signal.SIGINT) == 0


def test_shutdown_ends_the_process(server: ServerProcess, session: SocketSession) -> None:
    waiting = session.connection("A")
    waiting.send(b"GETJOB FROM q\r\n")
    session.wait_blocked(1)
    caller = session.connection("B")
    caller.send(b"SHUTDOWN\r\n")
    caller.receive_close()
    waiting.receive_close()
    assert server.process.wait(20) == 0
    assert server.start_again()
