from libc.stdint cimport uint32_t, uint64_t


cdef struct Generation:
    char* ids
    uint64_t* slots
    uint32_t count
    uint32_t capacity


cdef class RecentIds:
    cdef Generation young
    cdef Generation old
    cdef long long started_ms

    cpdef add(self, bytes job_id, long long now_ms)
    cpdef bint holds(self, bytes job_id) except -1
    cpdef clear(self)
