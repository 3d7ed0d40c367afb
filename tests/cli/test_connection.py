"""Addresses, and a connection whose other side misbehaves."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from disqueue.cli.connection import (
    AddressError,
    Connection,
    ConnectionFailed,
    Target,
    default_target,
    join_address,
    parse_address,
    parse_url,
)
from disqueue.cli.hints import explain_connection
from disqueue.cli.reply import ErrorReply
from tests.cli.fake_server import Answer, FakeServer, answers

Fake = Callable[[Answer], FakeServer]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("h:1", ("h", 1)),
        ("h", ("h", 7711)),
        (":1", ("127.0.0.1", 1)),
        ("[::1]:5", ("::1", 5)),
        ("[::1]", ("::1", 7711)),
        ("::1", ("::1", 7711)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["h:x", "h:0", "h:65536", "[::1", "[::1]x", "h:²"])
def test_bad_addresses_say_what_is_right(text: str) -> None:
    with pytest.raises(AddressError, match=r"1 to 65535|write \[::1\]"):
        parse_address(text)


def test_urls() -> None:
    assert parse_url("disque://h:1") == Target("h", 1)
    assert parse_url("disque://:p%40ss@h") == Target("h", 7711, password="p@ss")
    assert parse_url("disque://secret@h") == Target("h", 7711, password="secret")
    assert parse_url("disque://h:1,i:2") == Target("h", 1)
    assert parse_url("unix:///run/d.sock") == Target(socket_path="/run/d.sock")
    with pytest.raises(AddressError, match="disque://"):
        parse_url("http://h")


def test_the_environment_names_the_default() -> None:
    assert default_target({}) == Target()
    assert default_target({"DISQUEUE_URL": "disque://a@h:1", "DISQUEUE_AUTH": "b"}) == Target("h", 1, password="b")


def test_labels() -> None:
    assert join_address("::1", 7) == "[::1]:7"
    assert Target(socket_path="/s").label == "/s"


def test_a_closed_port_says_how_to_start_a_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        target = Target("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ConnectionFailed) as failure:
        Connection(target)
    assert f"disqueue server --port {target.port}" in explain_connection(failure.value, target)


def test_a_missing_unix_socket() -> None:
    target = Target(socket_path="/nowhere/x.sock")
    with pytest.raises(ConnectionFailed) as failure:
        Connection(target)
    assert "unixsocket" in explain_connection(failure.value, target)


def test_silence_ends_after_the_timeout(fake: Fake) -> None:
    connection = Connection(Target(port=fake(lambda words: b"").port))
    with pytest.raises(ConnectionFailed, match="no answer in time"):
        connection.call("PING", timeout_s=0.02)
    connection.close()


def test_a_lost_connection_is_told(fake: Fake) -> None:
    connection = Connection(Target(port=fake(lambda words: None).port))
    with pytest.raises(ConnectionFailed, match="was closed"):
        connection.call("PING")
    connection.close()


def test_another_protocol_is_told(fake: Fake) -> None:
    connection = Connection(Target(port=fake(lambda words: b"220 mail.example ESMTP\r\n").port))
    with pytest.raises(ConnectionFailed, match="does not speak the protocol"):
        connection.call("PING")
    connection.close()


def test_a_connection_closed_between_commands_is_noticed(fake: Fake) -> None:
    server = fake(answers())
    connection = Connection(Target(port=server.port))
    connection.call("PING")
    assert not connection.is_stale()
    server.drop_connections()
    connection.socket.recv(1, socket.MSG_PEEK)  # returns when the end has arrived
    assert connection.is_stale()
    connection.close()


def test_password_and_protocol_are_sent_first(fake: Fake) -> None:
    server = fake(answers(AUTH=b"+OK\r\n", HELLO=b"%0\r\n"))
    Connection(Target(port=server.port, password="pässword"), protocol=3).close()
    assert server.requests == [[b"AUTH", "pässword".encode()], [b"HELLO", b"3"]]


def test_a_wrong_password_fails_an_unneeded_one_does_not(fake: Fake) -> None:
    wrong = fake(answers(AUTH=b"-ERR invalid password\r\n"))
    with pytest.raises(ConnectionFailed, match="refuses the password"):
        Connection(Target(port=wrong.port, password="x"))
    unneeded = fake(answers(AUTH=b"-ERR Client sent AUTH, but no password is set\r\n"))
    Connection(Target(port=unneeded.port, password="x")).close()


def test_resp3_on_a_server_without_it(fake: Fake) -> None:
    with pytest.raises(ConnectionFailed, match="RESP3"):
        Connection(Target(port=fake(answers()).port), protocol=3)


def test_call_raises_error_replies(fake: Fake) -> None:
    connection = Connection(Target(port=fake(answers()).port))
    with pytest.raises(ErrorReply, match="unknown command 'NOPE'"):
        connection.call("NOPE", 1, b"x")
    connection.close()
