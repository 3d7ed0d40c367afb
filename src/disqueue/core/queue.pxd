cimport cython
from disqueue.core.job_list cimport JobList


@cython.final
cdef class Queue:
    cdef public bytes name
    cdef public JobList jobs
    cdef public object waiters
    cdef public int pause
    cdef public long long known_jobs
    cdef public long long delayed_jobs
    cdef public bint visible
    cdef public bint ready
    cdef public bint in_idle
    cdef public object demand
    cdef public unsigned long long scan_hash
    cdef public long long created_ms
    cdef public long long used_ms
    cdef public long long jobs_in
    cdef public long long jobs_out
    cdef public long long added
    cdef public long long requeued
    cdef public long long delivered
    cdef public long long acked
    cdef public long long expired
    cdef public long long imported
    cdef public long long exported

    cpdef reset(self, long long now_ms)
