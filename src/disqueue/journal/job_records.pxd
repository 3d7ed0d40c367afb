# The C side of a job's records.

cimport cython
from libc.stdint cimport int64_t, uint8_t
from disqueue.core.job cimport Job


@cython.final
cdef class JobRecords:
    cdef bytearray buffer
    cdef long long base
    cdef int kind
    cdef Py_ssize_t at
    cdef int count
    # What the jobs of the open record have in common.
    cdef char prefix[11]
    cdef int state
    cdef int flags
    cdef int nacks
    cdef int deliveries
    cdef int replicate
    cdef int64_t due_ms
    cdef object owners
    cdef int64_t retry_s
    cdef int64_t delay_s
    cdef int64_t ttl_s
    cdef bytes name
    cdef Py_ssize_t body_bytes
    cdef int64_t segment

    cpdef void begin(self, bytearray buffer, long long base) except *
    cpdef int finish(self) except -1
    cpdef Py_ssize_t whole(self, Job job, long long wall_offset_ms) except -1
    cpdef Py_ssize_t changed(self, Job job, long long wall_offset_ms) except -1
    cpdef Py_ssize_t ended(self, Job job, long long segment) except -1
    cpdef Py_ssize_t ended_id(self, bytes job_id, long long segment) except -1
    cdef bint has_room(self, int kind, Py_ssize_t size) noexcept
    cdef bint has_state(self, Job job, int64_t due_ms) except -1
    cdef bint is_like(self, Job job, bytes name) except -1
    cdef uint8_t* open(self, int kind, const char* job_id, Py_ssize_t size) except NULL
    cdef uint8_t* open_state(self, int kind, Job job, int64_t due_ms, Py_ssize_t size) except NULL
    cdef Py_ssize_t whole_alone(self, Job job, int64_t due_ms, int64_t expires_ms, bytes name) except -1
    cdef Py_ssize_t state_alone(self, Job job, int64_t due_ms) except -1
    cdef Py_ssize_t append_end(self, const char* job_id, int64_t segment) except -1
