cimport cython
from disqueue.core.queue cimport Queue
from disqueue.core.timers cimport Timed

cdef int RATE_WINDOW_MS, MIN_RATE_SPAN_MS, SOURCE_MS

cdef class Demand(Timed):
    cdef public Queue queue
    cdef public dict wanted_by
    cdef public dict waiting
    cdef public bint told_waiting
    cdef public dict asked
    cdef public dict sources
    cdef public long long import_started_ms
    cdef public long long import_previous_ms
    cdef public long long import_count
    cdef public long long import_previous
    cdef public long long missed_ms
    cdef public long long missed_count

    cpdef note_import(self, peer, long long now_ms, long long count)
    @cython.locals(count="long long", start_ms="long long", span_ms="long long")
    cpdef long long import_rate(self, long long now_ms)
