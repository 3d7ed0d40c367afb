"""A job as records of the journal: the compiled twin of `job_records.py`."""

from disqueue.core.job cimport Job
from disqueue.core.queue cimport Queue
from disqueue.wire.journal_records cimport write_forgotten, write_job, write_state


cpdef void append_whole(bytearray buffer, long long base, Job job, long long wall_offset_ms) except *:
    """See the plain twin."""
    cdef long long due_ms = job.due_ms
    if due_ms != 0:
        due_ms += wall_offset_ms
    cdef Queue queue = job.queue
    write_job(
        buffer, base, job.id_text, job.state, job.flags, job.nacks, job.deliveries, due_ms, job.order_ns, job.owners,
        job.confirmed, job.ctime_ns, job.expires_ms + wall_offset_ms, job.retry_s, job.delay_s, job.ttl_s, job.replicate,
        b"" if queue is None else queue.name, job.body
    )


cpdef void append_changed(bytearray buffer, long long base, Job job, long long wall_offset_ms) except *:
    """See the plain twin."""
    cdef long long due_ms = job.due_ms
    if due_ms != 0:
        due_ms += wall_offset_ms
    write_state(
        buffer, base, job.id_text, job.state, job.flags, job.nacks, job.deliveries, due_ms, job.order_ns, job.owners,
        job.confirmed
    )


cpdef void append_ended(bytearray buffer, long long base, Job job, long long segment) except *:
    """See the plain twin."""
    write_forgotten(buffer, base, job.id_text, segment)
