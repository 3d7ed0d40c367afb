"""CLIENT."""

from __future__ import annotations

import pytest

from tests.commands.desk import Desk

USAGE = b"-ERR Syntax error, try CLIENT (LIST | KILL ip:port | GETNAME | SETNAME connection-name)\r\n"


def test_list_has_a_line_for_each_client(desk: Desk) -> None:
    other = desk.connect()
    desk.call("GETJOB", "FROM", "q", client=other)
    lines = desk.call("CLIENT", "LIST").split(b"\r\n", 1)[1].rstrip().split(b"\n")
    assert lines[0].startswith(
        b"id=1 addr=127.0.0.1:4001 fd=-1 name= age=0 idle=0 flags=N qbuf=0 qbuf-free=0 obl=0 oll=0 omem=0 events=r cmd=client"
    )
    assert b"id=2 " in lines[1]
    assert b" flags=b " in lines[1]
    assert b" cmd=getjob " in lines[1]
    assert desk.call("CLIENT", "LIST", "ID", 2).count(b"id=2 ") == 1
    assert desk.call("CLIENT", "LIST", "ID", 2).count(b"id=1 ") == 0
    assert desk.call("CLIENT", "LIST", "TYPE", "normal").count(b" fd=") == 2
    assert desk.call("CLIENT", "LIST", "TYPE", "slave") == b"-ERR Unknown client type 'slave'\r\n"
    assert desk.call("CLIENT", "LIST", "ID", "x") == b"-ERR Invalid client ID\r\n"


def test_names(desk: Desk) -> None:
    assert desk.call("CLIENT", "GETNAME") == b"$-1\r\n"
    assert desk.call("CLIENT", "SETNAME", "me") == b"+OK\r\n"
    assert desk.call("CLIENT", "GETNAME") == b"$2\r\nme\r\n"
    for bad in (b"a b", b"a\n", b"\xff", b"x" * 600):
        assert desk.call("CLIENT", "SETNAME", bad).startswith(b"-ERR Client names cannot contain")
    assert desk.call("CLIENT", "SETNAME", "") == b"+OK\r\n"
    assert desk.call("CLIENT", "GETNAME") == b"$-1\r\n"


def test_what_libraries_send(desk: Desk) -> None:
    assert desk.call("CLIENT", "SETINFO", "LIB-NAME", "redis-py") == b"+OK\r\n"
    assert desk.call("CLIENT", "SETINFO", "lib-ver", "8.1") == b"+OK\r\n"
    assert b" lib-name=redis-py lib-ver=8.1\n" in desk.call("CLIENT", "INFO")
    assert desk.call("CLIENT", "SETINFO", "LIB-X", "1").startswith(b"-ERR Unrecognized option 'LIB-X'")
    assert desk.call("CLIENT", "SETINFO", "LIB-NAME", "a b").startswith(b"-ERR lib-name cannot contain")
    assert desk.call("CLIENT", "ID") == b":1\r\n"
    for word in ("NO-EVICT", "NO-TOUCH"):
        assert desk.call("CLIENT", word, "on") == b"+OK\r\n"
        assert desk.call("CLIENT", word, "maybe") == b"-ERR syntax error\r\n"
    assert desk.call("CLIENT", "TRACKING", "on").startswith(b"-ERR CLIENT TRACKING is not supported")
    assert desk.call("CLIENT", "MAINT_NOTIFICATIONS", "ON", "x").startswith(b"-ERR CLIENT MAINT_NOTIFICATIONS is not supported")


@pytest.mark.parametrize("words", [("LIST", "x"), ("GETNAME", "x"), ("SETNAME",), ("NOSUCH",), ("KILL",), ("REPLY",), ("PAUSE",)])
def test_usage(desk: Desk, words: tuple[str, ...]) -> None:
    assert desk.call("CLIENT", *words) == USAGE


def test_kill_by_address(desk: Desk) -> None:
    other = desk.connect()
    assert desk.call("CLIENT", "KILL", "127.0.0.1:1") == b"-ERR No such client\r\n"
    assert desk.call("CLIENT", "KILL", "127.0.0.1:4002") == b"+OK\r\n"
    assert other.close_asap
    assert desk.call("CLIENT", "KILL", "127.0.0.1:4001") == b"+OK\r\n"
    assert desk.client.close_after_reply


def test_kill_by_filter(desk: Desk) -> None:
    others = [desk.connect(), desk.connect()]
    assert desk.call("CLIENT", "KILL", "ID", 3, "ADDR", "127.0.0.1:4002") == b":0\r\n"
    assert desk.call("CLIENT", "KILL", "ID", 3, "ADDR", "127.0.0.1:4003") == b":1\r\n"
    assert [client.close_asap for client in others] == [False, True]
    assert desk.call("CLIENT", "KILL", "TYPE", "normal") == b":2\r\n"
    assert not desk.client.close_after_reply
    assert desk.call("CLIENT", "KILL", "SKIPME", "no") == b":3\r\n"
    assert desk.client.close_after_reply


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (("ID", "x"), b"-ERR value is not an integer or out of range\r\n"),
        (("TYPE", "slave"), b"-ERR Unknown client type 'slave'\r\n"),
        (("SKIPME", "maybe"), b"-ERR syntax error\r\n"),
        (("WHAT", "x"), b"-ERR syntax error\r\n"),
        (("ID", "1", "ADDR"), b"-ERR syntax error\r\n"),
    ],
)
def test_kill_refuses(desk: Desk, words: tuple[str, ...], reply: bytes) -> None:
    assert desk.call("CLIENT", "KILL", *words) == reply


def test_pause(desk: Desk) -> None:
    assert desk.call("CLIENT", "PAUSE", 100) == b"+OK\r\n"
    assert desk.server.paused_until_ms == 5_100
    assert desk.call("CLIENT", "UNPAUSE") == b"+OK\r\n"
    assert desk.server.paused_until_ms == 0
    assert desk.call("CLIENT", "PAUSE", "x") == b"-ERR timeout is not an integer or out of range\r\n"
    assert desk.call("CLIENT", "PAUSE", -1) == b"-ERR timeout is negative\r\n"
    assert desk.call("CLIENT", "PAUSE", 1, "WHAT") == b"-ERR syntax error\r\n"
    desk.call("CLIENT", "PAUSE", 1 << 50)
    assert desk.server.paused_until_ms == 5_000 + 86_400_000


def test_reply_off_silences_until_on(desk: Desk) -> None:
    desk.call("PING")
    assert desk.call("CLIENT", "REPLY", "OFF") == b""
    assert desk.call("PING") == b""
    assert desk.call("nosuch") == b""
    assert desk.call("CLIENT", "REPLY", "SKIP") == b""
    assert desk.call("CLIENT", "REPLY", "ON") == b"+OK\r\n"
    assert desk.call("PING") == b"+PONG\r\n"
    assert desk.call("CLIENT", "REPLY", "WHAT") == b"-ERR syntax error\r\n"


def test_reply_skip_silences_one_command(desk: Desk) -> None:
    assert desk.call("CLIENT", "REPLY", "SKIP") == b""
    assert desk.call("PING", "a") == b""
    assert desk.call("PING", "b") == b"$1\r\nb\r\n"
    assert desk.call("CLIENT", "REPLY", "SKIP") == b""
    assert desk.call("CLIENT", "REPLY", "ON") == b"+OK\r\n"
    assert desk.call("PING") == b"+PONG\r\n"


def test_what_was_written_before_silence_is_kept(desk: Desk) -> None:
    writer = desk.client.reply
    for words in ((b"PING",), (b"CLIENT", b"REPLY", b"OFF"), (b"PING", b"x")):
        desk.broker.execute(desk.client, list(words))
    assert writer.take() == b"+PONG\r\n"


@pytest.mark.parametrize("mode", ["OFF", "SKIP"])
def test_a_silent_getjob_takes_no_job(desk: Desk, mode: str) -> None:
    desk.call("ADDJOB", "q", "x", 0)
    desk.call("CLIENT", "REPLY", mode)
    assert desk.call("GETJOB", "FROM", "q") == b""
    desk.call("CLIENT", "REPLY", "ON")
    assert desk.call("QLEN", "q") == b":1\r\n"
    assert desk.call("GETJOB", "FROM", "q").startswith(b"*1\r\n")


def test_a_protocol_chosen_in_silence_counts_afterwards(desk: Desk) -> None:
    desk.call("CLIENT", "REPLY", "OFF")
    desk.call("HELLO", 3)
    desk.call("CLIENT", "REPLY", "ON")
    assert desk.call("CLIENT", "GETNAME") == b"_\r\n"
