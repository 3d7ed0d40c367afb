"""Jobs that share records: both twins write the same, read it back, and a record has its limits."""

from __future__ import annotations

import importlib
from struct import Struct
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disqueue._twins import load_plain
from disqueue.wire.journal_format import (
    ENDS,
    FORGOTTEN,
    GROUP_BYTES_MAX,
    JOB,
    JOBS,
    JOBS_BYTES,
    JOBS_ITEM_BYTES,
    STATE,
    STATES,
)
from disqueue.wire.journal_search import next_record, split_records

NAMES = ["disqueue.core.job", "disqueue.core.queue", "disqueue.journal.job_records", "disqueue.wire.journal_groups"]
PLAIN = load_plain([*NAMES, "disqueue.wire.journal_records"])
TWINS: list[dict[str, ModuleType]] = [{name: importlib.import_module(name) for name in PLAIN}, PLAIN]
WALL_OFFSET_MS = 1_700_000_000_000
CTIME_NS = 1_700_000_001_000_000_000

prefixes = st.sampled_from([b"D-01234567-", b"D-89abcdef-"])
jobs = st.fixed_dictionaries(
    {
        "id": st.builds(lambda prefix, tail: prefix + tail, prefixes, st.binary(min_size=29, max_size=29)),
        "queue": st.sampled_from([b"", b"q", b"another"]),
        "body": st.sampled_from([b"", b"body", b"BODY", b"x" * 3000, b"x" * GROUP_BYTES_MAX]),
        "ctime_ns": st.sampled_from([CTIME_NS, CTIME_NS + 1, 0, -1]),
        "order_ns": st.sampled_from([0, 0, 0, 5]),
        "expires_ms": st.sampled_from([61_000, 60_000, 1 << 40]),
        "due_ms": st.sampled_from([0, 0, 1000]),
        "ttl_s": st.sampled_from([60, 60, (1 << 32) - 1]),
        "retry_s": st.sampled_from([0, 6]),
        "delay_s": st.sampled_from([0, 0, 1]),
        "replicate": st.sampled_from([1, 3]),
        "nacks": st.sampled_from([0, 0, 65535]),
        "deliveries": st.sampled_from([0, 0, 1]),
        "state": st.sampled_from([1, 2, 3]),
        "flags": st.sampled_from([0, 9]),
        "owners": st.sampled_from([1, 1, 7, (1 << 63) - 1, 1 << 63, 1 << 64, 1 << 300]),
        "confirmed": st.sampled_from([0, 0, 0, 4]),
        "times": st.sampled_from([1, 1, 3, 300]),
    }
)
steps = st.lists(st.tuples(st.sampled_from(["whole", "changed", "ended"]), jobs), max_size=8)


def make(twin: dict[str, ModuleType], fields: dict[str, Any]) -> Any:
    queue = twin["disqueue.core.queue"].Queue(fields["queue"], 0) if fields["queue"] else None
    job = twin["disqueue.core.job"].new_job(fields["id"], queue, fields["body"], fields["ctime_ns"])
    for name, value in fields.items():
        if name not in ("id", "queue", "body", "ctime_ns", "order_ns", "times"):
            setattr(job, name, value)
    job.order_ns += fields["order_ns"]
    return job


def write(twin: dict[str, ModuleType], sequence: list[tuple[str, dict[str, Any]]]) -> tuple[bytes, list[int]]:
    """Return what was written behind a record that has nothing to do with it, and what each call said that it takes."""
    buffer = bytearray(b"before")
    sizes = []
    records = twin["disqueue.journal.job_records"].JobRecords()
    records.begin(buffer, 1000)
    for verb, fields in sequence:
        job = make(twin, fields)
        for _ in range(fields["times"]):
            sizes.append(getattr(records, verb)(job, 7 if verb == "ended" else WALL_OFFSET_MS))
    records.finish()
    return bytes(buffer[6:]), sizes


def expected(sequence: list[tuple[str, dict[str, Any]]]) -> list[tuple[int, bytes, int]]:
    kinds = {"whole": JOB, "changed": STATE, "ended": FORGOTTEN}
    found = []
    for verb, fields in sequence:
        found += [(kinds[verb], fields["id"], 7 if verb == "ended" else 0)] * fields["times"]
    return found


@given(steps)
def test_both_twins_write_the_same_and_say_of_whom_it_is(sequence: list[tuple[str, dict[str, Any]]]) -> None:
    data, sizes = write(TWINS[0], sequence)
    assert (data, sizes) == write(TWINS[1], sequence)
    assert sum(sizes) == len(data)
    scanner = TWINS[0]["disqueue.wire.journal_records"].RecordScanner(1000)
    scanner.feed(data, 6)
    found: list[tuple[int, bytes, int, int]] = []
    while scanner.advance() == 1:
        assert scanner.kind == JOB or scanner.end - scanner.start <= GROUP_BYTES_MAX
        both = [twin["disqueue.wire.journal_groups"].subjects(scanner.kind, data, scanner.start, scanner.end) for twin in TWINS]
        assert both[0] == both[1]
        found += both[0]
    assert scanner.at == len(data)
    assert [one[:3] for one in found] == expected(sequence)
    assert [one[3] for one in found] == sizes


@pytest.mark.parametrize("twin", TWINS)
@given(steps)
def test_what_is_written_is_read(twin: dict[str, ModuleType], sequence: list[tuple[str, dict[str, Any]]]) -> None:
    data, _ = write(TWINS[0], sequence)
    wanted = [(verb, fields) for verb, fields in sequence for _ in range(fields["times"])]
    for kind, start, end in split_records(data):
        for values in read(twin, kind, data, start, end):
            verb, fields = wanted.pop(0)
            if verb == "ended":
                continue
            order_ns = fields["ctime_ns"] + fields["order_ns"]
            due_ms = fields["due_ms"] + WALL_OFFSET_MS if fields["due_ms"] else 0
            assert values.id == fields["id"]
            assert values.due_wall_ms == due_ms
            for name in ("state", "flags", "nacks", "deliveries", "owners", "confirmed"):
                assert getattr(values, name) == fields[name]
            if verb == "whole" or kind == STATE:
                assert values.order_ns == order_ns
            else:
                assert order_ns == fields["ctime_ns"]
            if verb == "whole":
                assert values.expires_wall_ms == fields["expires_ms"] + WALL_OFFSET_MS
                assert values.repl == fields["replicate"]
                for name in ("ctime_ns", "retry_s", "delay_s", "ttl_s", "queue", "body"):
                    assert getattr(values, name) == fields[name]
    assert wanted == []


def read(twin: dict[str, ModuleType], kind: int, data: bytes, start: int, end: int) -> Any:
    """Yield the fields of each job of a record."""
    records = twin["disqueue.wire.journal_records"]
    if kind in (JOBS, STATES, ENDS):
        reader = twin["disqueue.wire.journal_groups"].GroupReader()
        reader.begin(kind, data, start, end)
        while reader.advance():
            yield reader.fields
        return
    fields = records.JobFields()
    if kind != FORGOTTEN:
        (records.read_job if kind == JOB else records.read_state)(data, start, end, fields)
    yield fields


USUAL: dict[str, Any] = {
    "id": b"D-01234567-" + b"i" * 29,
    "queue": b"q",
    "body": b"body",
    "ctime_ns": CTIME_NS,
    "order_ns": 0,
    "expires_ms": 61_000,
    "due_ms": 0,
    "ttl_s": 60,
    "retry_s": 6,
    "delay_s": 0,
    "replicate": 1,
    "nacks": 0,
    "deliveries": 0,
    "state": 2,
    "flags": 0,
    "owners": 1,
    "confirmed": 0,
    "times": 3,
}


def test_jobs_that_are_alike_share_a_record() -> None:
    data, sizes = write(TWINS[0], [("whole", USUAL), ("changed", USUAL), ("ended", USUAL)])
    assert [kind for kind, _, _ in split_records(data)] == [JOBS, STATES, ENDS]
    assert sizes == [9 + JOBS_BYTES + 1 + JOBS_ITEM_BYTES + 4, JOBS_ITEM_BYTES + 4, JOBS_ITEM_BYTES + 4, 74, 29, 29, 55, 29, 29]


@pytest.mark.parametrize("twin", TWINS)
def test_a_record_about_several_that_is_cut_is_refused(twin: dict[str, ModuleType]) -> None:
    groups = twin["disqueue.wire.journal_groups"]
    for verb in ("whole", "changed", "ended"):
        data, _ = write(TWINS[0], [(verb, USUAL)])
        kind, payload = data[8], data[9:]
        for size in range(len(payload)):
            with pytest.raises(groups.RecordError):
                groups.GroupReader().begin(kind, payload[:size], 0, size)
        none = bytearray(payload)
        none[11:13] = bytes(2)
        with pytest.raises(groups.RecordError):
            groups.GroupReader().begin(kind, bytes(none), 0, len(none))


@pytest.mark.parametrize("twin", TWINS)
def test_of_a_record_that_is_refused_nothing_is_gone_through(twin: dict[str, ModuleType]) -> None:
    data, _ = write(TWINS[0], [("changed", USUAL)])
    groups = twin["disqueue.wire.journal_groups"]
    reader = groups.GroupReader()
    reader.begin(STATES, data[9:], 0, len(data) - 9)
    assert reader.advance()
    with pytest.raises(groups.RecordError):
        reader.begin(STATES, data[9:-1], 0, len(data) - 10)
    assert not reader.advance()


@pytest.mark.parametrize("twin", TWINS)
def test_a_record_that_an_error_left_open_does_not_end_in_the_next_buffer(twin: dict[str, ModuleType]) -> None:
    records = twin["disqueue.journal.job_records"].JobRecords()
    job = make(twin, USUAL)
    buffer = bytearray(b"x" * 5000)
    records.begin(buffer, 0)
    records.changed(job, WALL_OFFSET_MS)
    with pytest.raises(ValueError, match="40 bytes"):
        records.ended_id(b"short", 1)
    wanted, _ = write(TWINS[0], [("changed", {**USUAL, "times": 1})])
    buffer = bytearray(b"before")
    records.begin(buffer, 1000)
    assert records.changed(job, WALL_OFFSET_MS) == len(wanted)
    records.finish()
    assert buffer == b"before" + wanted


@pytest.mark.parametrize("twin", TWINS)
def test_a_shared_record_with_a_ctime_before_all_times_is_refused(twin: dict[str, ModuleType]) -> None:
    data, _ = write(TWINS[0], [("whole", {**USUAL, "times": 1})])
    payload = bytearray(data[9:])
    Struct("<q").pack_into(payload, JOBS_BYTES + 1 + 29, -1)
    groups = twin["disqueue.wire.journal_groups"]
    reader = groups.GroupReader()
    reader.begin(JOBS, bytes(payload), 0, len(payload))
    with pytest.raises(groups.RecordError):
        reader.advance()


def test_shared_records_are_found_behind_a_fault() -> None:
    data, _ = write(TWINS[0], [("whole", USUAL), ("changed", USUAL), ("ended", USUAL)])
    starts = [start - 9 for _, start, _ in split_records(data)]
    for place in range(len(data)):
        assert next_record(data, place, 6, 1000) == min([start for start in starts if start >= place], default=len(data))
