cimport cython

cdef int LEVELS, SLOTS, SLOT_BITS, SLOT_MASK, UNKNOWN_MS
cdef long long _NEVER_MS

cdef class Timed:
    cdef public long long wake_ms
    cdef public int timer_slot
    cdef public int timer_index



cdef class TimerWheel:
    cdef public long long now_ms
    cdef public long long count
    cdef public list slots
    cdef public unsigned long long[::1] masks
    cdef public long long soonest_ms

    @cython.locals(start_ms="long long")
    cpdef set(self, Timed timed, long long wake_ms)
    @cython.locals(slot=int, index=int, entries=list, last=Timed)
    cpdef clear(self, Timed timed)
    @cython.locals(best="long long", start="long long", level=int, mask="unsigned long long")
    cpdef long long next_ms(self)
    @cython.locals(left="long long", start="long long")
    cpdef list pop_due(self, long long now_ms, long long budget)
    @cython.locals(now_ms="long long", level=int, slot=int, entries=list, timed=Timed)
    cdef long long _drain(self, list due, long long left) except -1
    @cython.locals(now_ms="long long", difference="long long", level=int, position=int, slot=int, shift=int, entries=list,
                   bit="unsigned long long")
    cdef long long _insert(self, Timed timed, long long wake_ms) except -1
    @cython.locals(bit="unsigned long long")
    cdef _empty(self, int slot)
    @cython.locals(position=int, shift=int, base="long long", start="long long")
    cdef long long _slot_start(self, int level, unsigned long long mask) noexcept

@cython.locals(position=int, width=int, low="unsigned long long")
cdef int _lowest_bit(unsigned long long mask) noexcept
