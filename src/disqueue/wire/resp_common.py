"""What both twins of the RESP wire share: limits, the fault, and the words of an inline request."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_ARGUMENTS = 1_048_576
MAX_BULK_BYTES = 512 * 1024 * 1024
MAX_LINE_BYTES = 65_536
MAX_QUERY_BUFFER_BYTES = 1024 * 1024 * 1024

# What an argument costs beside its bytes: the object's header and its slot in the list.
ARGUMENT_OVERHEAD_BYTES = 64
# A body above this is received into a buffer of its own.
LARGE_BODY_BYTES = 32 * 1024
# What one read may bring, and the first allocation for a large body.
READ_BYTES = 64 * 1024


class ProtocolError(Exception):
    """A request that cannot be understood; the connection is to be closed after `reply` has been sent."""

    def __init__(self, text: bytes) -> None:
        super().__init__("Protocol error: " + text.decode("latin-1"))
        self.reply = b"ERR Protocol error: " + text


@dataclass(frozen=True, slots=True)
class ParserLimits:
    """How much a client may send before it is cut off.

    `max_query_buffer_bytes` holds for one request with all its arguments, and for the input that waits unparsed.
    """

    max_arguments: int = MAX_ARGUMENTS
    max_bulk_bytes: int = MAX_BULK_BYTES
    max_line_bytes: int = MAX_LINE_BYTES
    max_query_buffer_bytes: int = MAX_QUERY_BUFFER_BYTES


DEFAULT_LIMITS = ParserLimits()

TOO_BIG_INLINE = b"too big inline request"
TOO_BIG_COUNT = b"too big mbulk count string"
TOO_BIG_LENGTH = b"too big bulk count string"
UNBALANCED = b"unbalanced quotes in request"
INVALID_COUNT = b"invalid multibulk length"
INVALID_LENGTH = b"invalid bulk length"
NO_TERMINATOR = b"expected CRLF after bulk payload"


def unexpected_type(byte: int) -> bytes:
    """The text for a request whose argument does not begin with a dollar sign."""
    shown = b" " if byte in b"\r\n" else bytes((byte,))
    return b"expected '$', got '" + shown + b"'"


def query_buffer_exceeded(limit_bytes: int) -> bytes:
    """The text for a client that sent more than it may before a request was complete."""
    return b"request is larger than the query buffer limit of %d bytes" % limit_bytes


# Possessive quantifiers: a line is matched in one pass, whatever it holds.
_PIECE = re.compile(
    rb"""(?P<bare> [^\s"']++ )
       | " (?P<double> (?: [^"\\] | \\. )*+ ) " (?= \s | \Z )
       | ' (?P<single> (?: \\' | [^'] )*+ ) ' (?= \s | \Z )
       | (?P<blank> \s++ )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_NAMED_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


def _unescape(match: re.Match[bytes]) -> bytes:
    digits: bytes | None = match[1]
    if digits is not None:
        return bytes((int(digits, 16),))
    char = match[2]
    return _NAMED_ESCAPES.get(char, char)


def split_inline(line: bytes) -> list[bytes]:
    """The words of an inline request; empty words in quotes are kept. ProtocolError on unbalanced quotes."""
    if b'"' not in line and b"'" not in line:
        return line.split()
    words: list[bytes] = []
    word: bytes | None = None
    position = 0
    while position < len(line):
        match = _PIECE.match(line, position)
        if match is None:
            raise ProtocolError(UNBALANCED)
        position = match.end()
        kind = match.lastgroup
        if kind == "blank":
            if word is not None:
                words.append(word)
                word = None
            continue
        piece: bytes = match[kind or 0]
        if kind == "double":
            piece = _ESCAPE.sub(_unescape, piece)
        elif kind == "single":
            piece = piece.replace(b"\\'", b"'")
        word = piece if word is None else word + piece
    if word is not None:
        words.append(word)
    return words
