from cpython.ref cimport PyObject

from disqueue.core.job cimport Job

cdef struct Shard:
    PyObject** slots
    unsigned int mask
    unsigned int used


cdef class JobTable:
    cdef Shard* shards
    cdef public long long count

    cpdef Job get(self, bytes job_id)
    cpdef add(self, Job job)
    cpdef remove(self, Job job)
    cdef int resize(self, Shard* shard, unsigned int capacity) except -1
    cdef list members(self, int number)
