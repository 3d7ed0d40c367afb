"""Redis clients of today, as their users get them: they connect without an error and carry a job through its life."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .peers import INSTALL, NODE_DIRECTORY, installed
from .server_process import ServerProcess
from .socket_session import Connection, encode

pytestmark = pytest.mark.differs("resp3")
PASSWORD = "secret word"
PROGRAM_TIMEOUT_S = 60


@pytest.fixture(scope="module", params=["", PASSWORD], ids=["open", "password"])
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, str]]:
    """A server without and with a password."""
    password = request.param
    options = ("--requirepass", password) if password else ()
    process = ServerProcess(tmp_path_factory.mktemp("server"), options)
    yield process, password
    process.stop()


def run(*command: str, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a program of others to its end."""
    assert installed(Path(command[0]).name), f"{command[0]} is missing: {INSTALL}"
    return subprocess.run(command, input=stdin, capture_output=True, timeout=PROGRAM_TIMEOUT_S, check=False, cwd=cwd)


# redis-py


@pytest.mark.parametrize("protocol", [None, 2, 3])
def test_redis_py(guarded: tuple[ServerProcess, str], protocol: int | None) -> None:
    process, password = guarded
    options = {} if protocol is None else {"protocol": protocol}
    with redis.Redis(host="127.0.0.1", port=process.port, password=password or None, **options) as client:
        assert client.ping()
        job = client.execute_command("ADDJOB", "py", b"\x00\r\n\xff", 0)
        assert client.execute_command("QLEN", "py") == 1
        assert client.execute_command("GETJOB", "WITHCOUNTERS", "FROM", "py") == [
            [b"py", job, b"\x00\r\n\xff", b"nacks", 0, b"additional-deliveries", 0]
        ]
        assert client.execute_command("ACKJOB", job) == 1
        assert client.execute_command("GETJOB", "NOHANG", "FROM", "py") is None
        assert client.execute_command("SHOW", job) is None
        with pytest.raises(redis.ResponseError, match="TTL must be a number > 0"):
            client.execute_command("ADDJOB", "py", "x", 0, "TTL", 0)
        assert client.config_get("maxmemory")["maxmemory"].isdigit()
        assert client.info("server")["disque_version"]
        assert client.client_setname("me")
        assert client.client_getname() in ("me", b"me")
        assert client.echo("hi") == b"hi"
        assert client.command_count() > 30
        assert client.time()[0] > 1_500_000_000


def test_redis_py_pipeline(guarded: tuple[ServerProcess, str]) -> None:
    process, password = guarded
    with redis.Redis(host="127.0.0.1", port=process.port, password=password or None) as client:
        pipeline = client.pipeline(transaction=False)
        for number in range(50):
            pipeline.execute_command("ADDJOB", "pipeline", number, 0)
        assert len(set(pipeline.execute())) == 50
        assert len(client.execute_command("GETJOB", "COUNT", 50, "FROM", "pipeline")) == 50


def test_redis_py_with_a_wrong_password_says_so(guarded: tuple[ServerProcess, str]) -> None:
    process, password = guarded
    if password:
        with (
            redis.Redis(host="127.0.0.1", port=process.port, password="wrong", retry=Retry(NoBackoff(), 0)) as client,
            pytest.raises((redis.AuthenticationError, redis.ResponseError), match=r"(?i)password"),
        ):
            client.ping()


# redis-cli and redis-benchmark


def redis_cli(guarded: tuple[ServerProcess, str], *arguments: str, stdin: bytes = b"") -> str:
    """What redis-cli prints; it must not complain."""
    process, password = guarded
    login = ("--no-auth-warning", "-a", password) if password else ()
    done = run("redis-cli", "-p", str(process.port), *login, *arguments, stdin=stdin)
    assert done.stderr == b""
    return done.stdout.decode().strip()


@pytest.mark.needs("redis-cli")
@pytest.mark.parametrize("options", [(), ("-3",)], ids=["RESP2", "RESP3"])
def test_redis_cli(guarded: tuple[ServerProcess, str], options: tuple[str, ...]) -> None:
    job = redis_cli(guarded, *options, "ADDJOB", "cli", "body", "0")
    assert job.startswith("D-")
    assert redis_cli(guarded, *options, "GETJOB", "FROM", "cli") == f"cli\n{job}\nbody"
    assert redis_cli(guarded, *options, "ACKJOB", job) == "1"
    assert redis_cli(guarded, *options, "SHOW", job) == ""
    assert redis_cli(guarded, *options, stdin=b"PING\nECHO hi\n") == "PONG\nhi"


@pytest.mark.needs("redis-cli")
def test_redis_cli_pipe(guarded: tuple[ServerProcess, str]) -> None:
    requests = b"".join(encode([b"ADDJOB", b"pipe", b"%d" % number, b"0"]) for number in range(1000))
    assert redis_cli(guarded, "--pipe", stdin=requests).endswith("errors: 0, replies: 1000")


@pytest.mark.needs("redis-benchmark")
@pytest.mark.parametrize("options", [(), ("-3",)], ids=["RESP2", "RESP3"])
def test_redis_benchmark(guarded: tuple[ServerProcess, str], options: tuple[str, ...]) -> None:
    process, password = guarded
    login = ("-a", password) if password else ()
    command = ("ADDJOB", "benchmark", "body", "0", "RETRY", "0")
    done = run("redis-benchmark", "-p", str(process.port), *login, *options, "-n", "1000", "-c", "10", "-q", *command)
    assert b"requests per second" in done.stdout
    assert b"rror" not in done.stdout + done.stderr
    connection = Connection(process.port)
    if password:
        connection.call("AUTH", password)
    assert connection.call("QLEN", "benchmark").number >= 1000
    connection.call("DEBUG", "FLUSHALL")
    connection.close()


# Node


@pytest.mark.needs("node")
@pytest.mark.parametrize("protocol", ["2", "3"], ids=["RESP2", "RESP3"])
@pytest.mark.parametrize("client", ["ioredis", "node-redis"])
def test_node(guarded: tuple[ServerProcess, str], client: str, protocol: str) -> None:
    process, password = guarded
    login = (password,) if password else ()
    done = run("node", "life-cycle.mjs", client, protocol, str(process.port), *login, cwd=NODE_DIRECTORY)
    assert done.returncode == 0, done.stderr.decode()
    said = json.loads(done.stdout)
    assert said["jobs"] == [["node", said["id"], "body"]]
    assert (said["waiting"], said["acked"], said["nothing"], said["unknown"]) == (1, 1, None, None)
    assert "TTL must be a number > 0" in said["refused"]
