from disqueue.core.client cimport Client

cdef class Copying:
    cdef public Client client
    cdef public bint external
    cdef public object confirmed
    cdef public object refused
    cdef public bint paused
    cdef public long long next_ms
    cdef public long long step_ms
