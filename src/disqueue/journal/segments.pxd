# C types of segments.py.

cdef class Segment:
    cdef public long long number
    cdef public long long salt
    cdef public long long size
    cdef public bint settled
    cdef public long long jobs
    cdef public long long job_bytes
    cdef public Py_ssize_t name_bytes
    cdef public long long states
    cdef public long long state_bytes
    cdef public dict endings


cdef class SegmentTable:
    cdef public bytes node_id
    cdef public dict by_number
    cdef public Segment active
    cdef public long long upcoming
    cdef public long long next_number
    cdef public list removing
    cdef public set unsettled
    cdef public long long runs
    cdef public long long base_bytes
    cdef public bint complete
    cdef public long long doubtful
