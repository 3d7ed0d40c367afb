cdef class Statistics:
    cdef public long long connections
    cdef public long long rejected_connections
    cdef public long long input_bytes
    cdef public long long output_bytes
    cdef public long long input_faults
    cdef public long long output_limit_closes
    cdef public long long next_sample_ms
    cdef public object samples

    cpdef reset(self)
    cpdef sample(self, long long now_ms, object dispatcher)
