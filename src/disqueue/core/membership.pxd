from disqueue.core.peer cimport Peer

cdef class Membership:
    cdef public object settings
    cdef public object log
    cdef public object bus
    cdef public object events
    cdef public object keeper
    cdef public object stats
    cdef public long long now_ms
    cdef public long long wall_ms
    cdef public long long wake_ms
    cdef public Peer me
    cdef public list by_slot
    cdef public dict by_id
    cdef public list peers
    cdef public list reachable
    cdef public object members_mask
    cdef public object unknown_mask
    cdef public object reachable_mask
    cdef public object failed_mask
    cdef public object bans
    cdef public object gossip
    cdef public object heartbeat
    cdef public object joining
    cdef public object dialling
    cdef public object journal_age

    cpdef begin_pass(self, long long now_ms, long long wall_ms)
    cpdef advance(self)
