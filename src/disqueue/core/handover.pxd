from disqueue.core.federation cimport Federation
from disqueue.core.job cimport Job
from disqueue.core.peer cimport Peer
from disqueue.core.timers cimport Timed

cdef class Handover(Federation):
    cdef public Timed handover_timer
    cdef public object handover_cursor
    cdef public dict departures, left

    cpdef copy_stored(self, Peer peer, bytes job_id)
    cpdef handed_over(self, Peer peer, Job job)
