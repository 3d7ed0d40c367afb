cimport cython
from disqueue.core.client cimport Client
from disqueue.core.forwarding cimport Forwarding
from disqueue.core.handover cimport Handover
from disqueue.core.job cimport Job
from disqueue.core.membership cimport Membership
from disqueue.core.peer cimport Peer
from disqueue.core.queue cimport Queue
from disqueue.core.settings cimport Settings

cdef int STALL_MS, STALLS_APART_MS, LINKS_WAIT_MS, DELETE, HANDOFF, RECEIVED, STORED

cdef class Node(Handover):
    cdef public long long dropped_once

    @cython.locals(members=Membership)
    cpdef begin_pass(self, long long now_ms, long long wall_ms)
    @cython.locals(members=Membership, wake_ms="long long")
    cpdef advance(self)
    cdef _has_stalled(self, long long late_ms)
    @cython.locals(deadline_ms="long long", wake_ms="long long")
    cpdef long long next_deadline_ms(self)
    cpdef end_pass(self)
    cpdef receive(self, Peer peer, list records)
    @cython.locals(kind=int, ids=list, numbers=list, job_id=bytes)
    cdef _receive_batch(self, Peer peer, batch)
    @cython.locals(job_id=bytes)
    cdef _receive_usual(self, Peer peer, int kind, list ids)
    @cython.locals(index=Py_ssize_t)
    cdef _receive_set_ack(self, Peer peer, list ids, list masks)
    @cython.locals(index=Py_ssize_t)
    cdef _receive_got_ack(self, Peer peer, list ids, list masks)
