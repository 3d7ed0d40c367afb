"""CONFIG, and what follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from disqueue.config.directives import DIRECTIVES
from tests.commands.desk import Desk


def test_get(desk: Desk) -> None:
    assert desk.call("CONFIG", "GET", "PORT") == b"*2\r\n$4\r\nport\r\n$4\r\n7711\r\n"
    assert desk.call("CONFIG", "GET", "nosuch") == b"*0\r\n"
    assert desk.call("CONFIG", "GET", "*").startswith(b"*%d\r\n" % (2 * len(DIRECTIVES)))
    assert desk.call("CONFIG", "GET", "save") == b"*2\r\n$4\r\nsave\r\n$0\r\n\r\n"


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (("GET",), b"-ERR Wrong number of arguments for CONFIG GET\r\n"),
        (("get", "a", "b"), b"-ERR Wrong number of arguments for CONFIG get\r\n"),
        (("SET", "port"), b"-ERR Wrong number of arguments for CONFIG SET\r\n"),
        (("SET", "timeout", "1", "hz"), b"-ERR Wrong number of arguments for CONFIG SET\r\n"),
        (("REWRITE", "x"), b"-ERR Wrong number of arguments for CONFIG REWRITE\r\n"),
        (("NOSUCH",), b"-ERR CONFIG subcommand must be one of GET, SET, RESETSTAT, REWRITE\r\n"),
        (("REWRITE",), b"-ERR The server is running without a config file\r\n"),
        (("SET", "nosuch", "1"), b"-ERR Unsupported CONFIG parameter: nosuch\r\n"),
        (("SET", "timeout", "x"), b"-ERR Invalid argument 'x' for CONFIG SET 'timeout': allowed is a whole number"),
        (("SET", "dir", "/nosuch"), b"-ERR Changing directory: No such file or directory\r\n"),
    ],
)
def test_refusals(desk: Desk, words: tuple[str, ...], reply: bytes) -> None:
    assert desk.call("CONFIG", *words).startswith(reply)


def test_set_takes_several_pairs_all_or_none(desk: Desk) -> None:
    assert desk.call("CONFIG", "SET", "timeout", 5, "maxmemory-policy", "noeviction") == b"+OK\r\n"
    assert desk.configuration.number("timeout") == 5
    assert not desk.node.settings.evict_acks
    assert desk.call("CONFIG", "SET", "timeout", 6, "maxmemory", "lots").startswith(b"-ERR Invalid")
    assert desk.configuration.number("timeout") == 5


def test_the_node_follows(desk: Desk) -> None:
    settings = desk.node.settings
    for name, value in (
        ("max-job-size", 1000),
        ("max-queue-name-bytes", 50),
        ("cluster-node-timeout", 3000),
        ("queue-idle-seconds", 7),
        ("maxmemory", 12345),
    ):
        assert desk.call("CONFIG", "SET", name, value) == b"+OK\r\n"
    assert (settings.max_job_bytes, settings.max_queue_name_bytes, settings.node_timeout_ms) == (1000, 50, 3000)
    assert (settings.queue_idle_ms, settings.maxmemory_bytes) == (7000, 12345)


def test_rewrite(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text("# mine\ntimeout 1\n", encoding="utf-8")
    desk.configuration.path = str(path)
    desk.configuration.values["dir"] = str(tmp_path)
    desk.call("CONFIG", "SET", "timeout", 2)
    assert desk.call("CONFIG", "REWRITE") == b"+OK\r\n"
    assert path.read_text(encoding="utf-8").startswith("# mine\ntimeout 2\n")
