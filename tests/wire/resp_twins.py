"""Both twins of the RESP wire, and how tests drive them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any, NamedTuple

from disqueue._twins import build_info, load_plain

NAME = "disqueue.wire.resp"
TWINS: dict[str, ModuleType] = {"plain": load_plain([NAME])[NAME]}
if build_info().form == "compiled":
    TWINS["compiled"] = importlib.import_module(NAME)


class Outcome(NamedTuple):
    """What came of a stream: the requests, the reply to a fault, and what is still held."""

    requests: list[list[bytes]]
    fault: bytes | None
    held_bytes: int


def request(*arguments: bytes) -> bytes:
    """The wire form of a request."""
    return b"*%d\r\n" % len(arguments) + b"".join(b"$%d\r\n%b\r\n" % (len(argument), argument) for argument in arguments)


def receive(parser: Any, data: bytes) -> None:
    """Hand `data` over the way an event loop does with a BufferedProtocol."""
    while data:
        buffer = parser.get_buffer(-1)
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        # Held for as long as an event loop does: until `buffer_updated` has returned.
        parser.buffer_updated(count)
        del buffer
        data = data[count:]


def receive_by_window(parser: Any, data: bytes) -> None:
    """The same through `get_window`, which need not be a view."""
    while data:
        window = parser.get_window(-1)
        count = min(len(window), len(data))
        with memoryview(window) as view:
            view[:count] = data[:count]
            parser.buffer_updated(count)
        data = data[count:]


def feed(parser: Any, data: bytes) -> None:
    """Hand `data` over in one piece."""
    parser.feed(data)


def drive(twin: ModuleType, chunks: Iterable[bytes], limits: dict[str, int] | None = None, by: Any = feed) -> Outcome:
    """Parse a stream that arrives in `chunks`."""
    parser = twin.RequestParser(twin.ParserLimits(**(limits or {})))
    requests: list[list[bytes]] = []
    fault: bytes | None = None
    for chunk in chunks:
        try:
            by(parser, chunk)
            while (one := parser.next_request()) is not None:
                requests.append(one)
        except twin.ProtocolError as error:
            assert fault is None, "a fault is reported once"
            fault = error.reply
    return Outcome(requests, fault, parser.buffered_bytes)
