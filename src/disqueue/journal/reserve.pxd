# C types of reserve.py.


cdef class Reserve:
    cdef public object disk
    cdef public object executor
    cdef public long long size
    cdef public long long held_bytes
    cdef public bint spent
    cdef public long long left_bytes
    cdef bint _taking
    cdef long long _try_at_ms

    cpdef long long deadline_ms(self) except? -2
