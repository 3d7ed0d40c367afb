"""PING, ECHO, AUTH, HELLO, RESET, QUIT, SELECT, TIME."""

from __future__ import annotations

import pytest

from disqueue import __version__
from tests.commands.desk import NODE_ID, Desk


def test_ping_and_echo(desk: Desk) -> None:
    assert desk.call("PING", b"\x00\r\n") == b"$3\r\n\x00\r\n\r\n"
    assert desk.call("PING", "a", "b") == b"-ERR wrong number of arguments for 'ping' command\r\n"
    assert desk.call("ECHO", "hi") == b"$2\r\nhi\r\n"


def test_auth(desk: Desk) -> None:
    assert desk.call("AUTH", "x") == b"-ERR Client sent AUTH, but no password is set\r\n"
    desk.call("CONFIG", "SET", "requirepass", "pw")
    assert desk.call("AUTH", "PW") == b"-ERR invalid password\r\n"
    assert desk.call("AUTH", "pw") == b"+OK\r\n"
    assert desk.call("AUTH", "wrong") == b"-ERR invalid password\r\n"
    assert desk.call("PING") == b"+PONG\r\n"
    assert desk.call("AUTH", "x" * 600) == b"-ERR invalid password\r\n"
    assert desk.call("AUTH", b"\xff") == b"-ERR invalid password\r\n"
    desk.call("CONFIG", "SET", "requirepass", b"\xff\x00")
    assert desk.call("AUTH", b"\xff\x00") == b"+OK\r\n"


def test_hello_alone_gives_the_nodes(desk: Desk) -> None:
    reply = desk.call("HELLO")
    assert reply.startswith(b"*3\r\n:1\r\n$40\r\n" + NODE_ID + b"\r\n*4\r\n$40\r\n" + NODE_ID + b"\r\n$0\r\n\r\n")
    assert reply.endswith(b"$1\r\n1\r\n")


def test_hello_chooses_the_protocol(desk: Desk) -> None:
    def fields(protocol: bytes) -> bytes:
        version = __version__.encode()
        return (
            b"$6\r\nserver\r\n$8\r\ndisqueue\r\n$7\r\nversion\r\n$%d\r\n%b\r\n$5\r\nproto\r\n:%b\r\n$2\r\nid\r\n:1\r\n"
            b"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
        ) % (len(version), version, protocol)

    assert desk.call("HELLO", 3) == b"%7\r\n" + fields(b"3")
    assert desk.call("CLIENT", "GETNAME") == b"_\r\n"
    assert desk.call("CONFIG", "GET", "port") == b"%1\r\n$4\r\nport\r\n$4\r\n7711\r\n"
    assert desk.call("HELLO").startswith(b"*3\r\n:1\r\n")
    assert desk.call("hello", 2, "setname", "me") == b"*14\r\n" + fields(b"2")
    assert desk.call("CLIENT", "GETNAME") == b"$2\r\nme\r\n"


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (("4",), b"-NOPROTO unsupported protocol version\r\n"),
        (("x",), b"-ERR Protocol version is not an integer or out of range\r\n"),
        (("3", "AUTH", "default", "x"), b"-ERR Client sent AUTH, but no password is set\r\n"),
        (("3", "AUTH", "bob", "x"), b"-WRONGPASS there is only the user 'default'\r\n"),
        (("3", "AUTH", "default"), b"-ERR Syntax error in HELLO option 'AUTH'\r\n"),
        (("3", "SETNAME", "a b"), b"-ERR Client names cannot contain spaces, newlines or special characters.\r\n"),
        (("3", "WHAT"), b"-ERR Syntax error in HELLO option 'WHAT'\r\n"),
    ],
)
def test_hello_refuses(desk: Desk, words: tuple[str, ...], reply: bytes) -> None:
    assert desk.call("HELLO", *words) == reply
    assert desk.call("CLIENT", "GETNAME") == b"$-1\r\n"


def test_hello_logs_in(desk: Desk) -> None:
    desk.call("CONFIG", "SET", "requirepass", "pw")
    assert desk.call("HELLO") == b"-NOAUTH Authentication required.\r\n"
    assert desk.call("HELLO", 3).startswith(b"-NOAUTH HELLO must be called")
    assert desk.call("HELLO", 3, "AUTH", "default", "x") == b"-WRONGPASS invalid password\r\n"
    assert desk.call("HELLO", 3, "SETNAME", "me").startswith(b"-NOAUTH")
    assert desk.call("HELLO", 3, "AUTH", "default", "pw", "SETNAME", "me").startswith(b"%7\r\n")
    assert desk.call("CLIENT", "GETNAME") == b"$2\r\nme\r\n"
    assert desk.call("HELLO").startswith(b"*3\r\n")


def test_reset_brings_the_first_state_back(desk: Desk) -> None:
    desk.call("HELLO", 3, "SETNAME", "me")
    desk.call("MONITOR")
    desk.call("CONFIG", "SET", "requirepass", "pw")
    desk.client.reply.take()
    assert desk.call("RESET").endswith(b'"RESET"\r\n+RESET\r\n')
    assert (desk.client.name, desk.client.monitor, desk.client.reply.protocol) == (b"", False, 2)
    assert desk.call("PING") == b"-NOAUTH Authentication required.\r\n"


def test_quit_closes_after_the_reply(desk: Desk) -> None:
    assert desk.call("QUIT") == b"+OK\r\n"
    assert desk.client.close_after_reply


def test_select_knows_database_0(desk: Desk) -> None:
    assert desk.call("SELECT", 0) == b"+OK\r\n"
    assert desk.call("SELECT", 1) == b"-ERR DB index is out of range: there is only database 0\r\n"
    assert desk.call("SELECT", "x") == b"-ERR value is not an integer or out of range\r\n"


def test_time_is_seconds_and_microseconds(desk: Desk) -> None:
    assert desk.call("TIME") == b"*2\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n"
