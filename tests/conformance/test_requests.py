"""How requests are cut out of the stream: arrays, inline lines, limits, and the errors that close the connection."""

from __future__ import annotations

import pytest

from .server_process import ServerProcess
from .socket_session import Connection, SocketSession

ERROR = b"-ERR Protocol error: "
PONG = b"+PONG\r\n"


def answer(session: SocketSession, sent: bytes, length: int) -> bytes:
    """The first bytes that are answered."""
    connection = session.connection("A").socket
    connection.sendall(sent)
    received = b""
    while len(received) < length:
        data = connection.recv(length - len(received))
        if not data:
            break
        received += data
    return received


ANSWERS = {
    "an array": (b"*1\r\n$4\r\nPING\r\n", PONG),
    "two at once": (b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n", PONG + PONG),
    "an inline line": (b"PING\r\n", PONG),
    "inline after an array": (b"*1\r\n$4\r\nPING\r\nPING\r\n", PONG + PONG),
    "an empty array is no request": (b"*0\r\nPING\r\n", PONG),
    "a null array is no request": (b"*-1\r\nPING\r\n", PONG),
    "a blank line is no request": (b"\r\n  \r\nPING\r\n", PONG),
    "inline words": (b"  PING \t hi  \r\n", b"$2\r\nhi\r\n"),
    "double quotes": (b'PING "a\\r\\n\\t\\x41\\"\\q b"\r\n', b'$9\r\na\r\n\tA"q b\r\n'),
    "single quotes": (b"PING 'a\\' \\n\"'\r\n", b"$6\r\na' \\n\"\r\n"),
    "a blank before * makes it an inline word": (b" *1\r\n", b"-ERR unknown command '*1'\r\n"),
    "arguments of no bytes": (b"*2\r\n$4\r\nPING\r\n$0\r\n\r\n", b"$0\r\n\r\n"),
    "bytes of all kinds": (b"*2\r\n$4\r\nPING\r\n$6\r\n\x00\r\n*$-\r\n", b"$6\r\n\x00\r\n*$-\r\n"),
    "an inline line of 60,000 bytes": (b"PING " + b"x" * 60_000 + b"\r\n", b"$60000\r\n" + b"x" * 60_000 + b"\r\n"),
}

CLOSES = {
    "not a count": (b"*x\r\n", b"invalid multibulk length"),
    "a count with a plus": (b"*+1\r\n", b"invalid multibulk length"),
    "a count with a zero before": (b"*01\r\n", b"invalid multibulk length"),
    "a count too large": (b"*1048577\r\n", b"invalid multibulk length"),
    "a count beyond 64 bits": (b"*99999999999999999999\r\n", b"invalid multibulk length"),
    "no bulk string": (b"*1\r\n:4\r\n", b"expected '$', got ':'"),
    "a CR where a bulk string begins": (b"*1\r\n\r\n", b"expected '$', got ' '"),
    "not a length": (b"*1\r\n$x\r\n", b"invalid bulk length"),
    "a negative length": (b"*1\r\n$-1\r\n", b"invalid bulk length"),
    "a length too large": (b"*1\r\n$536870913\r\n", b"invalid bulk length"),
    "open double quotes": (b'PING "a\r\n', b"unbalanced quotes in request"),
    "open single quotes": (b"PING 'a\r\n", b"unbalanced quotes in request"),
    "something behind closing quotes": (b'PING "a"b\r\n', b"unbalanced quotes in request"),
    "a count without an end": (b"*" + b"1" * 65_600, b"too big mbulk count string"),
    "a length without an end": (b"*1\r\n$" + b"1" * 65_600, b"too big bulk count string"),
    "a line without an end": (b"P" * 65_537, b"too big inline request"),
}


@pytest.mark.parametrize(("sent", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_answered(session: SocketSession, sent: bytes, expected: bytes) -> None:
    assert answer(session, sent, len(expected)) == expected


@pytest.mark.parametrize(("sent", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_answered_when_it_comes_in_pieces(session: SocketSession, sent: bytes, expected: bytes) -> None:
    connection = session.connection("A").socket
    for start in range(len(sent[:200])):
        connection.sendall(sent[start : start + 1])
    assert answer(session, sent[200:], len(expected)) == expected


@pytest.mark.parametrize(("sent", "text"), CLOSES.values(), ids=CLOSES)
def test_closes(session: SocketSession, sent: bytes, text: bytes) -> None:
    assert answer(session, sent, 1 << 20) == ERROR + text + b"\r\n"


def test_what_follows_an_error_is_not_executed(session: SocketSession) -> None:
    expected = PONG + ERROR + b"invalid multibulk length\r\n"
    assert answer(session, b"PING\r\n*x\r\nADDJOB q x 0\r\n", 1 << 20) == expected
    assert session.connection("B").call("QLEN", "q").number == 0


def test_a_pipeline_is_answered_in_order(session: SocketSession) -> None:
    sent = b"".join(b"PING %d\r\n" % number for number in range(5000))
    expected = b"".join(b"$%d\r\n%d\r\n" % (len(str(number)), number) for number in range(5000))
    assert answer(session, sent, len(expected)) == expected


def test_a_large_body_comes_back(session: SocketSession) -> None:
    body = bytes(range(256)) * (32 << 10)
    connection = session.connection("A")
    job = connection.call("ADDJOB", "q", body, "0")
    assert job.kind == "+"
    assert connection.call("GETJOB", "FROM", "q").items[0].items[2].data == body


INLINE = {
    "a bare LF ends a line": (b"PING\nPING\n", PONG + PONG),
    "empty quotes are an argument": (b'PING ""\r\n', b"$0\r\n\r\n"),
    "NUL is a byte like others": (b"PING a\x00b\r\n", b"$3\r\na\x00b\r\n"),
}


@pytest.mark.differs("inline-requests")
@pytest.mark.parametrize(("sent", "expected"), INLINE.values(), ids=INLINE)
def test_inline(session: SocketSession, sent: bytes, expected: bytes) -> None:
    assert answer(session, sent, len(expected)) == expected


NUMBERS = ("", "+1", "01", "1\x00", " 1", "1 ", "0x1", "1e3", "-0", "9223372036854775808")


@pytest.mark.differs("strict-numbers")
@pytest.mark.parametrize("text", NUMBERS)
def test_strict_numbers(session: SocketSession, text: str) -> None:
    connection = session.connection("A")
    assert str(connection.call("ADDJOB", "q", "x", text)) == "-ERR timeout is not an integer or out of range"
    assert str(connection.call("ADDJOB", "q", "x", "0", "MAXLEN", text)) == "-ERR MAXLEN must be a positive number"
    assert str(connection.call("GETJOB", "COUNT", text, "FROM", "q")) == "-ERR COUNT must be a number greater than zero"
    assert str(connection.call("QPEEK", "q", text)) == "-ERR value is not an integer or out of range"


@pytest.mark.differs("long-timeouts")
def test_the_longest_timeout_is_no_timeout(session: SocketSession) -> None:
    consumer = session.connection("A")
    consumer.send(b"GETJOB TIMEOUT 9223372036854775807 FROM q\r\n")
    session.wait_blocked(1)
    session.connection("B").call("ADDJOB", "q", "x", "0")
    assert consumer.receive().items[0].items[2].data == b"x"


def test_a_client_too_many_is_told(server: ServerProcess, session: SocketSession) -> None:
    observer = session.connection("observer")
    before = observer.call("CONFIG", "GET", "maxclients").items[1].data
    assert str(observer.call("CONFIG", "SET", "maxclients", "1")) == "+OK"
    try:
        refused = Connection(server.port)
        assert str(refused.receive()) == "-ERR max number of clients reached"
        refused.receive_close()
        refused.close()
        assert b"\r\nrejected_connections:1\r\n" in observer.call("INFO", "stats").data
    finally:
        observer.call(b"CONFIG", b"SET", b"maxclients", before)


def test_a_half_closed_connection_is_closed(session: SocketSession) -> None:
    consumer = session.connection("A")
    consumer.send(b"GETJOB FROM q\r\n")
    session.wait_blocked(1)
    consumer.socket.shutdown(1)
    session.wait_blocked(0)
    consumer.receive_close()
