"""The journal's records: what is written is read, whatever is damaged is noticed, and both twins agree."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue._twins import load_plain
from disqueue.wire.journal_format import FORGOTTEN, HEADER_BYTES, JOB, STATE, decode_header, encode_header
from disqueue.wire.journal_search import find_passes, next_record, split_records

NAME = "disqueue.wire.journal_records"
TWINS = [importlib.import_module(NAME), load_plain([NAME])[NAME]]

ids = st.binary(min_size=40, max_size=40)
times = st.integers(-(1 << 63), (1 << 63) - 1)
masks = st.one_of(st.integers(0, 255), st.integers(0, 1 << 300))
counters = st.integers(0, (1 << 32) - 1)
states = st.tuples(ids, st.integers(0, 255), st.integers(0, 65535), counters, counters, times, times, masks, masks)
statics = st.tuples(
    times, times, counters, counters, counters, st.integers(0, 65535), st.binary(max_size=30), st.binary(max_size=900)
)
STATE_NAMES = ("id", "state", "flags", "nacks", "deliveries", "due_wall_ms", "order_ns", "owners", "confirmed")
NAMES = (*STATE_NAMES, "ctime_ns", "expires_wall_ms", "retry_s", "delay_s", "ttl_s", "repl", "queue", "body")


def encoded(twin: ModuleType, base: int, state: tuple[Any, ...], static: tuple[Any, ...]) -> bytes:
    buffer = bytearray()
    twin.append_start(buffer, base, 7, 99)
    twin.append_pass(buffer, base, 1 << 40, 7, 1 << 33)
    twin.append_state(buffer, base, *state)
    twin.append_job(buffer, base, *state, *static)
    twin.append_forgotten(buffer, base, state[0], 77)
    twin.append_record(buffer, base, 200, static[-1])
    return bytes(buffer)


def scan(twin: ModuleType, salt: int, data: bytes, offset: int = 0) -> tuple[list[tuple[int, bytes]], int, int]:
    """Return kind and payload of each record, how it ended and where."""
    scanner = twin.RecordScanner(salt)
    scanner.feed(data, offset)
    found = []
    while (status := scanner.advance()) == twin.WHOLE:
        assert scanner.payload() == data[scanner.start : scanner.end]
        found.append((scanner.kind, scanner.payload()))
    return found, status, scanner.offset


@given(st.integers(0, 1 << 32), states, statics)
def test_both_twins_write_the_same_and_read_it_back(salt: int, state: tuple[Any, ...], static: tuple[Any, ...]) -> None:
    data = encoded(TWINS[0], salt + 80, state, static)
    assert data == encoded(TWINS[1], salt + 80, state, static)
    for twin in TWINS:
        records, status, end = scan(twin, salt, data, 80)
        assert (status, end) == (twin.MORE, 80 + len(data))
        assert [kind for kind, _ in records] == [2, 1, STATE, JOB, FORGOTTEN, 200]
        fields = twin.JobFields()
        twin.read_state(records[2][1], 0, len(records[2][1]), fields)
        assert tuple(getattr(fields, name) for name in STATE_NAMES) == state
        fields = twin.JobFields()
        twin.read_job(records[3][1], 0, len(records[3][1]), fields)
        assert tuple(getattr(fields, name) for name in NAMES) == (*state, *static)
        assert twin.decode_forgotten(records[4][1], 0, 44) == (state[0], 77)
        assert twin.job_id_at(records[4][1], 0) == state[0]
    assert [(kind, data[start:end]) for kind, start, end in split_records(data)] == records


STATE_FIELDS = (b"D-" + b"i" * 38, 2, 3, 0, 1, 1 << 41, 1 << 60, 1, 300)
STATIC = (1 << 60, 1 << 42, 60, 0, 3600, 1, b"queue", b"body" * 20)


@pytest.mark.parametrize("twin", TWINS)
def test_every_flip_of_a_bit_is_noticed(twin: ModuleType) -> None:
    data = bytearray(encoded(twin, 1000, STATE_FIELDS, STATIC))
    whole, _, _ = scan(twin, 1000, bytes(data))
    for bit in range(len(data) * 8):
        data[bit // 8] ^= 1 << bit % 8
        found, _, end = scan(twin, 1000, bytes(data))
        assert found == whole[: len(found)]
        assert end <= bit // 8
        data[bit // 8] ^= 1 << bit % 8


@pytest.mark.parametrize("twin", TWINS)
def test_a_record_at_another_place_is_none(twin: ModuleType) -> None:
    data = encoded(twin, 1000, STATE_FIELDS, STATIC)
    for offset in (-1, 1, 512, 4096):
        assert scan(twin, 1000 + offset, data)[1] == twin.DAMAGED
    moved = bytearray(data)
    twin.reseal(moved, 5096)
    assert bytes(moved) == encoded(twin, 5096, STATE_FIELDS, STATIC)


@pytest.mark.parametrize("twin", TWINS)
def test_a_record_that_is_cut_needs_more(twin: ModuleType) -> None:
    data = encoded(twin, 0, STATE_FIELDS, STATIC)
    ends = [end for _, _, end in split_records(data)]
    for size in range(len(data)):
        found, status, end = scan(twin, 0, data[:size])
        assert status == twin.MORE
        assert len(found) == sum(one <= size for one in ends)
        assert end == max([one for one in ends if one <= size], default=0)


@pytest.mark.parametrize("twin", TWINS)
def test_payloads_that_make_no_sense_are_refused(twin: ModuleType) -> None:
    buffer = bytearray()
    twin.append_job(buffer, 0, *STATE_FIELDS, *STATIC)
    payload = bytes(buffer[9:])
    fields = twin.JobFields()
    for size in range(len(payload)):
        with pytest.raises(twin.RecordError):
            twin.read_job(payload[:size], 0, size, fields)
    buffer = bytearray()
    twin.append_state(buffer, 0, *STATE_FIELDS)
    payload = bytes(buffer[9:])
    for size in range(len(payload)):
        with pytest.raises(twin.RecordError):
            twin.read_state(payload[:size], 0, size, fields)
    with pytest.raises(twin.RecordError):
        twin.decode_forgotten(bytes(43), 0, 43)


@pytest.mark.parametrize("twin", TWINS)
@given(data=st.binary(max_size=300))
def test_garbage_is_no_record(twin: ModuleType, data: bytes) -> None:
    found, status, _ = scan(twin, 1, data)
    assert found == []
    assert status in (twin.MORE, twin.DAMAGED)


def test_a_body_that_holds_records_is_not_taken_for_them() -> None:
    inner = encoded(TWINS[0], 0, STATE_FIELDS, STATIC)
    data = encoded(TWINS[0], 1000, STATE_FIELDS, (*STATIC[:-1], inner))
    body_at = data.index(inner)
    assert len(find_passes(data[body_at:], body_at, 1000)) == 0
    assert next_record(data, body_at, 0, 1000) == body_at + len(inner)


def test_whole_records_are_found_wherever_they_stand() -> None:
    data = encoded(TWINS[0], 1000, STATE_FIELDS, STATIC)
    starts = [start - 9 for kind, start, _ in split_records(data) if kind in (1, JOB, STATE, FORGOTTEN)]
    for place in range(len(data)):
        assert next_record(data, place, 0, 1000) == min([start for start in starts if start >= place], default=len(data))


def test_headers() -> None:
    header = encode_header(5, b"n" * 40, 1 << 41)
    assert len(header) == HEADER_BYTES
    decoded = decode_header(header + b"more")
    assert decoded is not None
    assert decoded[:4] == (2, 5, b"n" * 40, 1 << 41)
    for place in range(HEADER_BYTES * 8):
        damaged = bytearray(header)
        damaged[place // 8] ^= 1 << place % 8
        assert decode_header(bytes(damaged)) is None
    assert decode_header(header[:-1]) is None


@pytest.mark.parametrize("twin", TWINS)
def test_a_buffer_is_emptied_and_filled_again(twin: ModuleType) -> None:
    buffer = bytearray()
    twin.empty(buffer)
    for size in (0, 1, 3000, 10, 100_000, 0, 5):
        twin.append_record(buffer, 7, 200, b"x" * size)
        again = bytearray()
        twin.append_record(again, 7, 200, b"x" * size)
        assert buffer == again
        twin.empty(buffer)
        assert buffer == b""
    buffer += b"looked at"
    with memoryview(buffer), pytest.raises(BufferError):
        twin.empty(buffer)
    assert buffer == b"looked at"
