"""Replies as they stand on the wire: the type byte is part of the value, so that `+OK` and `$2 OK` differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = "int | bytes | list[Reply] | None"


@dataclass(frozen=True)
class Reply:
    """One reply: `kind` is its type byte (`+ - : $ * % ~ > _ # ,`), `value` None for a null.

    Values: bytes for `+ - $ # ,`, int for `:`, a list of replies for aggregates (a map is flat: key, value, key, …).
    """

    kind: str
    value: Value

    def __str__(self) -> str:
        if self.kind == "_":
            return "_"
        if self.value is None:
            return f"{self.kind}-1"
        if isinstance(self.value, list):
            return f"{self.kind}[{' '.join(map(str, self.value))}]"
        if isinstance(self.value, int):
            return f"{self.kind}{self.value}"
        text = self.value.decode("latin-1")
        if self.kind == "$" and (not text or not text.isprintable() or set(' "[]\\{') & set(text)):
            return '$"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\x{ord(c):02x}" for c in text) + '"'
        return f"{self.kind}{text}"

    @property
    def items(self) -> list[Reply]:
        """The elements of an aggregate."""
        assert isinstance(self.value, list), f"an aggregate was expected, not {self}"
        return self.value

    @property
    def data(self) -> bytes:
        """The bytes of a string reply."""
        assert isinstance(self.value, bytes), f"a string was expected, not {self}"
        return self.value

    @property
    def number(self) -> int:
        """The value of an integer reply."""
        assert isinstance(self.value, int), f"an integer was expected, not {self}"
        return self.value

    def fields(self) -> dict[bytes, Reply]:
        """A flat array or a map of name and value pairs as a dict."""
        items = self.items
        return {items[i].data: items[i + 1] for i in range(0, len(items), 2)}


class ReplyDecoder:
    """Cuts a byte stream into replies; anything that is not RESP raises ValueError."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Add bytes that were received."""
        self.buffer += data

    def next(self) -> Reply | None:
        """The next whole reply, None if more bytes are needed."""
        found = self._decode(0)
        if found is None:
            return None
        reply, end = found
        del self.buffer[:end]
        return reply

    def _line(self, start: int) -> tuple[bytes, int] | None:
        end = self.buffer.find(b"\r\n", start)
        return None if end < 0 else (bytes(self.buffer[start:end]), end + 2)

    def _decode(self, start: int) -> tuple[Reply, int] | None:
        line = self._line(start)
        if line is None:
            return None
        text, position = line
        kind, rest = text[:1].decode("latin-1"), text[1:]
        if kind in ("+", "-", "#", ","):
            return Reply(kind, rest), position
        if kind == ":":
            return Reply(kind, int(rest)), position
        if kind == "_":
            return Reply(kind, None), position
        if kind in ("$", "="):
            return self._decode_bulk(kind, int(rest), position)
        if kind in ("*", "%", "~", ">"):
            return self._decode_aggregate(kind, int(rest), position)
        raise ValueError(f"not a reply: {text!r}")

    def _decode_bulk(self, kind: str, length: int, position: int) -> tuple[Reply, int] | None:
        if length == -1:
            return Reply(kind, None), position
        end = position + length
        if len(self.buffer) < end + 2:
            return None
        if length < 0 or self.buffer[end : end + 2] != b"\r\n":
            raise ValueError("a bulk string without its end")
        return Reply(kind, bytes(self.buffer[position:end])), end + 2

    def _decode_aggregate(self, kind: str, count: int, position: int) -> tuple[Reply, int] | None:
        if count == -1:
            return Reply(kind, None), position
        items: list[Reply] = []
        for _ in range(count * 2 if kind == "%" else count):
            found = self._decode(position)
            if found is None:
                return None
            item, position = found
            items.append(item)
        return Reply(kind, items), position
