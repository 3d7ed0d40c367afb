"""What a client can make the parser hold: never much more than it has sent."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from tests.wire.resp_twins import TWINS, receive, request

KIB = 1024
MIB = 1024 * 1024


@pytest.fixture(params=sorted(TWINS))
def twin(request: pytest.FixtureRequest) -> ModuleType:
    return TWINS[request.param]


@contextmanager
def measured() -> Iterator[Callable[[], tuple[int, int]]]:
    """Gives a function that returns the bytes allocated since the start: now, and at the most."""
    gc.collect()
    tracemalloc.start()
    try:
        yield tracemalloc.get_traced_memory
    finally:
        tracemalloc.stop()


def test_an_announced_body_costs_nothing_before_it_comes(twin: ModuleType) -> None:
    with measured() as memory:
        parsers = [twin.RequestParser() for _ in range(20)]
        for parser in parsers:
            receive(parser, b"*2\r\n$6\r\nADDJOB\r\n$536870912\r\n")
            assert parser.next_request() is None
            parser.get_buffer()
        assert memory()[1] < 20 * 3 * 64 * KIB + MIB


def test_announced_arguments_cost_nothing_before_they_come(twin: ModuleType) -> None:
    with measured() as memory:
        parsers = [twin.RequestParser() for _ in range(200)]
        for parser in parsers:
            receive(parser, b"*1000000\r\n")
            assert parser.next_request() is None
        assert memory()[0] < 2 * MIB


def test_many_half_requests_hold_little_more_than_what_was_sent(twin: ModuleType) -> None:
    half = request(b"ADDJOB", b"queue", b"x" * 1000, b"0")[:-5]
    with measured() as memory:
        parsers = [twin.RequestParser() for _ in range(1000)]
        for parser in parsers:
            receive(parser, half)
            assert parser.next_request() is None
        assert memory()[0] < 1000 * 2 * (len(half) + KIB) + 2 * MIB


def test_idle_connections_hold_no_buffers(twin: ModuleType) -> None:
    with measured() as memory:
        parsers = [twin.RequestParser() for _ in range(1000)]
        for parser in parsers:
            receive(parser, request(b"PING"))
            assert parser.next_request() == [b"PING"]
            assert parser.next_request() is None
        assert memory()[0] < 1000 * KIB + 2 * MIB


def test_a_million_small_arguments_are_bounded_by_the_query_buffer_limit(twin: ModuleType) -> None:
    parser = twin.RequestParser(twin.ParserLimits(max_query_buffer_bytes=MIB))
    piece = b"$2\r\nab\r\n" * 1000
    fault = None
    with measured() as memory:
        receive(parser, b"*1000000\r\n")
        for _ in range(1000):
            receive(parser, piece)
            try:
                assert parser.next_request() is None
            except twin.ProtocolError as error:
                fault = error.reply
                break
        assert memory()[1] < 4 * MIB
    assert fault == b"ERR Protocol error: request is larger than the query buffer limit of 1048576 bytes"
    assert parser.buffered_bytes == 0


def test_a_million_arguments_are_taken(twin: ModuleType) -> None:
    parser = twin.RequestParser()
    parser.feed(b"*1048576\r\n")
    assert parser.next_request() is None
    piece = b"$0\r\n\r\n" * 65_536
    for _ in range(15):
        receive(parser, piece)
        assert parser.next_request() is None
    receive(parser, piece)
    assert parser.next_request() == [b""] * 1_048_576


def test_a_large_body_is_received_without_copies_of_copies(twin: ModuleType) -> None:
    parser = twin.RequestParser()
    piece = b"x" * 64 * KIB
    with measured() as memory:
        receive(parser, b"*1\r\n$%d\r\n" % (16 * MIB))
        for _ in range(256):
            receive(parser, piece)
            assert parser.next_request() is None
        receive(parser, b"\r\n")
        assert parser.next_request() == [b"x" * (16 * MIB)]
        # The body, and at the last growth or at the end one more.
        assert memory()[1] < 3 * 16 * MIB + MIB
    assert parser.buffered_bytes == 0


def test_a_deep_pipeline_is_consumed_without_holding_what_was_consumed(twin: ModuleType) -> None:
    parser = twin.RequestParser()
    piece = request(b"ACKJOB", b"D-" + b"x" * 38) * 1000
    with measured() as memory:
        for _ in range(20):
            receive(parser, piece)
            count = 0
            while parser.next_request() is not None:
                count += 1
            assert abs(count - 1000) <= 1
        assert memory()[1] < MIB


def test_pipelined_input_behind_a_blocked_command_is_counted_and_bounded(twin: ModuleType) -> None:
    parser = twin.RequestParser(twin.ParserLimits(max_query_buffer_bytes=MIB))
    piece = request(b"ACKJOB", b"D-" + b"x" * 38) * 1000
    with measured() as memory:
        receive(parser, request(b"GETJOB"))
        assert parser.next_request() == [b"GETJOB"]
        held = 0
        while held + len(piece) <= MIB:
            receive(parser, piece)
            held += len(piece)
            assert parser.buffered_bytes == held
        with pytest.raises(twin.ProtocolError, match="larger than the query buffer limit"):
            receive(parser, piece)
        assert memory()[1] < 6 * MIB


def test_taken_replies_are_not_held(twin: ModuleType) -> None:
    with measured() as memory:
        writers = [twin.ReplyWriter() for _ in range(100)]
        for writer in writers:
            writer.bulk(b"x" * MIB)
            writer.take()
        assert memory()[0] < MIB
