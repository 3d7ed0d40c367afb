from disqueue.core.client cimport Answer, Client

cdef class Copying(Answer):
    cdef public Client client
    cdef public bytes job_id
    cdef public long long deadline_ms
    cdef public bint external
    cdef public object confirmed
    cdef public object told
    cdef public object refused
    cdef public object reason
    cdef public object repeated
    cdef public bint paused
    cdef public long long next_ms
    cdef public long long step_ms
