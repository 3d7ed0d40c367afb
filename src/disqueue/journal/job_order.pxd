# C types of job_order.py.

cimport cython
from disqueue.core.job cimport Job

cdef Py_ssize_t _BLOCK_JOBS


cdef class JobOrder:
    cdef public list blocks
    cdef public list gone

    @cython.locals(last=list)
    cpdef add(self, Job job)
    @cython.locals(number="long long", gone="long long", block=list, one=Job)
    cpdef remove(self, Job job)
    @cython.locals(job=Job)
    cpdef list take_block(self, Py_ssize_t number)
