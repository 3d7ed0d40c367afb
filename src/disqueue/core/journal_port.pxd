# C types of journal_port.py.

from disqueue.core.job cimport Job
from disqueue.core.queue cimport Queue


cdef class JournalPort:
    cdef public str error
    cdef public bint always_synced
    cdef public bint full

    cpdef job_added(self, Job job)
    cpdef job_changed(self, Job job)
    cpdef body_dropped(self, Job job)
    cpdef job_forgotten(self, Job job)
    cpdef queue_changed(self, Queue queue)
    cpdef node_changed(self)
