"""Reading replies, RESP2 and RESP3, without loss: a terminal shows a status unlike a string, and an error with its prefix."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final, TypeAlias

MAX_LINE_BYTES = 1 << 16  # a status, an error or a number; longer means that the other side speaks another protocol
MAX_BULK_BYTES = 512 << 20  # the server's own limit for a body
MAX_DEPTH = 32  # deepest known reply: 4 (JSCAN REPLY all)
_COMPACT_BYTES = 1 << 16  # consumed bytes are cut off the buffer in steps of this size, so that it costs linear time


class Status(bytes):
    """A status reply (`+OK`), to tell it from a string."""


class ErrorReply(Exception):
    """An error reply. `text` holds all of it with its prefix word (`NOREPL …`)."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    @property
    def prefix(self) -> str:
        return self.text.split(" ", 1)[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ErrorReply) and other.text == self.text

    __hash__ = Exception.__hash__


Reply: TypeAlias = "bool | int | float | bytes | ErrorReply | list[Reply] | MapReply | None"


@dataclass(frozen=True, slots=True)
class MapReply:
    """A map reply as its pairs, in order."""

    pairs: tuple[tuple[Reply, Reply], ...]


class ReplyFault(Exception):
    """The bytes are no reply: the other side is no Disqueue server, or lost its way."""


class Incomplete:
    """The type of INCOMPLETE: more bytes are needed."""


INCOMPLETE: Final = Incomplete()

_Parser: TypeAlias = Generator[None, None, Reply]


class ReplyReader:
    """Feed bytes, take replies. Never reads a byte twice, however the bytes are cut."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0
        self._parser: _Parser | None = None

    def feed(self, data: bytes) -> None:
        if self._at > _COMPACT_BYTES:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    def next_reply(self) -> Reply | Incomplete:
        """The next whole reply, or INCOMPLETE. Raises ReplyFault; the reader is of no use after that."""
        if self._parser is None:
            self._parser = self._parse(0)
        try:
            next(self._parser)
        except StopIteration as done:
            self._parser = None
            reply: Reply = done.value
            return reply
        return INCOMPLETE

    def _line(self) -> Generator[None, None, bytes]:
        searched = self._at
        while (end := self._buffer.find(b"\r\n", searched)) < 0:
            if len(self._buffer) - self._at > MAX_LINE_BYTES:
                raise ReplyFault(f"no line end within {MAX_LINE_BYTES} bytes")
            searched_in_line = max(len(self._buffer) - 1 - self._at, 0)
            yield
            searched = self._at + searched_in_line  # feed() may have moved the line
        line = bytes(self._buffer[self._at : end])
        self._at = end + 2
        return line

    def _bulk(self, length: int) -> Generator[None, None, bytes]:
        if length > MAX_BULK_BYTES:
            raise ReplyFault(f"a string of {length} bytes; at most {MAX_BULK_BYTES} are taken")
        while len(self._buffer) - self._at < length + 2:
            yield
        body = bytes(self._buffer[self._at : self._at + length])
        self._at += length + 2
        return body

    def _parse(self, depth: int) -> _Parser:
        line = yield from self._line()
        kind, rest = line[:1], line[1:]
        if depth > MAX_DEPTH:
            raise ReplyFault(f"a reply nested deeper than {MAX_DEPTH}")
        match kind:
            case b"+":
                return Status(rest)
            case b"-":
                return ErrorReply(rest.decode("utf-8", "backslashreplace"))
            case b":" | b"(":
                return _number(rest)
            case b"$" | b"=" | b"!":
                return (yield from self._string(kind, _number(rest)))
            case b"*" | b"~" | b">" | b"%":
                return (yield from self._aggregate(kind, _number(rest), depth))
            case b"_":
                return None
            case b"#":
                return rest == b"t"
            case b",":
                return _float(rest)
        raise ReplyFault(f"a reply can't start with {line[:20]!r}")

    def _string(self, kind: bytes, length: int) -> _Parser:
        if length < 0:
            return None
        body = yield from self._bulk(length)
        if kind == b"!":
            return ErrorReply(body.decode("utf-8", "backslashreplace"))
        return body[4:] if kind == b"=" else body

    def _aggregate(self, kind: bytes, count: int, depth: int) -> _Parser:
        if count < 0:
            return None
        if kind == b"%":
            pairs: list[tuple[Reply, Reply]] = []
            for _ in range(count):
                key = yield from self._parse(depth + 1)
                pairs.append((key, (yield from self._parse(depth + 1))))
            return MapReply(tuple(pairs))
        items: list[Reply] = []
        for _ in range(count):
            items.append((yield from self._parse(depth + 1)))
        return items


def _number(text: bytes) -> int:
    try:
        return int(text)
    except ValueError:
        raise ReplyFault(f"{text[:40]!r} stands where a number belongs") from None


def _float(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        raise ReplyFault(f"{text[:40]!r} stands where a number belongs") from None
