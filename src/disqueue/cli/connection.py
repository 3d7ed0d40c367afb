"""One blocking connection to a server, for the command line."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from disqueue.cli.reply import ErrorReply, Incomplete, Reply, ReplyFault, ReplyReader

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7711
CONNECT_TIMEOUT_S = 5.0
GREETING_TIMEOUT_S = 10.0  # AUTH and HELLO are answered at once; a server that is silent for this long hangs
_RECEIVE_BYTES = 1 << 16


class ConnectionFailed(Exception):
    """No connection, or it was lost; the text says what to do."""


class AddressError(ValueError):
    """An address that can't be understood; the text says what is right."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect to, and as whom."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    socket_path: str = ""
    password: str = ""

    @property
    def label(self) -> str:
        if self.socket_path:
            return self.socket_path
        return join_address(self.host, self.port)


def join_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(text: str) -> tuple[str, int]:
    """`HOST:PORT`, `HOST`, `:PORT`, `[v6]:PORT` as host and port. Raises AddressError."""
    host, port_text = text, ""
    if text.startswith("["):
        host, closing, rest = text[1:].partition("]")
        if not closing or (rest and not rest.startswith(":")):
            raise AddressError(f"'{text}' is no address: write [::1]:{DEFAULT_PORT} for IPv6")
        port_text = rest[1:]
    elif text.count(":") == 1:
        host, _, port_text = text.partition(":")
    return host or DEFAULT_HOST, parse_port(port_text) if port_text else DEFAULT_PORT


def parse_port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise AddressError(f"'{text}' is no port: a number from 1 to 65535 is needed")
    return int(text)


def parse_url(url: str) -> Target:
    """`disque://[:password@]host[:port]` or `unix://[:password@]/path`. Of several hosts the first is taken."""
    parts = urlsplit(url)
    if parts.scheme not in ("disque", "disqueue", "redis", "unix"):
        raise AddressError(f"'{url}' is no address: write disque://[:password@]host:port or unix:///path/to/socket")
    userinfo, _, hosts = parts.netloc.rpartition("@")
    password = unquote(userinfo.partition(":")[2] or userinfo)
    if parts.scheme == "unix":
        return Target(socket_path=unquote(hosts + parts.path), password=password)
    host, port = parse_address(hosts.split(",")[0])
    return Target(host, port, password=password)


def default_target(environment: Mapping[str, str] = os.environ) -> Target:
    """The target that DISQUEUE_URL and DISQUEUE_AUTH name, else the local default."""
    target = parse_url(environment["DISQUEUE_URL"]) if environment.get("DISQUEUE_URL") else Target()
    if environment.get("DISQUEUE_AUTH"):
        target = replace(target, password=environment["DISQUEUE_AUTH"])
    return target


def encode_request(words: list[bytes]) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        parts += (b"$%d\r\n" % len(word), word, b"\r\n")
    return b"".join(parts)


class Connection:
    """Send requests, read replies, in order.

    Raises ConnectionFailed when there is no connection (also when authentication fails) and whenever it is lost.
    """

    def __init__(self, target: Target, *, protocol: int = 2, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        self.target = target
        self._reader = ReplyReader()
        self.socket = _open_socket(target, timeout_s)
        try:
            self._greet(protocol)
        except BaseException:
            self.close()
            raise

    def _greet(self, protocol: int) -> None:
        if self.target.password:
            reply = self.execute([b"AUTH", os.fsencode(self.target.password)], timeout_s=GREETING_TIMEOUT_S)
            if isinstance(reply, ErrorReply) and "no password is set" not in reply.text:
                raise ConnectionFailed(f"{self.target.label} refuses the password: {reply.text}")
        if protocol == 3:
            reply = self.execute([b"HELLO", b"3"], timeout_s=GREETING_TIMEOUT_S)
            if isinstance(reply, ErrorReply):
                raise ConnectionFailed(f"{self.target.label} does not speak RESP3: {reply.text}")

    def close(self) -> None:
        self.socket.close()

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise self._lost(error) from error

    def read(self, timeout_s: float | None = None) -> Reply:
        """The next reply; waits without end when `timeout_s` is None."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            try:
                reply = self._reader.next_reply()
            except ReplyFault as fault:
                raise ConnectionFailed(f"{self.target.label} does not speak the protocol: {fault}") from fault
            if not isinstance(reply, Incomplete):
                return reply
            self._receive(deadline)

    def _receive(self, deadline: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise ConnectionFailed(f"{self.target.label} gave no answer in time")
        try:
            self.socket.settimeout(left)
            data = self.socket.recv(_RECEIVE_BYTES)
        except TimeoutError:
            raise ConnectionFailed(f"{self.target.label} gave no answer in time") from None
        except OSError as error:
            raise self._lost(error) from error
        finally:
            if left is not None and self.socket.fileno() >= 0:
                self.socket.settimeout(None)
        if not data:
            raise self._lost(None)
        self._reader.feed(data)

    def execute(self, words: list[bytes], timeout_s: float | None = None) -> Reply:
        """Send one request and read its reply; an error reply is returned."""
        self.send(encode_request(words))
        return self.read(timeout_s)

    def call(self, *words: bytes | str | int, timeout_s: float | None = None) -> Reply:
        """As `execute`, with words of any simple type; an error reply is raised as ErrorReply."""
        reply = self.execute([_word(word) for word in words], timeout_s)
        if isinstance(reply, ErrorReply):
            raise reply
        return reply

    def is_stale(self) -> bool:
        """Whether the server has closed the connection while nothing was asked."""
        try:
            if not select.select([self.socket], [], [], 0)[0]:
                return False
            return not self.socket.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def _lost(self, error: OSError | None) -> ConnectionFailed:
        cause = f": {_reason(error)}" if error else " by the server"
        return ConnectionFailed(f"the connection to {self.target.label} was closed{cause}")


def _word(word: bytes | str | int) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


def _open_socket(target: Target, timeout_s: float) -> socket.socket:
    try:
        opened = _connect(target, timeout_s)
    except TimeoutError as error:
        raise ConnectionFailed(f"can't connect to {target.label}: no answer within {timeout_s:g} seconds") from error
    except (OSError, UnicodeError) as error:
        reason = _reason(error) if isinstance(error, OSError) else "the host name is not valid"
        raise ConnectionFailed(f"can't connect to {target.label}: {reason}") from error
    opened.settimeout(None)
    return opened


def _connect(target: Target, timeout_s: float) -> socket.socket:
    if not target.socket_path:
        opened = socket.create_connection((target.host, target.port), timeout_s)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        opened.settimeout(timeout_s)
        opened.connect(target.socket_path)
    except BaseException:
        opened.close()
        raise
    return opened
