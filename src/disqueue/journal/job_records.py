"""Jobs as records of the journal. This is the plain twin; `job_records.pyx` takes a job's fields in C."""

from __future__ import annotations

from struct import Struct
from typing import Any

from disqueue.core.job import Job
from disqueue.wire.journal_format import (
    ENDS,
    ENDS_BYTES,
    ENDS_FIELDS,
    FRAME_BYTES,
    GROUP_BYTES_MAX,
    ID_BYTES,
    JOBS,
    JOBS_BYTES,
    JOBS_FIELDS,
    JOBS_ITEM_BYTES,
    PREFIX_BYTES,
    STATES,
    STATES_BYTES,
    STATES_FIELDS,
    TAIL_BYTES,
)
from disqueue.wire.journal_records import append_job, append_state, fill_frame

_STATES = Struct("<" + STATES_FIELDS)
_JOBS = Struct("<" + JOBS_FIELDS)
_ENDS = Struct("<" + ENDS_FIELDS)
_ITEM = Struct("<qi")
_COUNT = Struct("<H")
_COUNT_AT = FRAME_BYTES + 1 + PREFIX_BYTES


class JobRecords:
    """Appends what happens to jobs to a buffer. Those in a row that have most in common share a record (`journal_format`).

    Call `begin`, then for each job what it needs, and `finish` before anything else is appended. Each job's call returns what
    it takes, with the head of a record that it begins. `wall_offset_ms` is Unix time less monotonic time.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._base = 0
        self._kind = 0
        """Of the record that can take more jobs; 0: none."""
        self._at = 0
        """Where it begins."""
        self._count = 0
        self._key: tuple[Any, ...] = ()
        """What its jobs have in common."""

    def begin(self, buffer: bytearray, base: int) -> None:
        """Append to `buffer`, which will stand at `base` (see `wire.journal_records`)."""
        self._buffer = buffer
        self._base = base
        self._kind = 0  # a record that an exception left open ends in another buffer

    def finish(self) -> None:
        """End the record that is open."""
        if self._kind:
            _COUNT.pack_into(self._buffer, self._at + _COUNT_AT, self._count)
            fill_frame(self._buffer, self._base, self._at)
            self._kind = 0

    def whole(self, job: Job, wall_offset_ms: int) -> int:
        """Append all of a job."""
        name = b"" if job.queue is None else job.queue.name
        body = job.body
        ctime_ns = job.ctime_ns
        expires_ms = job.expires_ms + wall_offset_ms
        later_ms = expires_ms - (ctime_ns // 1_000_000 + job.ttl_s * 1000)
        lead = FRAME_BYTES + 1 + JOBS_BYTES + len(name)
        size = JOBS_ITEM_BYTES + len(body)
        if not _is_usual(job) or ctime_ns < 0 or not -(1 << 31) <= later_ms < 1 << 31 or lead + size > GROUP_BYTES_MAX:
            return self._whole_alone(job, wall_offset_ms, name, expires_ms)
        key = (*_state_key(job, wall_offset_ms), job.retry_s, job.delay_s, job.ttl_s, job.replicate, name, len(body))
        if self._joins(JOBS, key, size):
            lead = 0
        else:
            prefix, *state = key[:7]
            head = _JOBS.pack(prefix, 0, *state, job.retry_s, job.delay_s, job.ttl_s, job.replicate, len(name), len(body))
            self._open(JOBS, key, head + name)
        self._buffer += job.id[PREFIX_BYTES:] + _ITEM.pack(ctime_ns, later_ms) + body
        return lead + size

    def changed(self, job: Job, wall_offset_ms: int) -> int:
        """Append what changes in a job's life."""
        if not _is_usual(job):
            return self._state_alone(job, wall_offset_ms)
        key = _state_key(job, wall_offset_ms)
        lead = 0
        if not self._joins(STATES, key, TAIL_BYTES):
            prefix, *state = key
            self._open(STATES, key, _STATES.pack(prefix, 0, *state))
            lead = FRAME_BYTES + 1 + STATES_BYTES
        self._buffer += job.id[PREFIX_BYTES:]
        return lead + TAIL_BYTES

    def ended(self, job: Job, segment: int) -> int:
        """Append that a job is over, whose newest full record is in `segment`."""
        return self.ended_id(job.id, segment)

    def ended_id(self, job_id: bytes, segment: int) -> int:
        """The same for a job of which nothing but the id is known."""
        if len(job_id) != ID_BYTES:
            raise ValueError("a job id has 40 bytes")
        prefix = job_id[:PREFIX_BYTES]
        lead = 0
        if not self._joins(ENDS, (prefix, segment), TAIL_BYTES):
            self._open(ENDS, (prefix, segment), _ENDS.pack(prefix, 0, segment))
            lead = FRAME_BYTES + 1 + ENDS_BYTES
        self._buffer += job_id[PREFIX_BYTES:]
        return lead + TAIL_BYTES

    def _joins(self, kind: int, key: tuple[Any, ...], size: int) -> bool:
        """Whether a job of that size belongs to the open record; it counts there then."""
        joins = kind == self._kind and key == self._key and len(self._buffer) - self._at + size <= GROUP_BYTES_MAX
        self._count += joins
        return joins

    def _open(self, kind: int, key: tuple[Any, ...], head: bytes) -> None:
        """Begin a record, for one job so far. Its frame is filled in when it ends."""
        self.finish()
        self._kind = kind
        self._key = key
        self._count = 1
        self._at = len(self._buffer)
        self._buffer += bytes(FRAME_BYTES) + bytes((kind,)) + head

    def _whole_alone(self, job: Job, wall_offset_ms: int, name: bytes, expires_ms: int) -> int:
        self.finish()
        before = len(self._buffer)
        append_job(
            self._buffer,
            self._base,
            job.id,
            job.state,
            job.flags,
            job.nacks,
            job.deliveries,
            _due_wall_ms(job, wall_offset_ms),
            job.order_ns,
            job.owners,
            job.confirmed,
            job.ctime_ns,
            expires_ms,
            job.retry_s,
            job.delay_s,
            job.ttl_s,
            job.replicate,
            name,
            job.body,
        )
        return len(self._buffer) - before

    def _state_alone(self, job: Job, wall_offset_ms: int) -> int:
        self.finish()
        before = len(self._buffer)
        append_state(
            self._buffer,
            self._base,
            job.id,
            job.state,
            job.flags,
            job.nacks,
            job.deliveries,
            _due_wall_ms(job, wall_offset_ms),
            job.order_ns,
            job.owners,
            job.confirmed,
        )
        return len(self._buffer) - before


def _is_usual(job: Job) -> bool:
    """Whether a job may share a record, as far as its state is concerned."""
    return job.confirmed == 0 and job.order_ns == job.ctime_ns and job.owners.bit_length() < 64


def _due_wall_ms(job: Job, wall_offset_ms: int) -> int:
    return job.due_ms + wall_offset_ms if job.due_ms else 0


def _state_key(job: Job, wall_offset_ms: int) -> tuple[Any, ...]:
    due_ms = _due_wall_ms(job, wall_offset_ms)
    return job.id[:PREFIX_BYTES], job.state, job.flags, job.nacks, job.deliveries, due_ms, job.owners
