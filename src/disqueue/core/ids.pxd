cdef class JobIds:
    cdef bytes prefix
    cdef public object entropy
    cdef bytes block
    cdef Py_ssize_t offset

    cpdef bytes make(self, long long ttl_s, long long retry_s)
    cdef int write(self, char* text, long long ttl_s, long long retry_s) except -1

cpdef long long ttl_field(long long ttl_s, long long retry_s)
cpdef bint is_valid_id(bytes job_id)
cpdef long long id_ttl_minutes(bytes job_id)
cpdef bint is_at_least_once(bytes job_id)
