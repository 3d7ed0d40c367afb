"""Requests: what is understood, what is refused and with which words, however the stream is cut."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.resp_twins import TWINS, Outcome, drive, feed, receive, receive_by_window, request

LINE = 65_536

UNDERSTOOD: dict[bytes, list[list[bytes]]] = {
    b"*1\r\n$4\r\nPING\r\n": [[b"PING"]],
    request(b"ADDJOB", b"q", b"\r\n\x00$*", b""): [[b"ADDJOB", b"q", b"\r\n\x00$*", b""]],
    request(b"A") * 3 + b"PING\r\n" + request(b"B"): [[b"A"], [b"A"], [b"A"], [b"PING"], [b"B"]],
    # nothing is asked for
    b"*0\r\n*-1\r\n*-17\r\n\r\n\n  \t \r\n" + request(b"A"): [[b"A"]],
    # inline: a bare line feed ends a line and takes nothing with it
    b"PING\nPING\r\nPING\n": [[b"PING"]] * 3,
    b" *1 x\r\n": [[b"*1", b"x"]],
    b"SET  a\tb \r\n": [[b"SET", b"a", b"b"]],
    b"ADDJOB \"\" '' x\r\n": [[b"ADDJOB", b"", b"", b"x"]],
    b'""\r\n': [[b""]],
    b'a "b c" \'d e\' f"g h"\n': [[b"a", b"b c", b"d e", b"fg h"]],
    b'"\\n\\r\\t\\a\\b\\x41\\xfF\\x4\\q\\"\\\\"\r\n': [[b"\n\r\t\a\bA\xffx4q" + b'"\\']],
    b"'a\\'b\\n\\\\ '\r\n": [[b"a'b\\n\\\\ "]],
    b"a\\nb\r\n": [[b"a\\nb"]],
    # a NUL is a byte like any other
    b"PING\x00 x\x00y\r\n": [[b"PING\x00", b"x\x00y"]],
    b"PI\rNG\r\n": [[b"PI", b"NG"]],
    b"$4\r\n": [[b"$4"]],
}

REFUSED: dict[bytes, bytes] = {
    b'"a\nb"\n': b"unbalanced quotes in request",
    b'GET "a\r\n': b"unbalanced quotes in request",
    b"GET 'a\\'\r\n": b"unbalanced quotes in request",
    b'GET "a"b\r\n': b"unbalanced quotes in request",
    b'GET "a\\"\r\n': b"unbalanced quotes in request",
    b"*abc\r\n": b"invalid multibulk length",
    b"*\r\n": b"invalid multibulk length",
    b"*\n": b"invalid multibulk length",
    b"*1\n": b"invalid multibulk length",
    b"*+1\r\n": b"invalid multibulk length",
    b"*01\r\n": b"invalid multibulk length",
    b"* 1\r\n": b"invalid multibulk length",
    b"*1 \r\n": b"invalid multibulk length",
    b"*-\r\n": b"invalid multibulk length",
    b"*-0\r\n": b"invalid multibulk length",
    b"*-01\r\n": b"invalid multibulk length",
    b"*-1x\r\n": b"invalid multibulk length",
    b"*1\x00\r\n": b"invalid multibulk length",
    b"*1\r1\r\n": b"invalid multibulk length",
    b"*1048577\r\n": b"invalid multibulk length",
    b"*9223372036854775808\r\n": b"invalid multibulk length",
    b"*184467440737095516160000001\r\n": b"invalid multibulk length",
    b"*1\r\nPING\r\n": b"expected '$', got 'P'",
    b"*1\r\n\r\n": b"expected '$', got ' '",
    b"*1\r\n\n": b"expected '$', got ' '",
    b"*1\r\n\xff": b"expected '$', got '\xff'",
    b"*2\r\n$1\r\nx\r\n*": b"expected '$', got '*'",
    b"*1\r\n$-1\r\n": b"invalid bulk length",
    b"*1\r\n$\r\n": b"invalid bulk length",
    b"*1\r\n$x\r\n": b"invalid bulk length",
    b"*1\r\n$007\r\n": b"invalid bulk length",
    b"*1\r\n$536870913\r\n": b"invalid bulk length",
    b"*1\r\n$2147483648\r\n": b"invalid bulk length",
    b"*1\r\n$4294967297\r\n": b"invalid bulk length",
    b"*1\r\n$18446744073709551617\r\n": b"invalid bulk length",
    b"*1\r\n$1\r\nxy\r\n": b"expected CRLF after bulk payload",
    b"*1\r\n$1\r\nx\n\n": b"expected CRLF after bulk payload",
    b"*1\r\n$40000\r\n" + b"x" * 40_001 + b"\r\n": b"expected CRLF after bulk payload",
    b"x" * (LINE + 1): b"too big inline request",
    b"x" * (LINE + 1) + b"\n": b"too big inline request",
    b"*" + b"1" * LINE: b"too big mbulk count string",
    b"*1\r\n$" + b"1" * LINE: b"too big bulk count string",
}

UNFINISHED = (
    b"",
    b"*",
    b"*-",
    b"*3\r",
    b"*2\r\n$1\r\nx\r\n$",
    b"*1\r\n$5\r\nabcde\r",
    b"PIN",
    b"PING\r",
    b'"a b',
    b"x" * LINE,
    b"*" + b"1" * (LINE - 1),
)


@pytest.fixture(params=sorted(TWINS))
def twin(request: pytest.FixtureRequest) -> ModuleType:
    return TWINS[request.param]


def cuts(stream: bytes) -> list[list[bytes]]:
    """Two pieces cut at every byte (near the ends of a long stream), and byte by byte."""
    places = range(len(stream) + 1) if len(stream) < 300 else (*range(40), *range(len(stream) - 40, len(stream) + 1))
    ways = [[stream[:place], stream[place:]] for place in places]
    if len(stream) < 300:
        ways.append([stream[place : place + 1] for place in range(len(stream))])
    return ways


def assert_same_however_cut(twin: ModuleType, stream: bytes, expected: Outcome) -> None:
    for by in (feed, receive, receive_by_window):
        assert drive(twin, [stream], by=by) == expected
        for chunks in cuts(stream):
            assert drive(twin, chunks, by=by) == expected


@pytest.mark.parametrize("stream", UNDERSTOOD, ids=repr)
def test_understood(twin: ModuleType, stream: bytes) -> None:
    assert_same_however_cut(twin, stream, Outcome(UNDERSTOOD[stream], None, 0))


@pytest.mark.parametrize("stream", REFUSED, ids=lambda stream: repr(stream[:40]))
def test_refused(twin: ModuleType, stream: bytes) -> None:
    expected = Outcome([[b"A"]], b"ERR Protocol error: " + REFUSED[stream], 0)
    assert_same_however_cut(twin, request(b"A") + stream, expected)
    assert drive(twin, [request(b"A") + stream, request(b"B")]) == expected, "input after a fault is ignored"


@pytest.mark.parametrize("stream", UNFINISHED, ids=lambda stream: repr(stream[:40]))
def test_unfinished(twin: ModuleType, stream: bytes) -> None:
    outcome = drive(twin, [request(b"A") + stream])
    assert (outcome.requests, outcome.fault) == ([[b"A"]], None)
    assert (outcome.held_bytes > 0) == bool(stream)


@pytest.mark.parametrize("size", [32_767, 32_768, 32_769, 65_536, 200_000, 3_000_000])
@pytest.mark.parametrize("by", [feed, receive, receive_by_window])
def test_large_bodies(twin: ModuleType, size: int, by: Any) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    stream = request(b"A", body[:size], b"z") + request(b"B", body[:size]) + b"PING\n"
    expected = Outcome([[b"A", body[:size], b"z"], [b"B", body[:size]], [b"PING"]], None, 0)
    for step in (997, 65_536, len(stream)):
        assert drive(twin, [stream[place : place + step] for place in range(0, len(stream), step)], by=by) == expected


def test_limits_are_the_ones_that_were_given(twin: ModuleType) -> None:
    def fault(stream: bytes, **limits: int) -> bytes | None:
        return drive(twin, [stream], limits).fault

    assert fault(request(b"A", b"B", b"C"), max_arguments=3) is None
    assert fault(request(b"A", b"B", b"C"), max_arguments=2) == b"ERR Protocol error: invalid multibulk length"
    assert fault(request(b"ABC"), max_bulk_bytes=3) is None
    assert fault(request(b"ABC"), max_bulk_bytes=2) == b"ERR Protocol error: invalid bulk length"
    assert fault(b"abc\n", max_line_bytes=3) is None
    assert fault(b"abcd\n", max_line_bytes=3) == b"ERR Protocol error: too big inline request"
    assert fault(b"*1\r\n", max_line_bytes=3) is None
    assert fault(b"*1\r\n", max_line_bytes=2) == b"ERR Protocol error: too big mbulk count string"
    assert fault(b"*1\r\n$1", max_line_bytes=2) == b"ERR Protocol error: too big mbulk count string"


def test_the_query_buffer_limit_counts_the_arguments_of_a_request(twin: ModuleType) -> None:
    text = b"ERR Protocol error: request is larger than the query buffer limit of 1000 bytes"
    small = {"max_query_buffer_bytes": 1000}
    assert drive(twin, [request(b"A" * 900)] * 5, small).fault is None
    assert drive(twin, [b"*1\r\n$990\r\n"], small).fault == text
    for by in (feed, receive, receive_by_window):
        assert drive(twin, [b"*100\r\n", *[b"$1\r\nx\r\n"] * 100], small, by).fault == text
    assert drive(twin, [b"x" * 1001], small).fault == text


@pytest.mark.parametrize(
    "tail",
    [b"$3\r", b"$3\r\nab", b"$3\r\nabc", b"$3\r\nabc\r", b"$03\r\nabc\r\n", b"$3\rxabc\r\n", b"$1234567890\r\n", b"$-1\r\n"],
)
def test_unusual_arguments_behind_usual_ones(twin: ModuleType, tail: bytes) -> None:
    stream = b"*3\r\n$1\r\nA\r\n$0\r\n\r\n" + tail
    whole = drive(twin, [stream])
    assert whole == drive(twin, [stream[place : place + 1] for place in range(len(stream))])
    assert whole.requests == []
    if whole.fault is None:
        assert drive(twin, [stream, b"$3\r\nabc\r\n"[len(tail) :]]).requests == [[b"A", b"", b"abc"]]


def test_a_request_is_a_list_of_its_own(twin: ModuleType) -> None:
    parser = twin.RequestParser()
    parser.feed(request(b"A", b"B") * 2)
    first, second = parser.next_request(), parser.next_request()
    first.append(b"C")
    assert second == [b"A", b"B"]


def test_more_bytes_than_there_was_room_for_are_refused(twin: ModuleType) -> None:
    parser = twin.RequestParser()
    with pytest.raises(ValueError, match="cannot have been received"):
        parser.buffer_updated(1)
    room = len(parser.get_buffer())
    with pytest.raises(ValueError, match="cannot have been received"):
        parser.buffer_updated(room + 1)
    with pytest.raises(ValueError, match="cannot have been received"):
        parser.buffer_updated(-1)


def test_a_view_that_is_held_too_long_does_no_harm(twin: ModuleType) -> None:
    parser = twin.RequestParser()
    views = []
    body = b"x" * 300_000
    stream = request(b"A", body)
    for place in range(0, len(stream), 50_000):
        data = stream[place : place + 50_000]
        while data:
            view = parser.get_buffer()
            views.append(view)
            count = min(len(view), len(data))
            view[:count] = data[:count]
            parser.buffer_updated(count)
            data = data[count:]
            parsed = parser.next_request()
    assert parsed == [b"A", body]
    for view in views:
        view[0] = 1


PIECES = st.sampled_from([bytes((byte,)) for byte in b"*$\r\n0123-x \"'\\\x00"] + [b"\r\n", b"*2\r\n", b"$1\r\n"])
REQUESTS = st.lists(st.binary(max_size=40), min_size=1, max_size=6).map(lambda words: request(*words))
STREAMS = st.one_of(
    st.lists(PIECES, max_size=40).map(b"".join),
    st.lists(REQUESTS, max_size=5).map(b"".join),
    st.binary(max_size=100),
)


@given(STREAMS, STREAMS, st.lists(st.integers(1, 30), max_size=40), st.sampled_from([feed, receive, receive_by_window]))
def test_all_twins_agree_however_a_stream_is_cut(first: bytes, second: bytes, steps: list[int], by: Any) -> None:
    stream = first + second
    chunks, place = [], 0
    for step in steps:
        chunks.append(stream[place : place + step])
        place += step
    chunks.append(stream[place:])
    limits = {"max_arguments": 3, "max_bulk_bytes": 30, "max_line_bytes": 20}
    for given_limits in ({}, limits):
        expected = drive(TWINS["plain"], [stream], given_limits)
        for twin in TWINS.values():
            assert drive(twin, chunks, given_limits, by) == expected


@given(st.lists(st.lists(st.binary(max_size=100), min_size=1, max_size=100), max_size=20), st.integers(1, 5000))
def test_what_is_sent_is_understood(requests: list[list[bytes]], step: int) -> None:
    stream = b"".join(request(*words) for words in requests)
    chunks = [stream[place : place + step] for place in range(0, len(stream), step)]
    for twin in TWINS.values():
        assert drive(twin, chunks, by=receive) == Outcome(requests, None, 0)
