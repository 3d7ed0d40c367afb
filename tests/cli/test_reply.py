"""The reply reader: every kind, cut anywhere, and what is no reply."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue.cli.reply import (
    INCOMPLETE,
    MAX_LINE_BYTES,
    ErrorReply,
    Incomplete,
    MapReply,
    Reply,
    ReplyFault,
    ReplyReader,
    Status,
)

_SAMPLES: list[tuple[bytes, Reply]] = [
    (b"+OK\r\n", Status(b"OK")),
    (b"-NOREPL Not enough\r\n", ErrorReply("NOREPL Not enough")),
    (b":-12\r\n", -12),
    (b"$3\r\na\r\n\r\n", b"a\r\n"),
    (b"$0\r\n\r\n", b""),
    (b"$-1\r\n", None),
    (b"*-1\r\n", None),
    (b"*0\r\n", []),
    (b"*2\r\n*1\r\n$1\r\nq\r\n:1\r\n", [[b"q"], 1]),
    (b"_\r\n", None),
    (b"#t\r\n", True),
    (b",1.5\r\n", 1.5),
    (b"(12345678901234567890\r\n", 12345678901234567890),
    (b"!5\r\nERR x\r\n", ErrorReply("ERR x")),
    (b"=7\r\ntxt:abc\r\n", b"abc"),
    (b"~1\r\n:1\r\n", [1]),
    (b"%2\r\n$1\r\na\r\n:1\r\n+b\r\n*0\r\n", MapReply(((b"a", 1), (Status(b"b"), [])))),
]


@pytest.mark.parametrize(("wire", "reply"), _SAMPLES)
def test_every_kind(wire: bytes, reply: Reply) -> None:
    reader = ReplyReader()
    reader.feed(wire)
    read = reader.next_reply()
    assert read == reply
    assert type(read) is type(reply)
    assert reader.next_reply() is INCOMPLETE


@given(st.lists(st.sampled_from(_SAMPLES), max_size=20), st.data())
def test_any_cut_gives_the_same_replies(samples: list[tuple[bytes, Reply]], data: st.DataObject) -> None:
    wire = b"".join(sample for sample, _ in samples)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)))))
    reader, read = ReplyReader(), []
    for begin, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        reader.feed(wire[begin:end])
        while not isinstance(reply := reader.next_reply(), Incomplete):
            read.append(reply)
    assert read == [reply for _, reply in samples]


def test_many_replies_in_small_pieces_leave_no_bytes_behind() -> None:
    reader = ReplyReader()
    for _ in range(3000):
        reader.feed(b"$100\r\n" + b"x" * 50)
        assert reader.next_reply() is INCOMPLETE
        reader.feed(b"x" * 50 + b"\r\n")
        assert reader.next_reply() == b"x" * 100
    assert len(reader._buffer) < 1 << 17


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", "can't start with"),
        (b":12x\r\n", "where a number belongs"),
        (b",x\r\n", "where a number belongs"),
        (b"$999999999999\r\n", "at most"),
        (b"*1\r\n" * 100, "nested deeper"),
        (b"+" + b"x" * (MAX_LINE_BYTES + 1), "no line end"),
    ],
)
def test_what_is_no_reply_is_a_fault(wire: bytes, text: str) -> None:
    reader = ReplyReader()
    reader.feed(wire)
    with pytest.raises(ReplyFault, match=text):
        reader.next_reply()


def test_an_error_keeps_its_prefix() -> None:
    assert ErrorReply("NOREPL a b").prefix == "NOREPL"
    assert ErrorReply("NOREPL a b") != ErrorReply("NOREPL a c")
