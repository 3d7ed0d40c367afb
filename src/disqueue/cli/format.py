"""Replies as text: for a terminal, raw, as CSV, as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from disqueue.cli.reply import ErrorReply, MapReply, Reply, Status
from disqueue.cli.shapes import is_plain_text, shape_for_json, shape_for_terminal

TERMINAL, RAW, CSV, JSON = "terminal", "raw", "csv", "json"

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\a": "\\a", "\b": "\\b"}


def format_reply(style: str, words: Sequence[bytes], reply: Reply, delimiter: bytes = b"\n") -> bytes:
    """`reply` to the command `words` in a style, with its line end."""
    if style == JSON:
        return json.dumps(to_json(shape_for_json(words, reply)), ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    if style == CSV:
        return to_csv(reply).encode("utf-8", "surrogateescape") + b"\n"
    if style == RAW:
        return to_raw(reply, delimiter) + b"\n"
    if isinstance(reply, bytes) and is_plain_text(words):
        return reply.rstrip() + b"\n"
    return to_terminal(shape_for_terminal(words, reply)).encode("utf-8") + b"\n"


def quote(text: bytes) -> str:
    r"""`text` in double quotes, as it could be typed: what is printable UTF-8 stays, the rest is escaped."""
    quoted = ['"']
    for character in text.decode("utf-8", "surrogateescape"):
        if character in _ESCAPES:
            quoted.append(_ESCAPES[character])
        elif character.isprintable():
            quoted.append(character)
        else:
            quoted += [f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape")]
    return "".join([*quoted, '"'])


def to_terminal(reply: Reply, indent: str = "") -> str:
    """As a person reads it; nested arrays are numbered and indented, the first line carries no indent."""
    match reply:
        case None:
            return "(nil)"
        case ErrorReply():
            return f"(error) {reply.text}"
        case bool():
            return "(true)" if reply else "(false)"
        case int():
            return f"(integer) {reply}"
        case float():
            return f"(double) {reply:g}"
        case Status():
            return reply.decode("utf-8", "backslashreplace")
        case bytes():
            return quote(reply)
        case MapReply():
            named = [(_name(name), value) for name, value in reply.pairs]
            return _lines(named, indent, "(empty map)", left=True)
        case _:
            numbered = [(f"{number})", item) for number, item in enumerate(reply, 1)]
            return _lines(numbered, indent, "(empty array)", left=False)


def _name(name: Reply) -> str:
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else str(name)


def _lines(items: list[tuple[str, Reply]], indent: str, empty: str, *, left: bool) -> str:
    if not items:
        return empty
    width = max(len(label) for label, _ in items)
    deeper = indent + " " * (width + 1)
    labels = (label.ljust(width) if left else label.rjust(width) for label, _ in items)
    return f"\n{indent}".join(f"{label} {to_terminal(item, deeper)}" for label, (_, item) in zip(labels, items, strict=True))


def to_raw(reply: Reply, delimiter: bytes) -> bytes:
    """The values alone, joined by `delimiter`; nil is empty."""
    match reply:
        case None:
            return b""
        case ErrorReply():
            return reply.text.encode()
        case bytes():
            return reply
        case bool():
            return b"true" if reply else b"false"
        case int() | float():
            return str(reply).encode()
        case MapReply():
            return delimiter.join(to_raw(item, delimiter) for pair in reply.pairs for item in pair)
        case _:
            return delimiter.join(to_raw(item, delimiter) for item in reply)


def to_csv(reply: Reply) -> str:
    match reply:
        case None:
            return "NIL"
        case ErrorReply():
            return "ERROR," + _csv_string(reply.text)
        case bytes():
            return _csv_string(reply.decode("utf-8", "surrogateescape"))
        case bool():
            return "true" if reply else "false"
        case int() | float():
            return str(reply)
        case MapReply():
            return ",".join(to_csv(item) for pair in reply.pairs for item in pair)
        case _:
            return ",".join(to_csv(item) for item in reply)


def _csv_string(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def to_json(reply: Reply) -> object:
    """Plain Python values for `json`: bytes that are no UTF-8 become {"base64": …}, errors {"error": …}."""
    match reply:
        case None | bool() | int() | float():
            return reply
        case ErrorReply():
            return {"error": reply.text}
        case bytes():
            return json_text(reply)
        case MapReply():
            return {_name(name): to_json(value) for name, value in reply.pairs}
        case _:
            return [to_json(item) for item in reply]


def json_text(text: bytes) -> object:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(text).decode()}
