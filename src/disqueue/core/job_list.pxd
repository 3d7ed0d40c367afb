cimport cython
from disqueue.core.job cimport Job, is_before

cdef int _BLOCK_JOBS
cdef int COMPACT_AT

cdef class JobList:
    cdef public list blocks
    cdef public Py_ssize_t first_block
    cdef public long long count

    @cython.locals(blocks=list, block=list, last=Job)
    cpdef add(self, Job job)
    @cython.locals(block=list)
    cpdef Job last(self)
    @cython.locals(block=list, job=Job)
    cpdef Job pop_first(self)
    @cython.locals(blocks=list, block=list, number=Py_ssize_t, index=Py_ssize_t)
    cpdef remove(self, Job job)
    cpdef clear(self)
    cdef _drop_first(self)
    @cython.locals(block=list, half=list, number=Py_ssize_t)
    cdef _insert(self, Job job)
    @cython.locals(block=list, last=Job, low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
    cdef Py_ssize_t _block_of(self, Job job) except -1

@cython.locals(other=Job, low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t)
cdef Py_ssize_t _place(list block, Job job) except -1
