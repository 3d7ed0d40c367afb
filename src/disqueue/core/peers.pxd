cimport cython
from disqueue.core.delivery cimport Delivery
from disqueue.core.job cimport Job

cdef int ACTIVE, ASK_AHEAD_MS, DELAYED, LEASED, MOVED, WAIT_REPL

cdef class Peers(Delivery):
    cdef public object members
    cdef public bytes random_block
    cdef public int random_offset
    cdef public long long first_target
    cdef public list held_back

    cpdef init_peers(self, members)
    @cython.locals(slot=int)
    cpdef list others(self, mask)
    cpdef tell(self, peer, int kind, bytes job_id, long long number=*)
    cpdef promise(self, peer, int kind, bytes job_id)
    cpdef tell_ack(self, peer, kind, bytes job_id, owners)
    cpdef send_job(self, peers, kind, Job job, bint queue_now=*)
    cdef _append_job(self, list outbox, kind, raw, bint queue_now)
    @cython.locals(wait_ms="long long")
    cpdef encode(self, Job job)
    cpdef long long random_below(self, long long limit) except? -1
