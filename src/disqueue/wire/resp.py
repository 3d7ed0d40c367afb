"""RESP requests and replies in plain Python.

The compiled twin is `resp.pyx`: the import system takes it where it was built. Both must behave alike in all that can
be seen, down to the error texts and the way a stream is cut.
"""

from __future__ import annotations

from collections.abc import Iterable

from disqueue.wire.resp_common import (
    ARGUMENT_OVERHEAD_BYTES,
    DEFAULT_LIMITS,
    INVALID_COUNT,
    INVALID_LENGTH,
    LARGE_BODY_BYTES,
    NO_TERMINATOR,
    READ_BYTES,
    TOO_BIG_COUNT,
    TOO_BIG_INLINE,
    TOO_BIG_LENGTH,
    ParserLimits,
    ProtocolError,
    query_buffer_exceeded,
    split_inline,
    unexpected_type,
)

__all__ = ["ParserLimits", "ProtocolError", "ReplyWriter", "RequestParser", "keep_words"]

_INT64_MIN = -(2**63)
_INT64_MAX = 2**63 - 1
_STAR = 0x2A
_DOLLAR = 0x24
_ZERO = 0x30
# The header of a body of up to 9 digits; longer ones are rare.
_USUAL_HEADER_BYTES = 12


def parse_count(text: bytes) -> int | None:
    """The value of a header's number: no blanks, no plus sign, no leading zeros; None if it is not one."""
    digits = text[1:] if text.startswith(b"-") else text
    # 18 digits are more than any limit and fit in 64 bits.
    if not digits.isdigit() or len(digits) > 18:
        return None
    if digits[:1] == b"0" and text != b"0":
        return None
    return int(text)


def keep_words(_words: Iterable[bytes]) -> None:
    """Give out these very objects for arguments that equal them: the compiled twin does, here it would save nothing."""


class RequestParser:
    """Turns the bytes of one connection into requests, whatever way they are cut.

    `feed` (or `get_buffer` and `buffer_updated`), then `next_request` until it returns None.
    After a ProtocolError all further input is ignored.
    """

    __slots__ = (
        "_arguments",
        "_body",
        "_body_bytes",
        "_body_filled",
        "_broken",
        "_buffer",
        "_landing",
        "_limits",
        "_missing",
        "_position",
        "_request_bytes",
        "_room",
        "_scanned",
    )

    def __init__(self, limits: ParserLimits | None = None) -> None:
        self._limits = limits or DEFAULT_LIMITS
        self._buffer = bytearray()
        self._position = 0  # of the first byte that was not consumed
        self._scanned = 0  # bytes after it that are known to hold no line end
        self._landing: bytearray | None = None
        self._room = 0  # of the buffer that was given out
        self._arguments: list[bytes] = []
        self._missing = 0  # arguments still to come
        self._request_bytes = 0  # what the arguments so far cost
        self._body: bytearray | None = None  # a large argument that is being received
        self._body_bytes = -1  # announced length of the current argument, -1: its header is still to come
        self._body_filled = 0
        self._broken = False

    def set_limits(self, limits: ParserLimits) -> None:
        """Let other limits hold from the next header on."""
        self._limits = limits

    @property
    def buffered_bytes(self) -> int:
        """Bytes held for this connection: unparsed input and the arguments of the unfinished request."""
        return self.held_bytes()

    def held_bytes(self) -> int:
        """As `buffered_bytes`, which compiled code would look up by its name."""
        return len(self._buffer) - self._position + self._request_bytes + self._body_filled

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take what was received. ProtocolError if more waits than the query buffer may hold."""
        if self._broken:
            return
        view = memoryview(data)
        if self._body is not None:
            count = min(len(view), self._body_bytes - self._body_filled)
            self._reserve_body(count)
            self._body[self._body_filled : self._body_filled + count] = view[:count]
            self._body_filled += count
            view = view[count:]
        self._buffer += view
        self._check_unparsed()

    def get_buffer(self, sizehint: int = -1) -> memoryview:
        """Where the next bytes may be received; valid until the next call to the parser."""
        if self._body is not None and self._body_filled < self._body_bytes:
            self._reserve_body(1)
            self._landing = None
            self._room = len(self._body) - self._body_filled
            return memoryview(self._body)[self._body_filled :]
        self._landing = bytearray(READ_BYTES)
        self._room = READ_BYTES
        return memoryview(self._landing)

    def get_window(self, sizehint: int = -1) -> memoryview:
        """As `get_buffer`, for an event loop: it has a length and can be written to. The compiled twin makes no view."""
        return self.get_buffer(sizehint)

    def buffer_updated(self, count: int) -> None:
        """`count` bytes were written to the buffer that `get_buffer` gave."""
        if not 0 <= count <= self._room:
            raise ValueError(f"{count} bytes cannot have been received, there was room for {self._room}")
        landing = self._landing
        self._landing = None
        self._room = 0
        if self._broken:
            return
        if landing is None:
            self._body_filled += count
        else:
            self._buffer += memoryview(landing)[:count]
            self._check_unparsed()

    def next_request(self) -> list[bytes] | None:
        """The next whole request, or None if more bytes are needed. ProtocolError once for a fault."""
        if self._broken:
            return None
        try:
            request = self._parse()
        except ProtocolError:
            self._abandon()
            raise
        if request is None and self._position:
            del self._buffer[: self._position]
            self._position = 0
        return request

    def _parse(self) -> list[bytes] | None:
        while True:
            if self._missing:
                return self._take_request() if self._receive_arguments() else None
            if self._position >= len(self._buffer):
                return None
            if self._buffer[self._position] != _STAR:
                line = self._take_line(TOO_BIG_INLINE)
                if line is None:
                    return None
                words = split_inline(line.removesuffix(b"\r"))
                if words:
                    return words
                continue
            count = self._take_header(TOO_BIG_COUNT, INVALID_COUNT)
            if count is None:
                return None
            if count > self._limits.max_arguments:
                raise ProtocolError(INVALID_COUNT)
            # An empty or a null request asks for nothing and is skipped.
            self._missing = max(count, 0)

    def _receive_arguments(self) -> bool:
        """Take the arguments that are there; True if the request is complete."""
        if self._body_bytes < 0 and self._limits.max_line_bytes >= _USUAL_HEADER_BYTES:
            self._take_usual_arguments()
        while self._missing:
            if self._body_bytes < 0 and not self._begin_argument():
                return False
            argument = self._take_argument()
            if argument is None:
                return False
            self._arguments.append(argument)
            self._missing -= 1
            self._request_bytes += self._body_bytes + ARGUMENT_OVERHEAD_BYTES
            self._body_bytes = -1
        return True

    def _take_usual_arguments(self) -> None:
        """Take the arguments that are whole and in order, quickly; any other is left to the careful way."""
        buffer, position, limits = self._buffer, self._position, self._limits
        room = limits.max_query_buffer_bytes - self._request_bytes
        while self._missing:
            end = buffer.find(b"\r\n", position, position + _USUAL_HEADER_BYTES)
            if end < 0 or buffer[position] != _DOLLAR:
                break
            digits = buffer[position + 1 : end]
            if not digits.isdigit() or (digits[0] == _ZERO and len(digits) > 1):
                break
            length = int(digits)
            stop = end + 2 + length
            if length > limits.max_bulk_bytes or length + ARGUMENT_OVERHEAD_BYTES > room or buffer[stop : stop + 2] != b"\r\n":
                break
            self._arguments.append(bytes(buffer[end + 2 : stop]))
            self._missing -= 1
            room -= length + ARGUMENT_OVERHEAD_BYTES
            position = stop + 2
            self._scanned = 0
        self._position = position
        self._request_bytes = limits.max_query_buffer_bytes - room

    def _begin_argument(self) -> bool:
        if self._position >= len(self._buffer):
            return False
        if self._buffer[self._position] != _DOLLAR:
            raise ProtocolError(unexpected_type(self._buffer[self._position]))
        length = self._take_header(TOO_BIG_LENGTH, INVALID_LENGTH)
        if length is None:
            return False
        if not 0 <= length <= self._limits.max_bulk_bytes:
            raise ProtocolError(INVALID_LENGTH)
        limit = self._limits.max_query_buffer_bytes
        if self._request_bytes + length + ARGUMENT_OVERHEAD_BYTES > limit:
            raise ProtocolError(query_buffer_exceeded(limit))
        self._body_bytes = length
        return True

    def _take_argument(self) -> bytes | None:
        start, length = self._position, self._body_bytes
        if self._body is None:
            available = len(self._buffer) - start
            if available >= length + 2:
                self._position = start + length
                self._take_terminator()
                return bytes(self._buffer[start : start + length])
            if length <= LARGE_BODY_BYTES:
                return None
            self._begin_large_body(min(available, length))
        if self._body is None or self._body_filled < length or len(self._buffer) - self._position < 2:
            return None
        self._take_terminator()
        argument = bytes(self._body)
        self._body = None
        self._body_filled = 0
        return argument

    def _take_terminator(self) -> None:
        # Disque skips these two bytes unseen. No client sends others, and a wrong length is found out here
        # and not in the middle of the next request, which may be a command that somebody else has put into a body.
        if self._buffer[self._position : self._position + 2] != b"\r\n":
            raise ProtocolError(NO_TERMINATOR)
        self._position += 2

    def _begin_large_body(self, available: int) -> None:
        """Move what is there of the body to a buffer that grows as the rest arrives."""
        start = self._position
        self._body = bytearray(min(self._body_bytes, max(READ_BYTES, 2 * available)))
        self._body[:available] = memoryview(self._buffer)[start : start + available]
        self._body_filled = available
        self._position = start + available

    def _reserve_body(self, count: int) -> None:
        """Make room for `count` bytes: twice what is there, never more than was announced."""
        assert self._body is not None
        needed = self._body_filled + count
        if needed > len(self._body):
            # A new buffer and not a resize: a view of the old one may still be held by the event loop.
            grown = bytearray(min(self._body_bytes, max(needed, 2 * len(self._body))))
            grown[: self._body_filled] = memoryview(self._body)[: self._body_filled]
            self._body = grown

    def _take_header(self, too_big: bytes, invalid: bytes) -> int | None:
        line = self._take_line(too_big)
        if line is None:
            return None
        number = parse_count(line[1:-1]) if line.endswith(b"\r") else None
        if number is None:
            raise ProtocolError(invalid)
        return number

    def _take_line(self, too_big: bytes) -> bytes | None:
        """The next line without its line feed. Its length is limited however the stream is cut."""
        start, limit = self._position, self._limits.max_line_bytes
        end = self._buffer.find(b"\n", start + self._scanned, start + limit + 1)
        if end < 0:
            self._scanned = len(self._buffer) - start
            if self._scanned > limit:
                raise ProtocolError(too_big)
            return None
        self._scanned = 0
        self._position = end + 1
        return bytes(self._buffer[start:end])

    def _take_request(self) -> list[bytes]:
        request = self._arguments
        self._arguments = []
        self._request_bytes = 0
        return request

    def _check_unparsed(self) -> None:
        limit = self._limits.max_query_buffer_bytes
        if len(self._buffer) - self._position > limit:
            self._abandon()
            raise ProtocolError(query_buffer_exceeded(limit))

    def _abandon(self) -> None:
        self._broken = True
        self._buffer = bytearray()
        self._arguments = []
        self._body = None
        self._position = self._missing = self._request_bytes = self._body_filled = 0
        self._body_bytes = -1


def _one_line(text: bytes) -> bytes:
    if b"\r" in text or b"\n" in text:
        return text.replace(b"\r", b" ").replace(b"\n", b" ")
    return text


class ReplyWriter:
    """The replies to one client that have not been sent, in RESP2 or RESP3.

    `protocol` (2 or 3) may change between two replies.
    """

    __slots__ = ("_buffer", "protocol")

    def __init__(self, protocol: int = 2) -> None:
        self.protocol = protocol
        self._buffer = bytearray()

    @property
    def size(self) -> int:
        """Bytes that wait to be taken."""
        return len(self._buffer)

    def take(self) -> bytes:
        """All that was written since the last call."""
        taken = bytes(self._buffer)
        self._buffer = bytearray()
        return taken

    def raw(self, data: bytes) -> None:
        """Bytes that are already in the protocol."""
        self._buffer += data

    def status(self, text: bytes) -> None:
        """A simple string; line ends in it become blanks."""
        self._buffer += b"+%b\r\n" % _one_line(text)

    def error(self, text: bytes) -> None:
        """An error, `text` with its prefix word; line ends in it become blanks."""
        self._buffer += b"-%b\r\n" % _one_line(text)

    def integer(self, number: int) -> None:
        """A signed 64-bit integer; OverflowError if it is not one."""
        if not _INT64_MIN <= number <= _INT64_MAX:
            raise OverflowError(f"{number} does not fit in 64 bits")
        self._buffer += b":%d\r\n" % number

    def boolean(self, value: bool) -> None:
        """True or false; in RESP2 the integers 1 and 0."""
        if self.protocol == 3:
            self._buffer += b"#t\r\n" if value else b"#f\r\n"
        else:
            self._buffer += b":1\r\n" if value else b":0\r\n"

    def double(self, value: float) -> None:
        """A floating point number; in RESP2 a bulk string."""
        text = repr(float(value)).encode()
        if self.protocol == 3:
            self._buffer += b",%b\r\n" % text
        else:
            self.bulk(text)

    def bulk(self, data: bytes) -> None:
        """A binary safe string."""
        self._buffer += b"$%d\r\n%b\r\n" % (len(data), data)

    def bulk_array(self, items: list[bytes]) -> None:
        """An array of bulk strings."""
        self.array(len(items))
        for item in items:
            self.bulk(item)

    def null_bulk(self) -> None:
        """No string; in RESP3 the one null."""
        self._buffer += b"_\r\n" if self.protocol == 3 else b"$-1\r\n"

    def null_array(self) -> None:
        """No array; in RESP3 the one null."""
        self._buffer += b"_\r\n" if self.protocol == 3 else b"*-1\r\n"

    def array(self, count: int) -> None:
        """The head of an array; `count` elements must follow."""
        self._buffer += b"*%d\r\n" % count

    def map(self, pairs: int) -> None:
        """The head of a map; `pairs` keys and values must follow. A flat array in RESP2."""
        self._buffer += b"%%%d\r\n" % pairs if self.protocol == 3 else b"*%d\r\n" % (2 * pairs)

    def push(self, count: int) -> None:
        """The head of an out-of-band message of `count` elements; an array in RESP2."""
        self._buffer += b">%d\r\n" % count if self.protocol == 3 else b"*%d\r\n" % count

    def job(self, queue: bytes, job_id: bytes, body: bytes) -> None:
        """A job as GETJOB hands it out."""
        self._buffer += b"*3\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (
            len(queue),
            queue,
            len(job_id),
            job_id,
            len(body),
            body,
        )

    def job_with_counters(self, queue: bytes, job_id: bytes, body: bytes, nacks: int, additional_deliveries: int) -> None:
        """A job as GETJOB WITHCOUNTERS hands it out."""
        self._buffer += b"*7\r\n"
        self.bulk(queue)
        self.bulk(job_id)
        self.bulk(body)
        self._buffer += b"$5\r\nnacks\r\n"
        self.integer(nacks)
        self._buffer += b"$21\r\nadditional-deliveries\r\n"
        self.integer(additional_deliveries)
