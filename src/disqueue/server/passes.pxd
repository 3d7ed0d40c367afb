cimport cython

from disqueue.commands.dispatch cimport Dispatcher
from disqueue.commands.statistics cimport Statistics
from disqueue.core.node cimport Node
from disqueue.journal.runtime cimport JournalRuntime
from disqueue.commands.clock cimport SystemClock


cdef int _SLOW_PASS_MS, _HOUSEKEEPING_EVERY_MS



cdef class Participant:
    cdef public bint dirty
    cdef public bint waiting_turn

    cpdef flush(self)


cdef class Passes:
    cdef public Node node
    cdef public Dispatcher dispatcher
    cdef public Statistics statistics
    cdef public SystemClock clock
    cdef public object loop
    cdef public object journal
    cdef public JournalRuntime runtime
    cdef public list end_of_pass
    cdef public list end_with_peers
    cdef public list end_once
    cdef public list dirty
    cdef public list waiting
    cdef public bint in_pass
    cdef public bint watched
    cdef long long housekeeping_ms
    cdef public long long now_ms
    cdef public bint paused
    cdef public long long paused_until_ms
    cdef public bint output_limited
    cdef object bound_end_pass
    cdef object timer
    cdef long long timer_ms

    cpdef begin_pass(self)
    cpdef begin_event(self)
    @cython.locals(now_ms="long long")
    cdef read_clock(self, long long elapsed_us)
    @cython.locals(connection=Participant)
    cpdef end_pass(self)
    cpdef give_turn(self, Participant connection)
    cpdef mark_dirty(self, Participant connection)
    cdef _flush(self, Participant connection)
    cdef _call(self, list hooks)
    cdef _write_journal(self)
    @cython.locals(now_ms="long long")
    cdef bint _housekeeping_due(self) except -1
    cpdef withhold(self)
    @cython.locals(deadline_ms="long long", other_ms="long long")
    cdef _arm(self)
