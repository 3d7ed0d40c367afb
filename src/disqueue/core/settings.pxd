cdef class Settings:
    cdef public long long maxmemory_bytes
    cdef public bint evict_acks
    cdef public long long max_job_bytes
    cdef public long long max_queue_name_bytes
    cdef public long long queue_idle_ms
    cdef public long long node_timeout_ms
