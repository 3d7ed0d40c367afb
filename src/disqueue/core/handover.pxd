from disqueue.core.federation cimport Federation
from disqueue.core.timers cimport Timed

cdef class Handover(Federation):
    cdef public Timed handover_timer
    cdef public object handover_cursor
    cdef public dict departures
