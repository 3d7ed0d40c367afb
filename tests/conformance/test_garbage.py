"""Bytes of all kinds on the port: a reply or a closed connection, bounded memory, and a server that lives."""

from __future__ import annotations

import contextlib
import random
import re
import socket
from collections.abc import Iterator

import pytest

from .server_process import ServerProcess
from .socket_session import Connection, SocketSession, encode

MIB = 1 << 20
GROWTH_BYTES_MAX = 96 * MIB


@pytest.fixture
def bounded(server: ServerProcess, session: SocketSession) -> Iterator[None]:
    """The server's memory may grow by no more than a bound, and it still answers."""
    before = resident_bytes(session.connection("observer"))
    yield
    connection = Connection(server.port)
    assert resident_bytes(connection) - before < GROWTH_BYTES_MAX
    connection.close()


def resident_bytes(connection: Connection) -> int:
    """What the server's process holds, as it says itself."""
    found = re.search(rb"\r\nused_memory_rss:(\d+)", connection.call("INFO", "memory").data)
    assert found
    return int(found[1])


def connect(server: ServerProcess, stack: contextlib.ExitStack) -> socket.socket:
    """One more connection, closed with the stack."""
    return stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 10))


def send(connection: socket.socket, data: bytes) -> None:
    """Send what the server takes; it may close before all is sent."""
    with contextlib.suppress(ConnectionError):
        connection.sendall(data)


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("seed", range(5))
def test_random_bytes(server: ServerProcess, seed: int) -> None:
    dice = random.Random(seed)
    alphabets = (bytes(range(256)), b"*$\r\n0123456789-", b"\r\n *$'\"\\x", b"\x00\r\n")
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            alphabet = dice.choice(alphabets)
            send(connect(server, stack), bytes(dice.choices(alphabet, k=dice.randrange(1, 5000))))


@pytest.mark.usefixtures("bounded")
def test_half_requests_on_many_connections(server: ServerProcess) -> None:
    halves = (
        b"*3\r\n$6\r\nADDJOB\r\n",
        b"*1\r\n$4\r\nPI",
        b"PIN",
        b"*",
        b"*1",
        b"*1\r",
        b"*2\r\n$4\r\nPING\r\n$100\r\nabc",
        b'PING "',
    )
    with contextlib.ExitStack() as stack:
        for number in range(400):
            send(connect(server, stack), halves[number % len(halves)])


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("header", [b"*1000000\r\n", b"*1000000\r\n$1\r\n", b"*3\r\n$6\r\nADDJOB\r\n$1\r\nq\r\n$536870912\r\n"])
def test_large_promises_cost_nothing(server: ServerProcess, header: bytes) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            send(connect(server, stack), header)


@pytest.mark.usefixtures("bounded")
def test_headers_over_and_over(server: ServerProcess) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            send(connect(server, stack), b"*1000000\r\n" * 10_000)


@pytest.mark.usefixtures("bounded")
def test_a_header_without_an_end(server: ServerProcess) -> None:
    with contextlib.ExitStack() as stack:
        for start in (b"*", b"$", b"*1\r\n$", b"", b'"', b"PING "):
            connection = connect(server, stack)
            send(connection, start + b"1" * MIB)


def test_a_hundred_thousand_options(session: SocketSession) -> None:
    client = session.connection("A")
    client.send(encode([b"ADDJOB", b"q", b"x", b"0", *[b"ASYNC"] * 100_000]))
    assert client.receive().kind == "+"
    client.send(encode([b"GETJOB", b"NOHANG", b"FROM", *(b"q%d" % number for number in range(100_000))]))
    assert str(client.receive()) == "*-1"
    client.send(encode([b"ACKJOB", *[b"D-00000000-aaaaaaaaaaaaaaaaaaaaaaaa-05a1"] * 100_000]))
    assert str(client.receive()) == ":0"


@pytest.mark.differs("slow-readers-wait")
@pytest.mark.usefixtures("bounded")
def test_a_client_that_never_reads_is_closed_above_the_limit_of_its_input(session: SocketSession) -> None:
    observer = session.connection("observer")
    before = observer.call("CONFIG", "GET", "client-query-buffer-limit").items[1].data
    assert str(observer.call("CONFIG", "SET", "client-query-buffer-limit", "4mb")) == "+OK"
    client = session.connection("A").socket
    send(client, encode([b"PING", b"x" * 100_000]) * 500)
    received = 0
    with contextlib.suppress(ConnectionError):
        while data := client.recv(MIB):
            received += len(data)
    assert received < 500 * 100_000
    observer.call(b"CONFIG", b"SET", b"client-query-buffer-limit", before)


@pytest.mark.differs("slow-readers-wait")
def test_a_client_that_reads_late_gets_all(session: SocketSession) -> None:
    client = session.connection("A")
    for _ in range(100):
        client.send(encode([b"PING", b"x" * 100_000]))
    for _ in range(100):
        assert client.receive().data == b"x" * 100_000


@pytest.mark.differs("strangers-are-limited")
def test_who_has_not_given_the_password_may_not_send_much(session: SocketSession) -> None:
    observer = session.connection("observer")
    assert str(observer.call("CONFIG", "SET", "requirepass", "secret")) == "+OK"
    try:
        stranger = session.connection("A")
        assert str(stranger.call("ADDJOB", "q", b"x" * 16_000, "0")) == "-NOAUTH Authentication required."
        stranger.send(encode([b"ADDJOB", b"q", b"x" * 20_000, b"0"]))
        assert str(stranger.receive()) == "-ERR Protocol error: invalid bulk length"
        stranger.receive_close()
        member = session.connection("B")
        member.send(encode([b"AUTH", b"secret"]) + encode([b"ADDJOB", b"q", b"x" * 3_000_000, b"0"]))
        assert str(member.receive()) == "+OK"
        assert member.receive().kind == "+"
    finally:
        observer.call("AUTH", "secret")
        observer.call("CONFIG", "SET", "requirepass", "")


def test_a_monitor_that_is_being_closed_is_shown_nothing_more(server: ServerProcess, session: SocketSession) -> None:
    monitor, other = session.connection("A"), session.connection("B")
    monitor.send(b"MONITOR\r\n*x\r\n")
    assert str(monitor.receive()) == "+OK"
    assert str(monitor.receive()) == "-ERR Protocol error: invalid multibulk length"
    for _ in range(100):
        assert str(other.call("PING")) == "+PONG"
    monitor.receive_close()
    assert "can't be served" not in server.output.read_text()
    assert "Traceback" not in server.output.read_text()
