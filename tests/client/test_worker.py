"""`disqueue worker` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from disqueue.client import Client
from disqueue.client.worker import MAX_PAUSE_S, load_handler, main, pause_after_failure
from disqueue.testing import Server, free_port
from disqueue.testing.server import wait_for

ROOT = Path(__file__).parents[2]
RUN = "import sys; from disqueue.client.worker import main; sys.exit(main(sys.argv[1:]))"
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start_worker(disqueue_server: Server) -> Iterator[Start]:
    workers: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {"DISQUEUE_URL": disqueue_server.url}
        worker = subprocess.Popen(
            [sys.executable, "-c", RUN, *arguments],
            cwd=ROOT,
            env=environment,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)  # with its commands: they hold its end of the pipe
        worker.communicate()


def answer(client: Client, queue: str) -> bytes:
    job = client.get_one(queue, timeout=20)
    assert job is not None
    job.ack()
    return job.body


@pytest.mark.parametrize("handler", ["echo", "echo_async"])
def test_functions(start_worker: Start, disqueue_client: Client, queue: str, handler: str) -> None:
    worker = start_worker(f"tests.client.handlers:{handler}", "-q", f"{queue}-a", "-q", f"{queue}-b", "-c", "3")
    ids = [disqueue_client.add(f"{queue}-{name}", queue.encode()) for name in "abab"]
    answers = sorted(answer(disqueue_client, queue) for _ in range(4))
    assert answers == sorted(f"{queue}-{name} 0".encode() for name in "abab")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(20) == 0
    assert [disqueue_client.show(job_id) for job_id in ids] == [None] * 4


def test_a_failed_job_is_given_back(start_worker: Start, disqueue_client: Client, queue: str) -> None:
    worker = start_worker("tests.client.handlers:fail_once", "-q", f"{queue}-in", "--idle-timeout", "1")
    disqueue_client.add(f"{queue}-in", queue.encode())
    assert answer(disqueue_client, queue) == f"{queue}-in 1".encode()
    _, log = worker.communicate(timeout=20)
    assert worker.returncode == 0
    assert b"RuntimeError: not yet" in log


def test_commands(start_worker: Start, disqueue_client: Client, queue: str, tmp_path: Path) -> None:
    script = (
        f"cat > {tmp_path}/$DISQUEUE_NACKS; echo $DISQUEUE_QUEUE $DISQUEUE_JOB_ID > {tmp_path}/job; test $DISQUEUE_NACKS != 0"
    )
    worker = start_worker("-q", queue, "--idle-timeout", "1", "--exec", "sh", "-c", script)
    job_id = disqueue_client.add(queue, b"the body")
    _, log = worker.communicate(timeout=30)
    assert worker.returncode == 0
    assert b"failed, nacks so far: 0: sh ended with status 1" in log
    assert b"Traceback" not in log
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes() == b"the body"
    assert (tmp_path / "job").read_text().split() == [queue, job_id]
    assert disqueue_client.show(job_id) is None


def test_a_stop_lets_the_job_finish(start_worker: Start, disqueue_client: Client, queue: str, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    os.mkfifo(go_on)
    worker = start_worker("-q", queue, "--prefetch", "3", "--exec", "sh", "-c", f"touch {tmp_path}/started; cat {go_on}")
    first, second = disqueue_client.add_many(queue, [b"1", b"2"], retry=60)
    wait_for((tmp_path / "started").exists, "the command runs")
    worker.send_signal(signal.SIGINT)
    assert worker.stderr is not None
    while b"finishing what is at hand" not in (line := worker.stderr.readline()):  # before it ends, or the next job begins
        assert line, "the worker has ended"
    go_on.write_bytes(b"")
    assert worker.wait(20) == 0
    assert disqueue_client.show(first) is None
    info = disqueue_client.show(second)
    assert info is not None
    assert info.state == "queued"


@pytest.mark.parametrize("handler", [["tests.client.handlers:echo_async"], ["--exec", "cat"]])
@pytest.mark.parametrize(("password", "status", "says"), [("secret", 0, b"at work: 1"), ("", 1, b"NOAUTH")])
def test_the_password_of_the_environment(
    start_worker: Start,
    start_server: Callable[..., Server],
    monkeypatch: pytest.MonkeyPatch,
    handler: list[str],
    password: str,
    status: int,
    says: bytes,
) -> None:
    server = start_server(password="secret")
    monkeypatch.setenv("DISQUEUE_AUTH", password)
    worker = start_worker("-q", "q", "--idle-timeout", "0.1", "--nodes", f"disque://127.0.0.1:{server.port}", *handler)
    _, log = worker.communicate(timeout=20)
    assert worker.returncode == status
    assert says in log
    assert b"Traceback" not in log


def test_no_node(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("DISQUEUE_URL", f"disque://127.0.0.1:{free_port()}?retry_for=0.1")
    assert main(["tests.client.handlers:echo", "-q", "q"]) == 1
    assert "no node could be reached" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-q", "q"], "give either module:function or --exec"),
        (["-q", "q", "a:b", "--exec", "true"], "give either module:function or --exec"),
        (["a:b"], "required: --queue"),
        (["-q", "q", "-c", "0", "a:b"], "no number between 1 and 1000"),
        (["-q", "q", "nonsense"], "use module:function"),
        (["-q", "q", "--exec", "no-such-program"], "no program 'no-such-program'"),
        (["-q", "q", "no.such.module:f"], "can't be loaded"),
        (["-q", "q", "tests.client.handlers:nothing"], "can't be loaded"),
        (["-q", "q", "tests.client.handlers:not_callable"], "is no function but int"),
    ],
)
def test_usage_errors(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert says in capsys.readouterr().err


def test_methods_are_handlers() -> None:
    assert load_handler("builtins:str.upper") is str.upper


def test_the_pause_after_failures_grows_to_a_limit() -> None:
    class Failed:
        nacks = 0

    job = Failed()
    assert pause_after_failure(job) == 0.1  # type: ignore[arg-type]
    job.nacks = 10_000
    assert pause_after_failure(job) == MAX_PAUSE_S  # type: ignore[arg-type]
