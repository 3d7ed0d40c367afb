cimport cython
from disqueue.core.job cimport Job

cdef bytes ORDER
cdef int RANDOM_AT

cdef class JobTable:
    cdef public list shards
    cdef public long long count

    @cython.locals(shard=dict)
    cpdef Job get(self, bytes job_id)
    @cython.locals(shard=dict)
    cpdef add(self, Job job)
    @cython.locals(shard=dict)
    cpdef remove(self, Job job)

cdef int _shard_of(bytes job_id)
