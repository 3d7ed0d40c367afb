"""Replies: their bytes in RESP2 and RESP3."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.resp_twins import TWINS, request

JOB = b"*3\r\n$1\r\nq\r\n$3\r\nD-1\r\n$4\r\nbody\r\n"
JOB_WITH_COUNTERS = b"*7\r\n$1\r\nq\r\n$3\r\nD-1\r\n$0\r\n\r\n$5\r\nnacks\r\n:2\r\n$21\r\nadditional-deliveries\r\n:3000\r\n"

# method, arguments, RESP2, RESP3
REPLIES: list[tuple[str, tuple[Any, ...], bytes, bytes]] = [
    ("raw", (b"+OK\r\n",), b"+OK\r\n", b"+OK\r\n"),
    ("status", (b"OK",), b"+OK\r\n", b"+OK\r\n"),
    ("status", (b"",), b"+\r\n", b"+\r\n"),
    ("status", (b"a\r\nb\rc\n",), b"+a  b c \r\n", b"+a  b c \r\n"),
    ("error", (b"ERR no\n:1\r",), b"-ERR no :1 \r\n", b"-ERR no :1 \r\n"),
    ("integer", (0,), b":0\r\n", b":0\r\n"),
    ("integer", (-7,), b":-7\r\n", b":-7\r\n"),
    ("integer", (999,), b":999\r\n", b":999\r\n"),
    ("integer", (1000,), b":1000\r\n", b":1000\r\n"),
    ("integer", (2**63 - 1,), b":9223372036854775807\r\n", b":9223372036854775807\r\n"),
    ("integer", (-(2**63),), b":-9223372036854775808\r\n", b":-9223372036854775808\r\n"),
    ("boolean", (True,), b":1\r\n", b"#t\r\n"),
    ("boolean", (False,), b":0\r\n", b"#f\r\n"),
    ("double", (1.5,), b"$3\r\n1.5\r\n", b",1.5\r\n"),
    ("double", (float("inf"),), b"$3\r\ninf\r\n", b",inf\r\n"),
    ("double", (3,), b"$3\r\n3.0\r\n", b",3.0\r\n"),
    ("bulk", (b"",), b"$0\r\n\r\n", b"$0\r\n\r\n"),
    ("bulk", (b"a\r\n\x00",), b"$4\r\na\r\n\x00\r\n", b"$4\r\na\r\n\x00\r\n"),
    ("bulk_array", ([b"a", b"bc"],), b"*2\r\n$1\r\na\r\n$2\r\nbc\r\n", b"*2\r\n$1\r\na\r\n$2\r\nbc\r\n"),
    ("bulk_array", ([],), b"*0\r\n", b"*0\r\n"),
    ("null_bulk", (), b"$-1\r\n", b"_\r\n"),
    ("null_array", (), b"*-1\r\n", b"_\r\n"),
    ("array", (0,), b"*0\r\n", b"*0\r\n"),
    ("array", (12_345,), b"*12345\r\n", b"*12345\r\n"),
    ("map", (3,), b"*6\r\n", b"%3\r\n"),
    ("push", (2,), b"*2\r\n", b">2\r\n"),
    (
        "job",
        (b"q", b"D-1", b"body"),
        b"*3\r\n$1\r\nq\r\n$3\r\nD-1\r\n$4\r\nbody\r\n",
        b"*3\r\n$1\r\nq\r\n$3\r\nD-1\r\n$4\r\nbody\r\n",
    ),
    (
        "job_with_counters",
        (b"q", b"D-1", b"", 2, 3_000),
        JOB_WITH_COUNTERS,
        JOB_WITH_COUNTERS,
    ),
]


@pytest.fixture(params=sorted(TWINS))
def twin(request: pytest.FixtureRequest) -> ModuleType:
    return TWINS[request.param]


@pytest.mark.parametrize(("method", "arguments", "resp2", "resp3"), REPLIES, ids=[row[0] for row in REPLIES])
def test_every_reply(twin: ModuleType, method: str, arguments: tuple[Any, ...], resp2: bytes, resp3: bytes) -> None:
    for protocol, expected in ((2, resp2), (3, resp3)):
        writer = twin.ReplyWriter(protocol)
        getattr(writer, method)(*arguments)
        assert (writer.size, writer.take(), writer.size, writer.take()) == (len(expected), expected, 0, b"")


def test_replies_stand_in_the_order_they_were_written(twin: ModuleType) -> None:
    writer = twin.ReplyWriter()
    expected = b""
    for _ in range(3):
        for method, arguments, resp2, _ in REPLIES:
            getattr(writer, method)(*arguments)
            expected += resp2
    assert writer.take() == expected


def test_the_protocol_may_change_between_two_replies(twin: ModuleType) -> None:
    writer = twin.ReplyWriter()
    assert writer.protocol == 2
    writer.null_bulk()
    writer.protocol = 3
    writer.null_bulk()
    assert writer.take() == b"$-1\r\n_\r\n"


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_an_integer_beyond_64_bits_is_refused(twin: ModuleType, number: int) -> None:
    writer = twin.ReplyWriter()
    with pytest.raises(OverflowError):
        writer.integer(number)
    assert writer.take() == b""


@pytest.mark.parametrize("method", ["raw", "status", "error", "bulk"])
def test_text_that_is_not_bytes_is_refused(twin: ModuleType, method: str) -> None:
    writer = twin.ReplyWriter()
    for wrong in (None, "text"):
        with pytest.raises(TypeError):
            getattr(writer, method)(wrong)
    assert writer.take() == b""


@pytest.mark.parametrize("size", [100, 4_000, 16_384, 16_385, 1_000_000])
def test_replies_of_any_size(twin: ModuleType, size: int) -> None:
    writer = twin.ReplyWriter()
    for _ in range(3):
        for body in (b"x" * size, b"y", b"z" * (size // 2)):
            writer.bulk(body)
        size_before = writer.size
        replies = writer.take()
        assert len(replies) == size_before
        parser = twin.RequestParser()
        parser.feed(b"*3\r\n" + replies)
        assert parser.next_request() == [b"x" * size, b"y", b"z" * (size // 2)]


@given(st.lists(st.binary(max_size=2000), min_size=1, max_size=20), st.integers(-(2**63), 2**63 - 1))
def test_twins_write_the_same(items: list[bytes], number: int) -> None:
    for twin in TWINS.values():
        writer = twin.ReplyWriter()
        writer.bulk_array(items)
        writer.integer(number)
        assert writer.take() == request(*items) + b":%d\r\n" % number
