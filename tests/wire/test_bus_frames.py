"""Frames of the bus: round trips, streams cut anywhere, bounds, garbage."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue.wire.bus import HEADER_BYTES, MAX_FRAME_RECORDS, BusError, FrameReader, decode_frame, encode_frames
from disqueue.wire.job_records import AnyRecord
from disqueue.wire.records import GossipBan, GossipEntry, Ping, Pong

ids = st.binary(min_size=40, max_size=40)
uint63 = st.integers(0, 2**63 - 1)
uint16 = st.integers(0, 0xFFFF)
entries = st.builds(GossipEntry, ids, st.text(max_size=60), uint16, uint16, uint16)
bans = st.builds(GossipBan, ids, uint63, st.integers(0, 2**32 - 1))
records: st.SearchStrategy[AnyRecord] = st.one_of(
    st.builds(Ping, uint63, uint16, st.lists(entries, max_size=4), st.lists(bans, max_size=4)), st.builds(Pong, uint63, uint16)
)
BOUND = 1 << 20


def read_all(reader: FrameReader, pieces: list[bytes]) -> list[AnyRecord]:
    return [record for piece in pieces for payload in reader.feed(piece) for record in decode_frame(payload)]


@given(st.lists(st.lists(records, min_size=1, max_size=5), max_size=4), st.lists(st.integers(0, 2000), max_size=8))
def test_any_cut_of_the_stream_gives_the_same_records(batches: list[list[AnyRecord]], cuts: list[int]) -> None:
    stream = b"".join(frame for batch in batches for frame in encode_frames(batch))
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    reader = FrameReader(BOUND)
    assert read_all(reader, pieces) == [record for batch in batches for record in batch]
    assert reader.buffered_bytes == 0


def test_a_stream_cut_at_every_byte() -> None:
    sent: list[AnyRecord] = [Pong(7, 1), Ping(8, 0, [GossipEntry(b"a" * 40, "host", 1, 2, 3)], [])]
    stream = encode_frames(sent)[0] * 2
    assert read_all(FrameReader(BOUND), [stream[index : index + 1] for index in range(len(stream))]) == sent * 2


@given(st.lists(records, min_size=1, max_size=30), st.integers(600, 2000))
def test_what_does_not_fit_one_frame_is_split_in_order(sent: list[AnyRecord], bound: int) -> None:
    sent = [record if len(encode_frames([record])[0]) <= bound else Pong(1, 1) for record in sent]
    frames = encode_frames(sent, bound)
    assert all(len(frame) <= HEADER_BYTES + bound for frame in frames)
    assert read_all(FrameReader(bound), frames) == sent


def test_more_records_than_a_frame_may_hold_are_split() -> None:
    sent = [Pong(1, 0)] * (MAX_FRAME_RECORDS + 1)
    frames = encode_frames(sent)
    assert len(frames) == 2
    assert len(read_all(FrameReader(BOUND * 64), frames)) == len(sent)


def test_a_record_longer_than_a_frame_is_an_error() -> None:
    with pytest.raises(BusError, match="Ping record of"):
        encode_frames([Pong(1, 0), Ping(1, 0, [GossipEntry(b"a" * 40, "x" * 200, 1, 1, 0)], [])], 50, 100)


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (b"DbuZ\0\0\0\x90", "Disque 1.0"),
        (b"*1\r\n$4\r\nPING\r\n", "client"),
        (b"PING\r\n", "client"),
        (b"GET / HTTP/1.1\r\n", "frame of|client"),
        (b"\x16\x03\x01\x02\x00", "TLS"),
        (b"\0\0\0\0", "frame of 0 bytes"),
        (b"\xff\xff\xff\xff", "frame of 4294967295 bytes"),
    ],
)
def test_strangers_are_told_apart(start: bytes, text: str) -> None:
    with pytest.raises(BusError, match=text):
        FrameReader(4096).feed(start)


def test_a_header_alone_allocates_nothing() -> None:
    reader = FrameReader(1 << 30)
    assert reader.feed((1 << 30).to_bytes(4, "big") + b"x" * 10) == []
    assert reader.buffered_bytes == 10


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        b"\xc0",
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff",
        b"\x91\x95\x01\x01\x00\xdd\xff\xff\xff\xff",
        b"\x91\x93\x7f\x01\x00",
        b"\x91\x93\x02\xff\x00",
        b"\x91\x93\x02\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x00",
        b"\x91\x94\x02\x01\x00" + b"\x91" * 100_000,
    ],
)
def test_malformed_frames(payload: bytes) -> None:
    with pytest.raises(BusError, match="malformed frame"):
        decode_frame(payload)


def test_fields_that_a_newer_release_adds_are_ignored() -> None:
    payload = msgspec.msgpack.encode([[2, 5, 4, "new", {"more": [1]}]])
    assert decode_frame(payload) == [Pong(5, 4)]


@given(st.binary(max_size=300))
def test_random_bytes_give_records_or_an_error(data: bytes) -> None:
    for feed in (lambda: decode_frame(data), lambda: read_all(FrameReader(200), [data])):
        try:
            feed()
        except BusError:
            pass


@given(st.lists(records, min_size=1, max_size=4), st.data())
def test_mutated_frames_give_records_or_an_error(sent: list[AnyRecord], data: st.DataObject) -> None:
    stream = bytearray(encode_frames(sent)[0])
    for _ in range(data.draw(st.integers(1, 5))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_all(FrameReader(BOUND), [bytes(stream)])
    except BusError:
        pass
