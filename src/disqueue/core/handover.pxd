cimport cython
from disqueue.core.federation cimport Federation
from disqueue.core.job cimport Job
from disqueue.core.peer cimport Peer
from disqueue.core.timers cimport Timed
from disqueue.wire.frames cimport JobRecord

cdef class Handover(Federation):
    cdef public Timed handover_timer
    cdef public object handover_cursor
    cdef public dict departures, left

    @cython.locals(job=Job)
    cpdef Job job_from_record(self, Peer peer, JobRecord record)
    cpdef copy_stored(self, Peer peer, bytes job_id)
    cpdef handed_over(self, Peer peer, Job job)
