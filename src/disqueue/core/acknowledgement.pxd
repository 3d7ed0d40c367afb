cimport cython
from disqueue.core.job cimport Job, new_job
from disqueue.core.queue cimport Queue
from disqueue.core.replication cimport Replication

cdef int ACKED, ACTIVE, ASKED, DELAYED, DELETED, HELD, LEASED, MOVED, PLACEHOLDER, QUEUED, WAIT_REPL
cdef int ASK_AHEAD_MS, BY_NACK, BY_TIME

cdef class Acknowledgement(Replication):
    cdef public long long placeholders

    cpdef init_acknowledgement(self)
    @cython.locals(queue=Queue)
    cpdef bint ack(self, Job job) except -1
    cdef _become_acked(self, Job job)
    cpdef spread_ack(self, Job job)
    cdef _finish_ack(self, Job job)
    @cython.locals(job=Job, first_time=bint)
    cpdef ack_told(self, peer, bytes job_id, owners)
    @cython.locals(job=Job)
    cpdef ack_confirmed(self, peer, bytes job_id, owners)
    @cython.locals(job=Job)
    cpdef delete_told(self, bytes job_id)
