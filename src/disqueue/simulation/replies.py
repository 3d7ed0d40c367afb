"""Replies of a server, decoded: what the simulated clients read, and what the checkers see leave a node."""

from __future__ import annotations

from typing import TypeAlias


class ReplyError(Exception):
    """An error reply; the text is the whole line. It is a value here, never raised."""

    @property
    def text(self) -> str:
        return str(self.args[0])

    @property
    def word(self) -> str:
        """The prefix by which clients tell errors apart."""
        return self.text.partition(" ")[0]


Reply: TypeAlias = "int | bytes | list[Reply] | ReplyError | None"
_MORE = object()


class ReplyReader:
    """Cuts a stream of bytes into replies. Raises `ValueError` for what is no RESP: a violation."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._position = 0

    def feed(self, data: bytes) -> list[Reply]:
        """Return the replies that are complete now."""
        self._buffer += data
        replies: list[Reply] = []
        while True:
            self._position = 0
            reply = self._read()
            if reply is _MORE:
                return replies
            del self._buffer[: self._position]
            replies.append(reply)  # type: ignore[arg-type]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left over of an unfinished reply."""
        return not self._buffer

    def _read(self) -> object:
        end = self._buffer.find(b"\r\n", self._position)
        if end < 0:
            return _MORE
        kind, text = self._buffer[self._position], bytes(self._buffer[self._position + 1 : end])
        self._position = end + 2
        if kind in b"+,#":
            return text
        if kind in b"-":
            return ReplyError(text.decode("utf-8", "replace"))
        if kind in b":":
            return int(text)
        if kind in b"_":
            return None
        if kind in b"$=":
            return self._read_bulk(int(text))
        if kind in b"*%~>":
            return self._read_array(int(text) * (2 if kind in b"%" else 1))
        raise ValueError(f"no reply starts with {chr(kind)!r}")

    def _read_bulk(self, length: int) -> object:
        if length < 0:
            return None
        end = self._position + length
        if len(self._buffer) < end + 2:
            return _MORE
        data = bytes(self._buffer[self._position : end])
        if self._buffer[end : end + 2] != b"\r\n":
            raise ValueError("a bulk string without its end")
        self._position = end + 2
        return data

    def _read_array(self, length: int) -> object:
        if length < 0:
            return None
        items = []
        for _ in range(length):
            item = self._read()
            if item is _MORE:
                return _MORE
            items.append(item)
        return items


def encode_request(args: list[bytes]) -> bytes:
    """Return a request as clients send it."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        parts.append(b"$%d\r\n%b\r\n" % (len(arg), arg))
    return b"".join(parts)
