cdef class Timed:
    cdef public long long wake_ms
    cdef public int timer_slot
    cdef public int timer_index



cdef class TimerWheel:
    cdef public long long now_ms
    cdef public long long count
    cdef public list slots
    cdef public list masks

    cpdef set(self, Timed timed, long long wake_ms)
    cpdef clear(self, Timed timed)
    cpdef long long next_ms(self)
    cpdef list pop_due(self, long long now_ms, long long budget)
    cdef long long _drain(self, list due, long long left) except -1
    cdef _insert(self, Timed timed, long long wake_ms)
    cdef _empty(self, int slot)
    cdef long long _slot_start(self, int level, object mask)
