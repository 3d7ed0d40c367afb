cdef int RANDOM_TEXT_BYTES
cdef int DASH

cdef class JobIds:
    cdef public bytes prefix
    cdef public object entropy
    cdef public bytes block
    cdef public Py_ssize_t offset
    cdef public dict suffixes

    cpdef bytes make(self, long long ttl_s, long long retry_s)
    cdef bytes _make_suffix(self, long long key, long long ttl_s, long long retry_s)

cpdef long long ttl_field(long long ttl_s, long long retry_s)
cpdef bint is_valid_id(bytes job_id)
