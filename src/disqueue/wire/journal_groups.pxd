# The C side of records about several jobs.

cimport cython
from libc.stdint cimport int64_t
from disqueue.wire.journal_records cimport JobFields


@cython.final
cdef class GroupReader:
    cdef public JobFields fields
    cdef public unsigned int target
    cdef public Py_ssize_t size
    cdef int kind
    cdef bytes data
    cdef Py_ssize_t at
    cdef Py_ssize_t left
    cdef char prefix[11]
    cdef Py_ssize_t lead
    cdef Py_ssize_t body_bytes

    cpdef void begin(self, int kind, bytes data, Py_ssize_t start, Py_ssize_t end) except *
    cpdef bint advance(self) except -1

cpdef list subjects(int kind, bytes data, Py_ssize_t start, Py_ssize_t end)
