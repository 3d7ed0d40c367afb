"""Requests: what is understood, what is refused and with which words."""

from __future__ import annotations

from disqueue.wire.resp import RequestParser


def test_a_pipeline_of_requests_is_taken_one_by_one() -> None:
    parser = RequestParser()
    parser.feed(b"*2\r\n$4\r\nPING\r\n$1\r\nx\r\nPING\n")
    assert parser.next_request() == [b"PING", b"x"]
    assert parser.next_request() == [b"PING"]
    assert parser.next_request() is None
