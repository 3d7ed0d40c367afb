from disqueue.core.timers cimport Timed

cdef class Answer:
    cdef public bytes text


cdef class Client(Timed):
    cdef public long long id
    cdef public object reply
    cdef public object connection
    cdef public object address
    cdef public bytes name
    cdef public bytes library_name
    cdef public bytes library_version
    cdef public bint authenticated
    cdef public bint monitor
    cdef public bint unix_socket
    cdef public bint close_asap
    cdef public bint close_after_reply
    cdef public int reply_mode
    cdef public long long connected_ms
    cdef public long long active_ms
    cdef public bytes last_command
    cdef public int blocked
    cdef public list waiting_queues
    cdef public long long wanted_jobs
    cdef public bint with_counters
    cdef public object request
    cdef public object pending_adds
