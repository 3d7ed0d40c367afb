cimport cython
from disqueue.core.delivery cimport Delivery
from disqueue.core.job cimport Job, id_of
from disqueue.core.membership cimport Membership
from disqueue.core.peer cimport Peer
from disqueue.core.peer_jobs cimport PeerJobs
from disqueue.core.queue cimport Queue
from disqueue.wire.frames cimport encode_job

cdef int ACTIVE, ASK_AHEAD_MS, DELAYED, LEASED, MOVED, WAIT_REPL, BATCH_IDS, SHARED_JOBS, SHARED_JOB_BYTES

cdef class Peers(Delivery):
    cdef public Membership members
    cdef public bytes random_block
    cdef public int random_offset
    cdef public long long first_target
    cdef public list held_back
    cdef dict peers_of_masks
    cdef object named_mask, named_among, named_wire

    cpdef init_peers(self, members)
    @cython.locals(found=list)
    cpdef list others(self, mask)
    cdef list _find_others(self, mask)
    cpdef PeerJobs jobs_of(self, Peer peer)
    @cython.locals(data=PeerJobs, slot=Py_ssize_t)
    cpdef from_peer_mask(self, Peer peer, mask)
    @cython.locals(data=PeerJobs, by_slot=list)
    cpdef send_slots(self, Peer peer)
    cpdef bint send(self, Peer peer, record) except -1
    @cython.locals(ids=list, numbers=list)
    cpdef tell(self, Peer peer, int kind, bytes job_id, long long number=*)
    @cython.locals(outbox=list)
    cdef bint _is_open(self, Peer peer, int limit) except -1
    cdef _open(self, Peer peer, record, kind, int number, list items, list numbers)
    cpdef promise(self, Peer peer, int kind, bytes job_id)
    cpdef tell_all(self, peers, int kind, bytes job_id, long long number=*)
    @cython.locals(ids=list, masks=list)
    cpdef tell_ack(self, Peer peer, kind, bytes job_id, owners)
    @cython.locals(peer=Peer)
    cpdef send_job(self, peers, kind, Job job, bint queue_now=*)
    @cython.locals(jobs=list, numbers=list)
    cpdef send_offer(self, Peer peer, Job job)
    @cython.locals(jobs=list)
    cdef _append_job(self, Peer peer, kind, raw, bint queue_now)
    @cython.locals(wait_ms="long long", left_ms="long long", queue=Queue)
    cpdef encode(self, Job job)
    @cython.locals(members=Membership)
    cpdef wire_owners(self, mask)
    @cython.locals(data=PeerJobs)
    cpdef mask_of(self, Peer peer, mask)
    cpdef long long random_below(self, long long limit) except? -1
