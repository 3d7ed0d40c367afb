# The C side of the records in frames; other compiled modules cimport it from here.

cimport cython


@cython.final
cdef class JobRecord:
    cdef public bytes id
    cdef public bytes queue
    cdef public bytes body
    cdef public long long ctime_ns
    cdef public long long ttl_s
    cdef public long long retry_s
    cdef public long long delay_s
    cdef public int replicate
    cdef public long long left_ms
    cdef public long long wait_ms
    cdef public int nacks
    cdef public int deliveries
    cdef public object owners


cpdef encode_job(
    bytes job_id, bytes queue, bytes body, long long ctime_ns, long long ttl_s, long long retry_s, long long delay_s,
    long long replicate, long long left_ms, long long wait_ms, long long nacks, long long deliveries, owners
)
cpdef bytes encode_records(records)
cpdef list decode_records(payload)
