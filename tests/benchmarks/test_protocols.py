"""Requests and replies of each kind of server."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue.cli.bench_protocols import NUMBER_DIGITS, Beanstalkd, Disque, Protocol, RedisList, RedisStream, ReplyError

ID = b"D-0123abcd-ABCDEFGHIJKLMNOPQRSTUVWX-05a1"
JOB = b"*1\r\n*3\r\n$1\r\nq\r\n$40\r\n%b\r\n$20\r\n%b\r\n"
ENTRY = b"*1\r\n*2\r\n$1\r\nq\r\n*1\r\n*2\r\n$3\r\n7-0\r\n*2\r\n$1\r\nb\r\n$20\r\n%b\r\n"
BODY = b"x" * 20

REPLIES = [
    (Disque, "add", b"+" + ID + b"\r\n", []),
    (Disque, "get", JOB % (ID, BODY), [ID]),
    (Disque, "ack", b":1\r\n", []),
    (RedisList, "add", b":12\r\n", []),
    (RedisList, "get", b"$20\r\n" + BODY + b"\r\n", [BODY]),
    (RedisList, "ack", b":1\r\n", []),
    (RedisStream, "add", b"$3\r\n7-0\r\n", []),
    (RedisStream, "get", ENTRY % BODY, [b"7-0"]),
    (RedisStream, "ack", b":1\r\n:1\r\n", []),
    (Beanstalkd, "add", b"INSERTED 12\r\n", []),
    (Beanstalkd, "get", b"RESERVED 12 20\r\n" + BODY + b"\r\n", [b"12"]),
    (Beanstalkd, "ack", b"DELETED\r\n", []),
]


@pytest.mark.parametrize(("kind", "phase", "reply", "found"), REPLIES)
@given(cuts=st.lists(st.integers(0, 500), max_size=8))
def test_replies_are_found_however_they_are_cut(
    kind: type[Protocol], phase: str, reply: bytes, found: list[bytes], cuts: list[int]
) -> None:
    replies = kind(b"q", 20, 0).replies(phase)
    data = reply * 5
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(places):
        replies.feed(data[start:end])
    assert replies.count == 5
    assert replies.found == found * 5


@pytest.mark.parametrize(("kind", "reply"), [(kind, reply) for kind, phase, reply, _ in REPLIES if phase == "get"])
def test_a_delivery_tells_the_number_of_its_job(kind: type[Protocol], reply: bytes) -> None:
    protocol = kind(b"q", 20, 0)
    body = protocol.body_of(42)
    assert len(body) == 20
    match = protocol.patterns()["delivery"].match(reply.replace(BODY, body))
    assert match is not None
    assert int(match[2]) == 42
    assert match[1] in (ID, body, b"7-0", b"12")
    assert NUMBER_DIGITS == 16


def test_an_error_ends_the_run_with_its_text() -> None:
    replies = Disque(b"q", 20, 3).replies("add")
    replies.feed(b"+" + ID + b"\r\n-NOREPL Not enough")
    with pytest.raises(ReplyError, match="NOREPL Not enough reachable nodes"):
        replies.feed(b" reachable nodes\r\n")


def test_requests_of_disque() -> None:
    protocol = Disque(b"q", 3, 2, b"FASTACK")
    assert protocol.add(2) == protocol.add_one(b"xxx") * 2
    assert b"REPLICATE\r\n$1\r\n2\r\n" in protocol.add(1)
    assert protocol.ack([ID, ID]) == (b"*2\r\n$7\r\nFASTACK\r\n$40\r\n" + ID + b"\r\n") * 2


def test_an_error_of_beanstalkd_ends_the_run() -> None:
    replies = Beanstalkd(b"q", 20, 0).replies("ack")
    with pytest.raises(ReplyError, match="NOT_FOUND"):
        replies.feed(b"DELETED\r\nNOT_FOUND\r\n")


def test_replies_of_other_lengths_are_found_among_equal_ones() -> None:
    replies = RedisList(b"q", 20, 0).replies("add")
    replies.feed(b":8\r\n:9\r\n:10\r\n:11\r\n:1")
    assert replies.count == 4
    replies.feed(b"2\r\n")
    assert replies.count == 5


def test_an_error_among_replies_is_not_taken_for_one() -> None:
    replies = Disque(b"q", 20, 0).replies("add")
    with pytest.raises(ReplyError, match="PAUSED"):
        replies.feed((b"+" + ID + b"\r\n") * 3 + b"-PAUSED Queue paused in input, try later\r\n" + b"+" + ID + b"\r\n")
    assert replies.count == 3
