"""Clients on real sockets: one connection for each letter of a transcript, replies kept exactly as they came."""

from __future__ import annotations

import contextlib
import socket
import time

from .replies import Reply, ReplyDecoder

REPLY_TIMEOUT_S = 10.0


def encode(request: list[bytes]) -> bytes:
    """A request as an array of bulk strings."""
    return b"*%d\r\n" % len(request) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in request)


class Connection:
    """One client connection."""

    def __init__(self, address: int | str | tuple[str, int]) -> None:
        """`address`: a port of this machine, a host and port, or the path of a Unix socket."""
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(REPLY_TIMEOUT_S)
            self.connect_unix(address)
        else:
            host_and_port = ("127.0.0.1", address) if isinstance(address, int) else address
            self.socket = socket.create_connection(host_and_port, REPLY_TIMEOUT_S)
        self.decoder = ReplyDecoder()

    def connect_unix(self, path: str) -> None:
        """Connect, or leave nothing open."""
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> Reply:
        """The next reply; ConnectionError when the server has closed."""
        while (reply := self.decoder.next()) is None:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError(f"the server closed the connection; received so far: {bytes(self.decoder.buffer)!r}")
            self.decoder.feed(data)
        return reply

    def receive_close(self) -> None:
        """Wait until the server closes, with nothing more sent."""
        with contextlib.suppress(ConnectionResetError):
            data = self.socket.recv(65536)
            more = bytes(self.decoder.buffer) + data
            assert not more, f"a closed connection was wanted, got {more!r}"

    def call(self, *request: str | bytes) -> Reply:
        """Send one request and return its reply."""
        self.send(encode([word if isinstance(word, bytes) else word.encode() for word in request]))
        return self.receive()

    def close(self) -> None:
        self.socket.close()


class SocketSession:
    """The clients of one transcript on a real server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connections: dict[str, Connection] = {}

    def connection(self, client: str) -> Connection:
        """The client's connection, made when it is first used."""
        if client not in self.connections:
            self.connections[client] = Connection(self.port)
        return self.connections[client]

    def send(self, client: str, request: list[bytes]) -> None:
        self.connection(client).send(encode(request))

    def send_raw(self, client: str, data: bytes) -> None:
        self.connection(client).send(data)

    def receive(self, client: str) -> Reply:
        return self.connection(client).receive()

    def receive_close(self, client: str) -> None:
        self.connection(client).receive_close()

    def disconnect(self, client: str) -> None:
        self.connections.pop(client).close()

    def wait_blocked(self, count: int) -> None:
        """Wait until the server says that so many clients are blocked."""
        deadline = time.monotonic() + REPLY_TIMEOUT_S
        wanted = b"blocked_clients:%d\r\n" % count
        while wanted not in self.connection("observer").call("INFO", "clients").data:
            assert time.monotonic() < deadline, f"there were never {count} blocked clients"
            time.sleep(0.001)

    def advance(self, milliseconds: int) -> None:
        raise AssertionError("real time cannot be moved: play this transcript on a broker in this process")

    pass_unnoticed = move_wall_clock = advance

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()
