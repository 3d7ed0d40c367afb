"""What only a real process shows: start, signals, files, background, restart."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from disqueue import __version__
from disqueue.testing.server import free_port

WAIT_S = 20.0


def wait_for(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + WAIT_S
    while not (value := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
    return value


def exists_with(path: Path, text: str) -> Callable[[], bool]:
    return lambda: path.exists() and text in path.read_text(encoding="utf-8")


def is_running(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    return False


class Run:
    """One server process in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str, stdin: bytes = b"", files: int = 0, **environment: str) -> None:
        command = [sys.executable, "-m", "disqueue.server", *arguments]
        if files:
            command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
        with (self.directory / "out").open("ab") as out:
            self.process = subprocess.Popen(
                command, cwd=self.directory, stdout=out, stderr=out, stdin=subprocess.PIPE, env={**os.environ, **environment}
            )
        assert self.process.stdin is not None
        self.process.stdin.write(stdin)
        self.process.stdin.close()

    def wait(self) -> int:
        assert self.process is not None
        return self.process.wait(WAIT_S)

    def output(self) -> str:
        return (self.directory / "out").read_text(encoding="utf-8")

    def connect(self, path: str = "") -> socket.socket:
        def attempt() -> socket.socket | None:
            one = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
            try:
                one.connect(path or ("127.0.0.1", self.port))
            except OSError:
                one.close()
            else:
                return one
            assert self.process is not None
            assert self.process.poll() in (None, 0), self.output()
            return None

        found: socket.socket = wait_for(attempt)
        return found

    def ask(self, *words: str, path: str = "") -> bytes:
        """Send one command on a connection of its own; the reply must fit in one packet."""
        with self.connect(path) as one:
            request = b"".join(b"$%d\r\n%b\r\n" % (len(word), word.encode()) for word in words)
            one.sendall(b"*%d\r\n" % len(words) + request)
            one.settimeout(WAIT_S)
            return one.recv(65536)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    one = Run(tmp_path)
    yield one
    one.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(run: Run, number: signal.Signals) -> None:
    run.start("--port", str(run.port), "--pidfile", "pid", "--unixsocket", "s", "--unixsocketperm", "700")
    assert run.ask("PING") == b"+PONG\r\n"
    assert run.ask("PING", path=str(run.directory / "s")) == b"+PONG\r\n"
    assert stat.S_IMODE((run.directory / "s").stat().st_mode) == 0o700
    assert run.process is not None
    assert (run.directory / "pid").read_text(encoding="ascii") == f"{run.process.pid}\n"
    waiting = run.connect()
    waiting.sendall(b"GETJOB FROM q\r\n")
    run.process.send_signal(number)
    assert run.wait() == 0
    assert waiting.recv(100) == b""
    waiting.close()
    text = run.output()
    assert f"Disqueue {__version__} is ready port={run.port}" in text
    assert "python=" in text
    assert f"signal received signal={number.name}" in text
    assert text.rstrip().endswith("* bye")
    assert not (run.directory / "pid").exists()
    assert not (run.directory / "s").exists()


def test_too_few_open_files_to_start_are_one_line(run: Run) -> None:
    run.start("--port", str(run.port), files=8)
    assert run.wait() == 1
    assert run.output().splitlines()[-1].startswith("disqueue server: ")
    assert "Traceback" not in run.output()
    assert "ulimit -n" in run.output()


def test_info_tells_how_many_clients_fit(run: Run) -> None:
    run.start("--port", str(run.port), files=100)
    assert b"\r\nmaxclients:36\r\n" in run.ask("INFO", "clients")


def test_refused_clients_leave_the_journal_and_links_their_files(run: Run) -> None:
    run.start("--port", str(run.port), "--appendonly", "yes", files=100)
    with run.connect() as client, contextlib.ExitStack() as stack:
        client.settimeout(WAIT_S)
        for _ in range(60):
            stack.enter_context(run.connect())

        def rejected() -> int:
            client.sendall(b"INFO stats\r\n")
            return int(client.recv(65536).partition(b"rejected_connections:")[2].partition(b"\r")[0])

        wait_for(lambda: rejected() == 25)
        for _ in range(3):  # some turns of the server's loop, and much less than those may take that read their error
            assert rejected() == 25
        assert run.process is not None
        assert len(os.listdir(f"/proc/{run.process.pid}/fd")) <= 70


def test_an_end_that_the_disk_does_not_take_is_no_success(run: Run) -> None:
    run.start("--port", str(run.port), "--appendonly", "yes")
    assert run.ask("ADDJOB", "q", "x", "0").startswith(b"+D-")
    shutil.rmtree(run.directory / "disque.aof")
    assert run.process is not None
    run.process.terminate()
    assert run.wait() == 1
    assert "could not be written to its end" in run.output()


def test_shutdown_ends_it(run: Run) -> None:
    run.start("--port", str(run.port))
    assert run.ask("SHUTDOWN") == b""
    assert run.wait() == 0


def test_hangup_reopens_the_log(run: Run) -> None:
    log = run.directory / "a.log"
    run.start("--port", str(run.port), "--logfile", "a.log", "--log-format", "json")
    wait_for(exists_with(log, "is ready"))
    log.rename(run.directory / "old.log")
    assert run.process is not None
    run.process.send_signal(signal.SIGHUP)
    wait_for(log.exists)
    run.process.terminate()
    assert run.wait() == 0
    ready = [json.loads(line) for line in (run.directory / "old.log").read_text(encoding="utf-8").splitlines()]
    assert [line["port"] for line in ready if "is ready" in line["event"]] == [run.port]
    events = [json.loads(line)["event"] for line in log.read_text(encoding="utf-8").splitlines()]
    assert events[-2:] == ["shutting down", "bye"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--prot", "1"], "disqueue server: option --prot: there is no option 'prot'; did you mean 'port'?"),
        (["nosuch.conf"], "disqueue server: can't read the configuration file nosuch.conf: No such file or directory"),
        (["--logfile", "no/such/dir/x"], "disqueue server: logfile "),
        (["--rename-command", "NOSUCH", "x"], "disqueue server: rename-command nosuch: there is no such command"),
        (["--bind", "203.0.113.1"], "disqueue server: "),
    ],
)
def test_a_bad_option_is_said_and_it_ends_with_1(run: Run, arguments: list[str], said: str) -> None:
    if not arguments[0].endswith(".conf"):
        arguments = [*arguments, "--port", str(run.port)]
    run.start(*arguments)
    assert run.wait() == 1
    lines = [line for line in run.output().splitlines() if line.startswith("disqueue server: ")]
    assert len(lines) == 1
    assert lines[0].startswith(said)
    assert "Traceback" not in run.output()


def test_a_port_in_use_is_said(run: Run) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", run.port))
        other.listen()
        run.start("--port", str(run.port), "--bind", "127.0.0.1")
        assert run.wait() == 1
    assert run.output().startswith(
        f"disqueue server: can't listen on 127.0.0.1 port {run.port}: Address already in use; another server runs there"
    )


def test_a_port_for_other_nodes_in_use_is_said(run: Run) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", run.port + 10000))
        other.listen()
        run.start("--port", str(run.port), "--bind", "127.0.0.1")
        assert run.wait() == 1
    assert "port for other nodes (port + 10000, as cluster-port is not set): can't listen on 127.0.0.1" in run.output()


@pytest.mark.parametrize(
    ("argument", "said"), [("--help", "--maxmemory (default 1gb)"), ("--version", f"Disqueue {__version__}")]
)
def test_what_it_says_of_itself(run: Run, argument: str, said: str) -> None:
    run.start(argument)
    assert run.wait() == 0
    assert said in run.output()


def test_a_configuration_file_as_old_tools_write_it(run: Run) -> None:
    (run.directory / "data").mkdir()
    path = run.directory / "a.conf"
    path.write_text(f"# mine\nport {run.port}\ndir data\nlogfile node.log\nloglevel notice\nhz 10\n", encoding="utf-8")
    run.start("a.conf")
    assert run.ask("CONFIG", "SET", "timeout", "77") == b"+OK\r\n"
    assert run.ask("CONFIG", "REWRITE") == b"+OK\r\n"
    assert run.ask("SHUTDOWN") == b""
    assert run.wait() == 0
    text = path.read_text(encoding="utf-8")
    assert f"# mine\nport {run.port}\ndir {run.directory}/data\nlogfile node.log\n" in text
    log = run.directory / "data" / "node.log"
    assert "hz has no effect" in log.read_text(encoding="utf-8")
    (run.directory / "elsewhere").mkdir()
    run.directory = run.directory / "elsewhere"
    run.start("../a.conf")
    assert run.ask("CONFIG", "GET", "timeout").endswith(b"$2\r\n77\r\n")
    assert run.ask("INFO", "server").count(b"config_file:" + str(path).encode()) == 1
    run.process.terminate()  # type: ignore[union-attr]
    assert run.wait() == 0


def test_configuration_from_standard_input_and_environment(run: Run) -> None:
    run.start("-", stdin=f"port {run.port}\ntimeout 1\n".encode(), DISQUEUE_TIMEOUT="2", DISQUEUE_MAXMEMROY="1")
    assert run.ask("CONFIG", "GET", "timeout").endswith(b"$1\r\n2\r\n")
    assert run.ask("CONFIG", "REWRITE") == b"-ERR The server is running without a config file\r\n"
    assert "environment variable DISQUEUE_MAXMEMROY is no option; did you mean 'maxmemory'?" in run.output()


def test_it_goes_to_the_background(run: Run) -> None:
    log = run.directory / "a.log"
    run.start("--port", str(run.port), "--daemonize", "yes", "--pidfile", "pid", "--logfile", "a.log")
    assert run.wait() == 0
    wait_for(exists_with(log, "is ready"))
    pid = int((run.directory / "pid").read_text(encoding="ascii"))
    try:
        assert os.getsid(pid) != os.getsid(0)
        assert f"process_id:{pid}\r\n".encode() in run.ask("INFO", "server")
        assert run.ask("DEBUG", "RESTART") == b"+OK\r\n"
        wait_for(lambda: log.read_text(encoding="utf-8").count("is ready") == 2)
        assert f"process_id:{pid}\r\n".encode() in run.ask("INFO", "server")
        assert run.ask("SHUTDOWN") == b""
        wait_for(lambda: not is_running(pid))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not (run.directory / "pid").exists()


def test_restart_keeps_process_identity_and_configuration(run: Run) -> None:
    (run.directory / "a.conf").write_text(f"port {run.port}\n", encoding="utf-8")
    run.start("a.conf")
    node = run.ask("CLUSTER", "MYID")
    run_id = run.ask("INFO", "server").split(b"run_id:")[1][:40]
    assert run.ask("CONFIG", "SET", "timeout", "9") == b"+OK\r\n"
    assert run.ask("DEBUG", "RESTART") == b"+OK\r\n"
    wait_for(lambda: run.output().count("is ready") == 2)
    assert run.ask("CONFIG", "GET", "timeout").endswith(b"$1\r\n9\r\n")
    assert run.ask("CLUSTER", "MYID") == node
    assert run.ask("INFO", "server").split(b"run_id:")[1][:40] != run_id
    assert run.process is not None
    assert f"process_id:{run.process.pid}\r\n".encode() in run.ask("INFO", "server")


def test_a_killed_server_starts_again_on_its_port_and_socket(run: Run) -> None:
    arguments = ("--port", str(run.port), "--unixsocket", "s")
    run.start(*arguments)
    node = run.ask("CLUSTER", "MYID")
    run.stop()
    run.start(*arguments)
    assert run.ask("CLUSTER", "MYID", path=str(run.directory / "s")) == node


def test_a_second_interrupt_does_not_wait(run: Run) -> None:
    program = (
        "import asyncio, os, signal\n"
        "from types import SimpleNamespace\n"
        "from disqueue.server.main import _handle_signals\n"
        "async def main():\n"
        "    asked = asyncio.Event()\n"
        "    shell = SimpleNamespace(shutdown=lambda rewrite: asked.set())\n"
        "    _handle_signals(asyncio.get_running_loop(), shell, SimpleNamespace(reopen=None))\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    await asked.wait()\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    signal.pause()\n"
        "asyncio.run(main())\n"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=run.directory, timeout=WAIT_S, check=False).returncode == 1
