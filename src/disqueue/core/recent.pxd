cdef int GENERATION_MS, GENERATION_IDS

cdef class RecentIds:
    cdef public set young
    cdef public set old
    cdef public long long started_ms

    cpdef add(self, bytes job_id, long long now_ms)
    cpdef bint holds(self, bytes job_id) except -1
