# cython: boundscheck=False, wraparound=False
"""One job, in C: the id stands inside the object, and the cyclic garbage collector does not look at it.

Every reference from a job to something that refers to it (its queue while it is queued, its copying while it is copied) is taken
back when that ends, so that there is nothing for the collector to find.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy

from disqueue.core.ids cimport JobIds
from disqueue.core.job_state import *


cdef uint64_t HASH_KEY = <uint64_t>hash(b"ids of jobs")  # Python draws it for each process


cdef unsigned int hash_of_id(const char* text) noexcept:
    """Hash the 40 bytes of an id, differently in each process: a client that makes ids up must not find those that collide."""
    cdef uint64_t words[5]
    cdef uint64_t value = HASH_KEY
    cdef int index
    memcpy(words, text, 40)
    for index in range(5):
        value = (value ^ words[index]) * <uint64_t>0x9E3779B97F4A7C15
        value ^= value >> 29
    return <unsigned int>(value ^ (value >> 32))


@cython.final
@cython.no_gc
cdef class Job(Timed):
    def __cinit__(self):
        self.timer_slot = -1
        self.body = b""
        self.replicate = 1
        self.state = 1
        self.owners = 1
        self.confirmed = 0

    @property
    def id(self):
        return PyBytes_FromStringAndSize(self.id_text, 40)


cpdef bytes id_of(Job job):
    """Return the id of a job: `job.id`, called as C."""
    return PyBytes_FromStringAndSize(job.id_text, 40)


cpdef Job new_job(bytes job_id, object queue, bytes body, long long ctime_ns):
    """Return a job with its identity; the caller fills in the rest."""
    if len(job_id) != 40:
        raise ValueError("a job id has 40 bytes")
    cdef Job job = Job.__new__(Job)
    memcpy(job.id_text, PyBytes_AS_STRING(job_id), 40)
    job.id_hash = hash_of_id(job.id_text)
    job.queue = queue
    job.body = body
    job.ctime_ns = ctime_ns
    job.order_ns = ctime_ns
    return job


cpdef Job make_job(JobIds ids, long long ttl_s, long long retry_s, object queue, bytes body, long long ctime_ns):
    """Return a job with a new id, which is written in its place; the caller fills in the rest."""
    cdef Job job = Job.__new__(Job)
    ids.write(job.id_text, ttl_s, retry_s)
    job.id_hash = hash_of_id(job.id_text)
    job.queue = queue
    job.body = body
    job.ttl_s = ttl_s
    job.retry_s = retry_s
    job.ctime_ns = ctime_ns
    job.order_ns = ctime_ns
    return job


cpdef bint is_before(Job job, Job other):
    """Tell whether `job` comes before `other` in a queue: by order, then by id."""
    if job.order_ns != other.order_ns:
        return job.order_ns < other.order_ns
    return memcmp(job.id_text, other.id_text, 40) < 0
