"""The ordered list of a queue and the table of all jobs, against plain Python collections."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disqueue.core.ids import JobIds, id_ttl_minutes, is_at_least_once, is_valid_id
from disqueue.core.job import Job, new_job
from disqueue.core.job import make_job as make_job_with_id
from disqueue.core.job_list import BLOCK_JOBS, JobList
from disqueue.core.job_replies import reply_id, reply_job
from disqueue.core.job_table import JobTable, scan_position
from disqueue.core.queue import Queue
from disqueue.wire.resp import ReplyWriter


def make_job(order: int, number: int = 0) -> Job:
    return new_job(b"D-00000000-%024d-05a1" % number, None, b"", order)


def key_of(job: Job) -> tuple[int, bytes]:
    return (job.order_ns, job.id)


STEPS = st.lists(st.tuples(st.sampled_from(["add", "add", "add", "pop", "remove", "page"]), st.integers(0, 10**6)), max_size=120)


@settings(max_examples=200, deadline=None)
@given(steps=STEPS, sorted_first=st.integers(0, 3 * BLOCK_JOBS))
def test_job_list_keeps_order(steps: list[tuple[str, int]], sorted_first: int) -> None:
    jobs = JobList()
    model: list[Job] = []
    number = 0
    for order in range(sorted_first):
        number += 1
        job = make_job(order * 100, number)
        jobs.add(job)
        model.append(job)
    for name, value in steps:
        if name == "add":
            number += 1
            job = make_job(value, number)
            jobs.add(job)
            model.append(job)
            model.sort(key=key_of)
        elif name == "pop":
            assert jobs.pop_first() is (model.pop(0) if model else None)
        elif name == "remove" and model:
            job = model.pop(value % len(model))
            jobs.remove(job)
        elif name == "page":
            offset = value % 700
            assert jobs.page(offset, 5, False) == model[offset : offset + 5]
            assert jobs.page(offset, 5, True) == model[::-1][offset : offset + 5]
        assert jobs.count == len(model)
        assert jobs.page(0, 1, False) == model[:1]
        assert jobs.last() is (model[-1] if model else None)
    assert jobs.page(0, 10**6, False) == model


def test_late_arrivals_in_reverse_order() -> None:
    """Every job comes before all others: blocks split, nothing is lost."""
    jobs = JobList()
    added = [make_job(10_000 - number, number) for number in range(10_000)]
    for job in added:
        jobs.add(job)
    assert [jobs.pop_first() for _ in added] == added[::-1]
    assert jobs.pop_first() is None


def make_ids(count: int) -> list[bytes]:
    state = [1]

    def entropy(length: int) -> bytes:
        state[0] = state[0] * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        return b"".join(
            ((state[0] + index) * 0x9E3779B97F4A7C15 & (1 << 64) - 1).to_bytes(8, "big") for index in range(length // 8 + 1)
        )[:length]

    ids = JobIds(b"0123456789abcdef" * 3, entropy)
    return [ids.make(86400, 300) for _ in range(count)]


@settings(max_examples=20, deadline=None)
@given(limit=st.integers(1, 50), gone=st.integers(0, 200))
def test_scan_sees_every_job_that_stays(limit: int, gone: int) -> None:
    """Jobs that are there all the time are listed exactly once, whatever is added and removed meanwhile."""
    ids = make_ids(500)
    table = JobTable()
    for job_id in ids:
        table.add(new_job(job_id, None, b"", 0))
    seen: list[bytes] = []
    cursor = 0
    rounds = 0
    while True:
        page, cursor = table.scan(cursor, limit)
        seen.extend(job.id for job in page)
        rounds += 1
        if rounds == 2:
            for job_id in ids[:gone]:
                job = table.get(job_id)
                assert job is not None
                table.remove(job)
        if cursor == 0:
            break
        assert 0 < cursor < 1 << 63
    assert len(seen) == len(set(seen))
    assert set(ids[gone:]) <= set(seen)
    assert len(table) == 500 - gone
    assert {job.id for job in table} == set(ids[gone:])


@pytest.mark.parametrize("count", [5, 700, 60_000])
def test_jobs_whose_ids_begin_alike_are_found_and_go(count: int) -> None:
    """All share one part of the table, which is made for a few hundred; in C more of a hash counts from 2^16 places on."""
    table = JobTable()
    jobs = [new_job(b"D-01234567-AA%022d-05a1" % (number * 7919), None, b"", 1) for number in range(count)]
    for job in jobs:
        table.add(job)
    assert all(table.get(job.id) is job for job in jobs)
    for job in jobs[::2]:
        table.remove(job)
    assert [table.get(job.id) for job in jobs[:1000]] == [job if number % 2 else None for number, job in enumerate(jobs[:1000])]
    assert all(table.get(job.id) is job for job in jobs[1::2])
    for job in jobs[1::2]:
        table.remove(job)
    assert len(table) == 0
    with pytest.raises(KeyError):
        table.remove(jobs[0])


def test_scan_order_is_the_order_of_positions() -> None:
    table = JobTable()
    for job_id in make_ids(300):
        table.add(new_job(job_id, None, b"", 0))
    page, cursor = table.scan(0, 1000)
    assert cursor == 0
    positions = [scan_position(job.id) for job in page]
    assert positions == sorted(positions)


def test_ids_have_the_shape_that_clients_know() -> None:
    ids = make_ids(600)
    assert len(set(ids)) == 600
    for job_id in ids:
        assert is_valid_id(job_id)
        assert job_id.startswith(b"D-01234567-")
        assert id_ttl_minutes(job_id) == 1441
        assert is_at_least_once(job_id)


def test_ttl_field_tells_the_kind_of_delivery() -> None:
    ids = JobIds(b"a" * 40, lambda length: bytes(length))
    expected = {
        (59, 1): b"0001",
        (59, 0): b"0000",
        (120, 5): b"0003",
        (120, 0): b"0002",
        (10**9, 1): b"ffff",
        (10**9, 0): b"fffe",
    }
    for (ttl_s, retry_s), field in expected.items():
        assert ids.make(ttl_s, retry_s)[36:] == field


def test_what_is_no_id() -> None:
    good = b"D-00000000-aaaaaaaaaaaaaaaaaaaaaaaa-05a1"
    assert is_valid_id(good)
    for bad in (
        b"",
        good[:-1],
        good + b"x",
        b"d" + good[1:],
        b"DX" + good[2:],
        good[:10] + b"x" + good[11:],
        good[:35] + b"x" + good[36:],
    ):
        assert not is_valid_id(bad)


def test_a_node_id_must_be_whole() -> None:
    with pytest.raises(ValueError, match="40 characters"):
        JobIds(b"short", lambda length: bytes(length))


def test_the_random_part_is_the_base64_of_what_was_drawn() -> None:
    drawn = bytes(range(256)) * 18
    ids = JobIds(b"a" * 40, lambda length: drawn[:length])
    made = [ids.make(60, 1) for _ in range(256)]
    assert b"".join(job_id[11:35] for job_id in made) == b64encode(drawn)


def test_an_id_is_never_made_of_less_than_was_asked_for() -> None:
    ids = JobIds(b"a" * 40, lambda length: b"x" * 17)
    for _ in range(2):
        with pytest.raises(ValueError, match="4608 bytes"):
            ids.make(60, 1)


def test_a_job_made_with_its_id_is_like_one_that_is_given_it() -> None:
    first, second = (JobIds(b"a" * 40, lambda length: bytes(length)) for _ in range(2))
    job, other = make_job_with_id(first, 3600, 60, None, b"body", 7), new_job(second.make(3600, 60), None, b"body", 7)  # type: ignore[arg-type]
    assert (job.id, job.body, job.ctime_ns, job.order_ns) == (other.id, other.body, other.ctime_ns, other.order_ns)
    assert (job.ttl_s, job.retry_s) == (3600, 60)
    table = JobTable()
    table.add(job)
    assert table.get(other.id) is job


@pytest.mark.parametrize("with_counters", [False, True])
@given(name=st.binary(max_size=300), body=st.binary(max_size=2000), counters=st.tuples(*[st.integers(0, 65535)] * 2))
def test_a_job_is_written_as_the_writer_would(with_counters: bool, name: bytes, body: bytes, counters: tuple[int, int]) -> None:
    job = new_job(b"D-00000000-%024d-05a1" % 1, Queue(name, 0), body, 0)
    job.nacks, job.deliveries = counters
    written, expected = ReplyWriter(), ReplyWriter()
    for _ in range(3):
        reply_id(written, job)
        reply_job(written, job, with_counters)
        expected.status(job.id)
        if with_counters:
            expected.job_with_counters(name, job.id, body, *counters)
        else:
            expected.job(name, job.id, body)
    assert written.take() == expected.take()
