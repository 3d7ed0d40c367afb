"""The life cycle of a job (add, get, acknowledge) in the words of each kind of server.

A protocol makes requests as bytes and finds replies in bytes; sockets and figures are in `bench_load`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

from disqueue.cli.connection import Connection, encode_request

LEASE_S = 300
_GREETING_TIMEOUT_S = 10.0
NUMBER_DIGITS = 16
"""In latency runs a body begins with the job's number."""


class ReplyError(Exception):
    """A server answered with an error, or with what its protocol has no room for."""


class Replies:
    """Finds whole replies of one kind in what arrives.

    `pattern` matches one reply; its group 1, if it has one, is what the reply is kept for. Where all replies are as long as the
    first one, which is usual, only that one is matched: the load generator must not be slower than the server.
    """

    def __init__(self, pattern: re.Pattern[bytes], error_mark: bytes | tuple[bytes, ...]) -> None:
        self._pattern = pattern
        self._error_mark = error_mark
        self._has_group = pattern.groups > 0
        self._rest = b""
        self.count = 0
        self.found: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take bytes; `count` and `found` grow. Raises ReplyError at an error reply."""
        buffered = self._rest + data if self._rest else data
        end = self._alike(buffered)
        for match in self._pattern.finditer(buffered, end):
            if match.start() != end:
                break
            if self._has_group:
                self.found.append(match[1])
            end = match.end()
            self.count += 1
        self._rest = buffered[end:]
        if self._rest and (self._rest.startswith(self._error_mark) and b"\n" in self._rest):
            raise ReplyError(self._rest.partition(b"\r\n")[0].decode("utf-8", "replace"))

    def _alike(self, buffered: bytes) -> int:
        """Take replies that all look like the first one; where the others begin."""
        first = self._pattern.match(buffered)
        if first is None:
            return 0
        size = first.end()
        count = len(buffered) // size
        start, stop = first.span(1) if self._has_group else (0, size)
        end = count * size
        # Lengths stand at the beginning, so that replies of the same kind that end at the same places are alike.
        for place in (0, start - 1, stop, size - 2, size - 1) if self._has_group else (0, size - 2, size - 1):
            if buffered[place:end:size].count(buffered[place]) != count:
                return 0
        if self._has_group:
            self.found += [buffered[place + start : place + stop] for place in range(0, end, size)]
        self.count += count
        return end

    def reset(self) -> None:
        """Begin anew with no replies counted; bytes of an unfinished one are kept."""
        self.count = 0
        self.found = []


class Protocol(ABC):
    """One kind of server. `size`: body bytes; `copies`: nodes that hold a job, 0: the server's default."""

    name: str
    error_mark: bytes | tuple[bytes, ...] = b"-"
    has_info = True
    """Whether INFO tells the server's process."""

    def __init__(self, queue: bytes, size: int, copies: int) -> None:
        self.queue = queue
        self.copies = copies
        self.body = b"x" * size

    def prepare(self, connection: Connection) -> None:  # noqa: B027 - most need nothing
        """Set up what has to exist before the first job."""

    def greet(self, connection: Connection) -> None:  # noqa: B027 - most need nothing
        """Set up one connection."""

    def body_of(self, number: int) -> bytes:
        """A body that tells its job's number."""
        text = b"%0*d" % (NUMBER_DIGITS, number)
        return text + self.body[NUMBER_DIGITS:]

    def replies(self, phase: str) -> Replies:
        """A reader for the replies of `add`, `get` or `ack`."""
        return Replies(self.patterns()[phase], self.error_mark)

    @abstractmethod
    def patterns(self) -> dict[str, re.Pattern[bytes]]:
        """One whole reply of `add`, `get`, `ack` and `delivery` (a get that tells handle and body)."""

    @abstractmethod
    def add(self, count: int) -> bytes:
        """Requests for `count` jobs with the usual body."""

    @abstractmethod
    def add_one(self, body: bytes) -> bytes:
        """The request for a job with this body."""

    @abstractmethod
    def get(self, count: int) -> bytes:
        """Requests for one job each; a server that can waits until there is one."""

    @abstractmethod
    def ack(self, handles: Sequence[bytes]) -> bytes:
        """Requests that end jobs, one each."""


class Disque(Protocol):
    """ADDJOB, GETJOB, ACKJOB (or FASTACK)."""

    name = "disque"

    def __init__(self, queue: bytes, size: int, copies: int, verb: bytes = b"ACKJOB") -> None:
        super().__init__(queue, size, copies)
        self._options = [b"REPLICATE", b"%d" % copies] if copies else []
        self._ack_head = b"*2\r\n$%d\r\n%b\r\n$40\r\n" % (len(verb), verb)

    def patterns(self) -> dict[str, re.Pattern[bytes]]:
        job = rb"\*1\r\n\*3\r\n\$\d+\r\n%b\r\n\$40\r\n(D-.{38})\r\n\$%d\r\n" % (re.escape(self.queue), len(self.body))
        return {
            "add": re.compile(rb"\+D-.{38}\r\n", re.DOTALL),
            "get": re.compile(job + rb".{%d}\r\n" % len(self.body), re.DOTALL),
            "ack": re.compile(rb":\d\r\n"),
            "delivery": re.compile(job + rb"(\d{%d}).*?\r\n" % NUMBER_DIGITS, re.DOTALL),
        }

    def add(self, count: int) -> bytes:
        return self.add_one(self.body) * count

    def add_one(self, body: bytes) -> bytes:
        return encode_request([b"ADDJOB", self.queue, body, b"10000", *self._options, b"RETRY", b"%d" % LEASE_S])

    def get(self, count: int) -> bytes:
        return encode_request([b"GETJOB", b"FROM", self.queue]) * count

    def ack(self, handles: Sequence[bytes]) -> bytes:
        return self._ack_head + (b"\r\n" + self._ack_head).join(handles) + b"\r\n"


class RedisList(Protocol):
    """LPUSH, BRPOPLPUSH (RPOPLPUSH where nobody waits), LREM."""

    name = "redis-list"

    def __init__(self, queue: bytes, size: int, copies: int, waits: bool = False) -> None:
        super().__init__(queue, size, copies)
        self._busy = queue + b":busy"
        self._waits = waits

    def patterns(self) -> dict[str, re.Pattern[bytes]]:
        head = rb"\$%d\r\n" % len(self.body)
        return {
            "add": re.compile(rb":\d+\r\n"),
            "get": re.compile(head + rb"(.{%d})\r\n" % len(self.body), re.DOTALL),
            "ack": re.compile(rb":\d+\r\n"),
            "delivery": re.compile(head + rb"((\d{%d}).*?)\r\n" % NUMBER_DIGITS, re.DOTALL),
        }

    def add(self, count: int) -> bytes:
        return self.add_one(self.body) * count

    def add_one(self, body: bytes) -> bytes:
        return encode_request([b"LPUSH", self.queue, body])

    def get(self, count: int) -> bytes:
        if self._waits:
            return encode_request([b"BRPOPLPUSH", self.queue, self._busy, b"0"]) * count
        return encode_request([b"RPOPLPUSH", self.queue, self._busy]) * count

    def ack(self, handles: Sequence[bytes]) -> bytes:
        return b"".join([encode_request([b"LREM", self._busy, b"-1", body]) for body in handles])


class RedisStream(Protocol):
    """XADD, XREADGROUP, XACK and XDEL."""

    name = "redis-stream"

    def __init__(self, queue: bytes, size: int, copies: int, waits: bool = False) -> None:
        super().__init__(queue, size, copies)
        self._block = [b"BLOCK", b"0"] if waits else []

    def prepare(self, connection: Connection) -> None:
        connection.call(b"XGROUP", b"CREATE", self.queue, b"g", b"$", b"MKSTREAM")

    def patterns(self) -> dict[str, re.Pattern[bytes]]:
        entry = rb"\*1\r\n\*2\r\n\$\d+\r\n%b\r\n\*1\r\n\*2\r\n\$\d+\r\n(\d+-\d+)\r\n" % re.escape(self.queue)
        entry += rb"\*2\r\n\$1\r\nb\r\n\$\d+\r\n"
        return {
            "add": re.compile(rb"\$\d+\r\n\d+-\d+\r\n"),
            "get": re.compile(entry + rb".{%d}\r\n" % len(self.body), re.DOTALL),
            "ack": re.compile(rb":\d+\r\n:\d+\r\n"),
            "delivery": re.compile(entry + rb"(\d{%d}).*?\r\n" % NUMBER_DIGITS, re.DOTALL),
        }

    def add(self, count: int) -> bytes:
        return self.add_one(self.body) * count

    def add_one(self, body: bytes) -> bytes:
        return encode_request([b"XADD", self.queue, b"*", b"b", body])

    def get(self, count: int) -> bytes:
        words = [b"XREADGROUP", b"GROUP", b"g", b"c", b"COUNT", b"1", *self._block, b"STREAMS", self.queue, b">"]
        return encode_request(words) * count

    def ack(self, handles: Sequence[bytes]) -> bytes:
        parts = []
        for handle in handles:
            parts.append(encode_request([b"XACK", self.queue, b"g", handle]) + encode_request([b"XDEL", self.queue, handle]))
        return b"".join(parts)


class Beanstalkd(Protocol):
    """put, reserve, delete. A job is deleted by the connection that reserved it."""

    name = "beanstalkd"
    error_mark = (
        b"OUT_OF_MEMORY",
        b"INTERNAL_ERROR",
        b"BAD_FORMAT",
        b"UNKNOWN_COMMAND",
        b"EXPECTED_CRLF",
        b"JOB_TOO_BIG",
        b"DRAINING",
        b"BURIED",
        b"DEADLINE_SOON",
        b"NOT_FOUND",
    )
    has_info = False

    def greet(self, connection: Connection) -> None:
        connection.send(b"use %b\r\nwatch %b\r\nignore default\r\n" % (self.queue, self.queue))
        expected = b"USING %b\r\nWATCHING 2\r\nWATCHING 1\r\n" % self.queue
        answer = b""
        connection.socket.settimeout(_GREETING_TIMEOUT_S)
        while len(answer) < len(expected):
            data = connection.socket.recv(len(expected) - len(answer))
            if not data:
                raise ReplyError("the server closed a connection that had chosen its tube")
            answer += data
        connection.socket.settimeout(None)
        if answer != expected:
            raise ReplyError(f"no beanstalkd: it answers {answer.decode('utf-8', 'replace')!r} to use and watch")

    def patterns(self) -> dict[str, re.Pattern[bytes]]:
        head = rb"RESERVED (\d+) %d\r\n" % len(self.body)
        return {
            "add": re.compile(rb"INSERTED \d+\r\n"),
            "get": re.compile(head + rb".{%d}\r\n" % len(self.body), re.DOTALL),
            "ack": re.compile(rb"DELETED\r\n"),
            "delivery": re.compile(head + rb"(\d{%d}).*?\r\n" % NUMBER_DIGITS, re.DOTALL),
        }

    def add(self, count: int) -> bytes:
        return self.add_one(self.body) * count

    def add_one(self, body: bytes) -> bytes:
        return b"put 0 0 %d %d\r\n%b\r\n" % (LEASE_S, len(body), body)

    def get(self, count: int) -> bytes:
        return b"reserve\r\n" * count

    def ack(self, handles: Sequence[bytes]) -> bytes:
        return b"".join([b"delete %b\r\n" % handle for handle in handles])


PROTOCOLS: dict[str, type[Protocol]] = {kind.name: kind for kind in (Disque, RedisList, RedisStream, Beanstalkd)}
