cimport cython
from disqueue.core.demand cimport Demand
from disqueue.core.job cimport Job, id_of
from disqueue.core.offers cimport Offers
from disqueue.core.peer cimport Peer
from disqueue.core.peer_jobs cimport PeerJobs
from disqueue.core.queue cimport Queue
from disqueue.wire.frames cimport JobRecord

cdef int ACKED, ACTIVE, DELIVERED, GONE, LEASED, MOVED, ONCE_QUEUED, WAIT_REPL
cdef int BATCH_MS, BY_MOVE, HANDOFF, MAX_BATCH, MISSING, RECEIVED, WITHDRAW_MS

cdef class Federation(Offers):
    cpdef Demand demand_of(self, Queue queue)
    @cython.locals(batch="long long", credit="long long", known="long long", peer=Peer)
    cdef _ask(self, Demand demand, long long wanted, bint waiting)
    @cython.locals(demand=Demand, credit="long long")
    cpdef use_credit(self, Peer peer, Queue queue)
    cdef _came_in_vain(self, Peer peer, Queue queue)
    cdef _watch(self, Demand demand)
    @cython.locals(job=Job, sent="long long")
    cdef long long _send_jobs(self, Peer peer, Queue queue, long long limit) except -1
    @cython.locals(queue=Queue, data=PeerJobs, job_id=bytes)
    cpdef move_to(self, Peer peer, Job job)
    @cython.locals(record=JobRecord, job=Job, job_id=bytes)
    cpdef jobs_moved_here(self, Peer peer, list records)
    @cython.locals(job=Job)
    cpdef job_handed_here(self, Peer peer, bytes job_id)
    cdef _import(self, Peer peer, Job job)
    @cython.locals(queue=Queue, demand=Demand, credit="long long")
    cpdef count_import(self, Peer peer, Job job)
    @cython.locals(job=Job)
    cpdef move_received(self, Peer peer, bytes job_id)
    cpdef handed_over(self, Peer peer, Job job)
