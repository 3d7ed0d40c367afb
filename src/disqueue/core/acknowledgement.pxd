cimport cython
from disqueue.core.job cimport Job, id_of, new_job
from disqueue.core.masks cimport covers, unconfirmed
from disqueue.core.membership cimport Membership
from disqueue.core.peer cimport Peer
from disqueue.core.queue cimport Queue
from disqueue.core.replication cimport Replication

cdef int ACKED, ACTIVE, ASKED, DELAYED, DELETED, HELD, LEASED, MOVED, ONCE_QUEUED, PLACEHOLDER, QUEUED, WAIT_REPL
cdef int ASK_AHEAD_MS, BY_NACK, BY_TIME
cdef int ACK_RETRY_MS, ACK_RETRY_LIMIT_MS, DOUBLINGS, _TAKEOVER_JITTER_MS, DELETE

cdef class Acknowledgement(Replication):
    cdef public long long placeholders

    cpdef init_acknowledgement(self)
    @cython.locals(queue=Queue)
    cpdef bint ack(self, Job job) except -1
    cdef _become_acked(self, Job job)
    @cython.locals(peer=Peer, wait_ms="long long", job_id=bytes)
    cpdef spread_ack(self, Job job)
    @cython.locals(members=Membership)
    cdef _unaware(self, Job job)
    @cython.locals(job_id=bytes)
    cdef _finish_ack(self, Job job)
    @cython.locals(job=Job, first_time=bint, queue=Queue)
    cpdef ack_told(self, Peer peer, bytes job_id, owners)
    @cython.locals(job=Job, other=Peer)
    cpdef ack_confirmed(self, Peer peer, bytes job_id, owners)
    @cython.locals(job=Job)
    cpdef delete_told(self, Peer peer, bytes job_id)
    cpdef ack_resolved(self, bytes job_id, bint known)
    cdef long long _renew_ms(self, Job job)
