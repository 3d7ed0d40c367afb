"""Replies in RESP2 as values: the one kind that a broker inside the process writes."""

from __future__ import annotations

from typing import Any

from disqueue.client.errors import error_from_reply


def decode(data: bytes) -> list[Any]:
    """All replies in `data`, each whole: str-less values as redis-py gives them, errors as `ReplyError`s."""
    replies = []
    at = 0
    while at < len(data):
        value, at = _value(data, at)
        replies.append(value)
    return replies


def _value(data: bytes, at: int) -> tuple[Any, int]:
    end = data.index(b"\r\n", at)
    kind, line, at = data[at : at + 1], data[at + 1 : end], end + 2
    match kind:
        case b"+":
            return line, at
        case b"-":
            return error_from_reply(line.decode("utf-8", "replace")), at
        case b":":
            return int(line), at
        case b"$":
            size = int(line)
            return (None, at) if size < 0 else (data[at : at + size], at + size + 2)
        case b"*":
            if int(line) < 0:
                return None, at
            items = []
            for _ in range(int(line)):
                item, at = _value(data, at)
                items.append(item)
            return items, at
    raise ValueError(f"no reply begins with {kind!r}")
