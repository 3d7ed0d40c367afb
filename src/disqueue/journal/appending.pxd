cpdef int append_all(long long descriptor, data) except -1
