"""A job as records of the journal. This is the plain twin; `job_records.pyx` takes a job's fields in C."""

from __future__ import annotations

from disqueue.core.job import Job
from disqueue.wire.journal_records import append_forgotten, append_job, append_state


def append_whole(buffer: bytearray, base: int, job: Job, wall_offset_ms: int) -> None:
    """Append all of a job."""
    due_ms = job.due_ms
    if due_ms != 0:
        due_ms += wall_offset_ms
    queue = job.queue
    append_job(
        buffer,
        base,
        job.id,
        job.state,
        job.flags,
        job.nacks,
        job.deliveries,
        due_ms,
        job.order_ns,
        job.owners,
        job.confirmed,
        job.ctime_ns,
        job.expires_ms + wall_offset_ms,
        job.retry_s,
        job.delay_s,
        job.ttl_s,
        job.replicate,
        b"" if queue is None else queue.name,
        job.body,
    )


def append_changed(buffer: bytearray, base: int, job: Job, wall_offset_ms: int) -> None:
    """Append what changes in a job's life."""
    due_ms = job.due_ms
    if due_ms != 0:
        due_ms += wall_offset_ms
    append_state(
        buffer,
        base,
        job.id,
        job.state,
        job.flags,
        job.nacks,
        job.deliveries,
        due_ms,
        job.order_ns,
        job.owners,
        job.confirmed,
    )


def append_ended(buffer: bytearray, base: int, job: Job, segment: int) -> None:
    """Append that a job is over, whose newest full record is in `segment`."""
    append_forgotten(buffer, base, job.id, segment)
