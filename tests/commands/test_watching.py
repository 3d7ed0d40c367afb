"""MONITOR, SLOWLOG, LATENCY, INFO, COMMAND, DEBUG, SHUTDOWN."""

from __future__ import annotations

import re

import pytest

from disqueue.commands import broker as broker_module
from disqueue.commands.catalogue import COMMANDS
from disqueue.commands.info import human
from disqueue.commands.introspection import syntax_parts
from disqueue.commands.latency import LatencyMonitor, chart
from disqueue.commands.ports import ConnectionFacts
from disqueue.commands.slowlog import shortened
from disqueue.core.client import Client
from tests.commands.desk import Desk


def watched(desk: Desk, watcher: Client) -> list[bytes]:
    return [re.sub(rb"^\+[\d.]+ \[[^]]*\] ", b"", line) for line in watcher.reply.take().split(b"\r\n")[:-1]]


def test_a_monitor_sees_what_others_do(desk: Desk) -> None:
    watcher = desk.connect()
    assert desk.call("MONITOR", client=watcher) == b"+OK\r\n"
    desk.call("PING", b'a"\\\n\r\t\a\b\x00\xff')
    assert watcher.reply.take() == b'+1700000000.123456 [127.0.0.1:4001] "PING" "a\\"\\\\\\n\\r\\t\\a\\b\\x00\\xff"\r\n'
    assert desk.call("MONITOR", client=watcher) == b"+OK\r\n"
    desk.broker.disconnect(watcher)
    desk.call("PING")
    assert watcher.reply.size == 0


def test_a_monitor_sees_no_passwords(desk: Desk) -> None:
    watcher = desk.connect()
    desk.call("MONITOR", client=watcher)
    desk.call("AUTH", "secret")
    desk.call("HELLO", 3, "SETNAME", "me", "AUTH", "default", "secret")
    desk.call("CONFIG", "SET", "timeout", 1, "requirepass", "secret", "cluster-secret", "secret")
    desk.call("AUTH", "secret")
    lines = watched(desk, watcher)
    assert lines == [
        b'"AUTH" "(redacted)"',
        b'"HELLO" "3" "SETNAME" "me" "AUTH" "(redacted)" "(redacted)"',
        b'"CONFIG" "SET" "timeout" "1" "requirepass" "(redacted)" "cluster-secret" "(redacted)"',
        b'"AUTH" "(redacted)"',
    ]


def test_a_long_argument_is_cut_for_monitors(desk: Desk) -> None:
    watcher = desk.connect()
    desk.call("MONITOR", client=watcher)
    desk.call("PING", b"x" * (broker_module.SHOWN_BYTES_MAX + 5))
    assert watched(desk, watcher)[0].endswith(b'x... (5 more bytes)"')


def test_a_monitor_that_does_not_read_is_closed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = desk.connect()
    desk.call("MONITOR", client=watcher)
    monkeypatch.setattr(desk.server, "describe", lambda _: ConnectionFacts(output_bytes=33 << 20), raising=False)
    desk.call("PING")
    assert watcher.close_asap


def test_slow_commands_are_noted(desk: Desk) -> None:
    desk.call("CONFIG", "SET", "slowlog-log-slower-than", 100)
    desk.broker.dispatcher.mark()
    desk.clock.step_us = 99
    desk.call("PING")
    desk.clock.step_us = 100
    desk.call("PING", "a")
    desk.call("AUTH", "secret")
    assert desk.call("SLOWLOG", "LEN") == b":2\r\n"
    assert desk.call("SLOWLOG", "GET", 1) == (
        b"*1\r\n*4\r\n:1\r\n:1700000000\r\n:100\r\n*2\r\n$4\r\nAUTH\r\n$10\r\n(redacted)\r\n"
    )
    assert desk.call("SLOWLOG", "GET").startswith(b"*2\r\n*4\r\n:1\r\n")
    assert desk.call("SLOWLOG", "GET", -1).startswith(b"*2\r\n")
    assert desk.call("SLOWLOG", "GET", 0) == b"*0\r\n"
    assert desk.call("SLOWLOG", "RESET") == b"+OK\r\n"
    assert desk.call("SLOWLOG", "LEN") == b":0\r\n"
    desk.call("PING", "b")
    assert desk.call("SLOWLOG", "GET").startswith(b"*1\r\n*4\r\n:2\r\n")
    desk.call("CONFIG", "SET", "slowlog-log-slower-than", -1)
    desk.call("SLOWLOG", "RESET")
    desk.clock.step_us = 10**9
    desk.call("PING")
    assert desk.call("SLOWLOG", "LEN") == b":0\r\n"


@pytest.mark.parametrize("words", [("GET", "1", "2"), ("LEN", "x"), ("NOSUCH",)])
def test_slowlog_usage(desk: Desk, words: tuple[str, ...]) -> None:
    assert desk.call("SLOWLOG", *words).startswith(b"-ERR Unknown SLOWLOG subcommand or wrong # of args. Try GET, RESET, LEN.")


def test_the_slow_log_is_bounded(desk: Desk) -> None:
    desk.call("CONFIG", "SET", "slowlog-log-slower-than", 0, "slowlog-max-len", 3)
    for _ in range(5):
        desk.call("PING")
    assert desk.call("SLOWLOG", "LEN") == b":3\r\n"
    assert shortened([b"x"] * 40) == [b"x"] * 31 + [b"... (9 more arguments)"]
    assert shortened([b"x"] * 32) == [b"x"] * 32
    assert shortened([b"x" * 130]) == [b"x" * 128 + b"... (2 more bytes)"]


def test_latency(desk: Desk) -> None:
    assert b"is off" in desk.call("LATENCY", "DOCTOR")
    desk.call("CONFIG", "SET", "latency-monitor-threshold", 10)
    assert b"Nothing has taken" in desk.call("LATENCY", "DOCTOR")
    desk.broker.dispatcher.mark()
    desk.clock.step_us = 12_000
    desk.call("PING")
    desk.clock.step_us = 30_000
    desk.call("DEBUG", "ERROR", "x")
    desk.clock.step_us = 0
    assert desk.call("LATENCY", "LATEST") == (
        b"*2\r\n*4\r\n$12\r\nfast-command\r\n:1700000000\r\n:12\r\n:12\r\n*4\r\n$7\r\ncommand\r\n:1700000000\r\n:30\r\n:30\r\n"
    )
    assert desk.call("LATENCY", "HISTORY", "command") == b"*1\r\n*2\r\n:1700000000\r\n:30\r\n"
    assert desk.call("LATENCY", "HISTORY", "nosuch") == b"*0\r\n"
    assert b"command - worst ever 30 ms" in desk.call("LATENCY", "GRAPH", "command")
    assert desk.call("LATENCY", "GRAPH", "x") == b"-ERR No samples available for event 'x'\r\n"
    assert b"fast-command: 1 noted seconds, mean 12 ms" in desk.call("LATENCY", "DOCTOR")
    assert desk.call("LATENCY", "RESET", "command", "x") == b":1\r\n"
    assert desk.call("LATENCY", "RESET") == b":1\r\n"
    assert desk.call("LATENCY", "NOSUCH") == b"-ERR syntax error\r\n"


def test_one_second_keeps_its_worst_sample() -> None:
    monitor = LatencyMonitor()
    monitor.threshold_ms = 5
    for second, elapsed in ((1, 7), (1, 9), (1, 6), (2, 4), (3, 5)):
        monitor.note("x", second, elapsed)
    assert list(monitor.events["x"].samples) == [(1, 9), (3, 5)]
    for second in range(300):
        monitor.note("x", 10 + second, 5)
    assert len(monitor.events["x"].samples) == 160
    assert monitor.events["x"].worst_ms == 9
    assert chart(monitor.events["x"], 400).count("\n") > 4


def test_info_sections(desk: Desk) -> None:
    assert desk.call("INFO", "a", "b") == b"-ERR syntax error\r\n"
    assert desk.call("INFO", "nosuch") == b"$0\r\n\r\n"
    assert desk.call("INFO", "JOBS").split(b"\r\n")[1:3] == [b"# Jobs", b"registered_jobs:0"]
    default = desk.call("INFO")
    assert re.findall(rb"# (\w+)", default) == [
        b"Server", b"Clients", b"Memory", b"Jobs", b"Queues", b"Persistence", b"Stats", b"CPU",
    ]  # fmt: skip
    assert b"# Commandstats" in desk.call("INFO", "all")


def test_info_counts_jobs_by_state(desk: Desk) -> None:
    for words in (("q", "x", 0), ("q", "y", 0), ("q", "z", 0, "DELAY", 5)):
        desk.call("ADDJOB", *words)
    desk.call("GETJOB", "FROM", "q")
    fields = dict(line.split(b":", 1) for line in desk.call("INFO", "jobs").split(b"\r\n") if b":" in line)
    assert (fields[b"registered_jobs"], fields[b"queued_jobs"], fields[b"active_jobs"], fields[b"delayed_jobs"]) == (
        b"3", b"1", b"1", b"1",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0B"), (1023, "1023B"), (1024, "1.00K"), (1 << 20, "1.00M"), (3 << 29, "1.50G"), (1 << 61, "2048.00P")]
)
def test_human_sizes(size: int, text: str) -> None:
    assert human(size) == text


def test_command(desk: Desk) -> None:
    count = len(COMMANDS)
    assert desk.call("COMMAND", "COUNT") == b":%d\r\n" % count
    assert desk.call("COMMAND").startswith(b"*%d\r\n*6\r\n" % count)
    assert desk.call("COMMAND", "LIST").startswith(b"*%d\r\n$" % count)
    assert desk.call("COMMAND", "INFO", "PING", "get") == (
        b"*2\r\n*6\r\n$4\r\nping\r\n:-1\r\n*2\r\n+readonly\r\n+fast\r\n:0\r\n:0\r\n:0\r\n$-1\r\n"
    )
    assert desk.call("COMMAND", "DOCS", "time", "nosuch").startswith(b"*2\r\n$4\r\ntime\r\n*4\r\n$7\r\nsummary\r\n")
    desk.call("HELLO", 3)
    assert desk.call("COMMAND", "DOCS", "qlen").startswith(b"%1\r\n$4\r\nqlen\r\n%3\r\n$7\r\nsummary\r\n")
    assert desk.call("COMMAND", "NOSUCH") == b"-ERR Unknown subcommand or wrong number of arguments.\r\n"
    assert desk.call("COMMAND", "COUNT", "x") == b"-ERR Unknown subcommand or wrong number of arguments.\r\n"


@pytest.mark.parametrize(
    ("syntax", "parts"),
    [
        ("", []),
        ("queue count", [("queue", False), ("count", False)]),
        ("queue [TTL seconds] [ASYNC]", [("queue", False), ("TTL seconds", True), ("ASYNC", True)]),
        ("[a [b c]]", [("a [b c]", True)]),
        ("LIST | KILL id", [("LIST | KILL id", False)]),
    ],
)
def test_syntax_is_cut_into_arguments(syntax: str, parts: list[tuple[str, bool]]) -> None:
    assert syntax_parts(syntax) == parts


def test_debug(desk: Desk) -> None:
    desk.call("ADDJOB", "q", "x", 0)
    waiting = desk.connect()
    desk.call("GETJOB", "FROM", "other", client=waiting)
    assert desk.call("DEBUG", "FLUSHALL") == b"+OK\r\n"
    assert waiting.reply.take() == b"*-1\r\n"
    assert desk.call("QLEN", "q") == b":0\r\n"
    assert desk.call("DEBUG", "SLEEP", "0.5") == b"+OK\r\n"
    for bad in ("x", "-1", "1e9", "nan"):
        assert desk.call("DEBUG", "SLEEP", bad) == b"-ERR DEBUG SLEEP takes from 0 to 300 seconds\r\n"
    assert desk.call("DEBUG", "ERROR", b"X a\r\nb") == b"-X a  b\r\n"
    assert b"job:" in desk.call("DEBUG", "STRUCTSIZE")
    assert desk.call("DEBUG", "RESTART", 5) == b"+OK\r\n"
    assert desk.call("DEBUG", "RESTART", -5).startswith(b"-ERR DEBUG RESTART takes")
    assert desk.server.asked == [("sleep", 0.5), ("restart", 5)]
    assert desk.call("DEBUG", "LOADAOF").startswith(b"-ERR there is no journal")
    assert desk.call("DEBUG", "x\ry") == b"-ERR Unknown DEBUG subcommand or wrong number of arguments for 'x y'\r\n"
    desk.server.refusal = "why"
    assert desk.call("DEBUG", "RESTART") == b"-ERR failed to restart the server. Check server logs.\r\n"


def test_shutdown(desk: Desk) -> None:
    assert desk.call("SHUTDOWN") == b""
    assert desk.call("SHUTDOWN", "rewrite-aof") == b""
    assert desk.server.asked == [("shutdown", False), ("shutdown", True)]
    assert desk.call("SHUTDOWN", "NOSAVE") == b"-ERR syntax error\r\n"
    desk.server.refusal = "why"
    assert desk.call("SHUTDOWN") == b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n"
    assert desk.logged[-1][1] == "shutdown refused"


def test_journal_commands_without_a_journal(desk: Desk) -> None:
    assert desk.call("BGREWRITEAOF") == b"+Background append only file rewriting started\r\n"
    assert desk.call("LOADJOB", "x") == b"-ERR LOADJOB is a special command only processed from AOF\r\n"
