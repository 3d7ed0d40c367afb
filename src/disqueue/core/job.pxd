from disqueue.core.ids cimport JobIds
from disqueue.core.timers cimport Timed


cdef class Job(Timed):
    cdef char id_text[40]
    cdef unsigned int id_hash
    cdef public unsigned int journal_segment
    cdef public unsigned int journal_state
    cdef public unsigned int offer
    cdef public unsigned char journal_flags
    cdef public unsigned char state
    cdef public unsigned char attempts
    cdef public unsigned char journal_state_bytes
    cdef public unsigned short replicate
    cdef public unsigned short nacks
    cdef public unsigned short deliveries
    cdef public unsigned short flags
    cdef public unsigned int journal_bytes
    cdef public bytes body
    cdef public object queue
    cdef public long long ctime_ns
    cdef public long long order_ns
    cdef public long long expires_ms
    cdef public long long due_ms
    cdef public long long ttl_s
    cdef public long long retry_s
    cdef public long long delay_s
    cdef public object owners
    cdef public object confirmed
    cdef public object waiter

cdef unsigned int hash_of_id(const char* text) noexcept
cpdef bytes id_of(Job job)
cpdef Job new_job(bytes job_id, object queue, bytes body, long long ctime_ns)
cpdef Job make_job(JobIds ids, long long ttl_s, long long retry_s, object queue, bytes body, long long ctime_ns)
cpdef bint is_before(Job job, Job other)
