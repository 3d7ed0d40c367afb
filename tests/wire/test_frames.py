"""What stands in a frame is what msgspec makes of it, in both twins: byte by byte, and in what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue.wire import job_records as wire
from disqueue.wire.frames import JobRecord, decode_records, encode_job, encode_records
from disqueue.wire.records import Pong

plain_decoder = msgspec.msgpack.Decoder(list[wire.AnyRecord])

ids = st.binary(min_size=40, max_size=40)
lengths = st.sampled_from([0, 1, 31, 255, 256, 65_535, 65_536])
texts = st.one_of(st.binary(max_size=20), lengths.map(lambda length: b"x" * length))
masks = st.one_of(st.integers(0, (1 << 63) - 1), st.integers(0, 300), st.binary(max_size=600), st.just((1 << 64) - 1))
seconds, counts = st.integers(0, 0x7FFF_FFFF), st.integers(0, 0xFFFF)
milliseconds = st.one_of(st.integers(0, 1 << 46), st.integers(0, 300))
numbers = st.one_of(st.just(-1), milliseconds)
nanoseconds = st.integers(0, 1 << 62)
fields = st.tuples(
    ids, texts, texts, nanoseconds, seconds, seconds, seconds, counts, milliseconds, milliseconds, counts, counts, masks
)
jobs = fields.map(lambda values: wire.JobRecord(*values))
batches = st.one_of(
    st.builds(wire.Batch, counts, st.lists(ids, max_size=20), st.lists(numbers, max_size=20)),
    st.builds(wire.SetAck, st.lists(ids, max_size=20), st.lists(masks, max_size=20)),
    st.builds(wire.GotAck, st.lists(ids, max_size=20), st.lists(masks, max_size=20)),
    st.builds(wire.Store, st.lists(jobs, max_size=3), st.booleans()),
    st.builds(wire.Move, st.lists(jobs, max_size=3)),
    st.builds(wire.Offer, st.lists(jobs, max_size=3), st.lists(numbers, max_size=3)),
    st.builds(wire.Want, texts, st.integers(0, 1 << 31)),
    st.builds(wire.Owners, st.lists(ids, max_size=3), st.lists(masks, max_size=3), st.booleans()),
    st.builds(Pong, milliseconds, counts),
)
records = st.lists(batches, max_size=20)


def own(record: Any) -> Any:
    """The same with the jobs that a frame is decoded to, and the node works with."""
    if isinstance(record, (wire.Store, wire.Move, wire.Offer)):
        record.jobs = [JobRecord(*msgspec.structs.astuple(job)) for job in record.jobs]
    return record


@given(records)
def test_frames_are_those_of_msgspec(sent: list[Any]) -> None:
    payload = msgspec.msgpack.encode(sent)
    assert encode_records(sent) == payload
    received = decode_records(memoryview(payload))
    assert received == sent
    assert encode_records([own(record) for record in sent]) == encode_records(received) == payload


@given(fields)
def test_a_job_is_encoded_as_its_record(values: tuple[Any, ...]) -> None:
    raw = encode_job(*values)
    assert bytes(raw) == msgspec.msgpack.encode(wire.JobRecord(*values))  # type: ignore[call-overload]
    assert len(raw) == len(bytes(raw))  # type: ignore[call-overload]
    sent: list[Any] = [wire.Store([raw, raw], True), wire.Move([raw]), wire.Offer([raw], [5])]
    (store, move, offer) = decode_records(encode_records(sent))
    assert store == wire.Store([wire.JobRecord(*values)] * 2, True)
    assert (move, offer) == (wire.Move(store.jobs[:1]), wire.Offer(store.jobs[:1], [5]))


@given(records, st.data())
def test_what_is_taken_of_a_damaged_frame_is_what_msgspec_takes(sent: list[Any], data: st.DataObject) -> None:
    payload = bytearray(msgspec.msgpack.encode(sent)[:3000])
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, min(len(payload) - 1, 200)))] = data.draw(st.integers(0, 255))
    try:
        received = decode_records(payload)
    except ValueError:
        return
    assert received == plain_decoder.decode(payload)


ID = b"i" * 40
JOB = [ID, b"q", b"body", 1, 2, 3, 4, 5, 6, 7, 8, 9, 3]


def job_with(place: int, value: object) -> list[object]:
    return [*JOB[:place], value, *JOB[place + 1 :]]


@pytest.mark.parametrize(
    "record",
    [
        [13],
        [13, 1, [ID]],
        [13, 1 << 16, [ID], []],
        [13, -1, [ID], []],
        [13, 1, [ID[1:]], []],
        [13, 1, [ID + b"i"], []],
        [13, 1, ["i" * 40], []],
        [13, 1, [ID], [-2]],
        [13, 1, [ID], [-(1 << 40)]],
        [13, 1, [ID], [(1 << 46) + 1]],
        [13, 1, [ID], [None]],
        [14, [ID]],
        [14, [ID], [-1]],
        [15, [ID], [b"m" * 4097]],
        [15, [ID], [[]]],
        [10],
        [10, [JOB], 1],
        [10, [JOB[:-1]]],
        [11, [job_with(0, ID[1:])]],
        [11, [job_with(1, b"q" * ((1 << 20) + 1))]],
        [11, [job_with(2, None)]],
        [12, [job_with(3, (1 << 62) + 1)]],
        *([12, [job_with(place, 1 << 31)]] for place in (4, 5, 6)),
        *([12, [job_with(place, 1 << 16)]] for place in (7, 10, 11)),
        *([12, [job_with(place, (1 << 46) + 1)]] for place in (8, 9)),
        *([12, [job_with(place, -1)]] for place in range(3, 13)),
        [99, 1],
    ],
)
def test_values_out_of_range_are_refused(record: list[object]) -> None:
    payload = msgspec.msgpack.encode([record])
    with pytest.raises(ValueError, match=r"\w"):
        decode_records(payload)


@pytest.mark.parametrize("extra", [[None], [1 << 40, {"more": [1, -5, 2.5, "text", b"bytes"]}, True]])
def test_fields_of_a_newer_release_are_ignored(extra: list[object]) -> None:
    newer = [
        [13, 1, [ID], [], *extra],
        [14, [ID], [3], *extra],
        [10, [[*JOB, *extra]], True, *extra],
        [11, [JOB], *extra],
        [2, 7, 1, *extra],
    ]
    received = decode_records(msgspec.msgpack.encode(newer))
    assert received == [
        wire.Batch(1, [ID], []),
        wire.SetAck([ID], [3]),
        wire.Store([wire.JobRecord(*JOB)], True),
        wire.Move([wire.JobRecord(*JOB)]),
        Pong(7, 1),
    ]


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_numbers_in_longer_forms_are_numbers(width: int) -> None:
    unsigned = {1: b"\xcc", 2: b"\xcd", 4: b"\xce", 8: b"\xcf"}[width] + (5).to_bytes(width, "big")
    signed = {1: b"\xd0", 2: b"\xd1", 4: b"\xd2", 8: b"\xd3"}[width]
    ids_part = b"\x93" + (b"\xc4\x28" + ID) * 3
    numbers_part = b"\x93" + unsigned + signed + (5).to_bytes(width, "big") + signed + b"\xff" * width
    assert decode_records(b"\x91\x94\x0d" + unsigned + ids_part + numbers_part) == [wire.Batch(5, [ID] * 3, [5, 5, -1])]


@pytest.mark.parametrize("head", [b"\x91\x94\x0d\x01", b"\x91\x93\x0e", b"\x91\x92\x0a", b"\x91\x92\x0c", b""])
def test_a_list_is_not_allocated_on_the_word_of_its_head(head: bytes) -> None:
    for count in (50, 4096, 65_536, (1 << 32) - 1):
        with pytest.raises(ValueError, match=r"\w"):
            decode_records(head + b"\xdd" + count.to_bytes(4, "big") + b"\xc4\x28")
