cimport cython
from disqueue.core.forwarding cimport Forwarding
from disqueue.core.job cimport Job, id_of
from disqueue.core.peer cimport Peer
from disqueue.core.peer_jobs cimport PeerJobs
from disqueue.core.queue cimport Queue
from disqueue.wire.frames cimport JobRecord

cdef int ACTIVE, DELAYED, HELD, BY_MOVE, ACCEPT, ASK_HELD, MISSING, RELEASE, RELEASED, WITHDRAWN

cdef class Offers(Forwarding):
    cdef public long long last_offer
    cdef public dict given

    cpdef use_credit(self, Peer peer, Queue queue)
    cpdef count_import(self, Peer peer, Job job)
    @cython.locals(data=PeerJobs, job_id=bytes)
    cpdef offer_to(self, Peer peer, Job job)
    @cython.locals(data=PeerJobs, job=Job)
    cpdef offer_accepted(self, Peer peer, bytes job_id, long long offer)
    cdef _own_once(self, Job job)
    @cython.locals(job=Job)
    cpdef job_released(self, Peer peer, bytes job_id)
