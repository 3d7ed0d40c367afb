# C types of runtime.py.

cimport cython
from disqueue.core.journal_port cimport JournalPort
from disqueue.core.node cimport Node
from disqueue.journal.compaction cimport Compactor
from disqueue.journal.recorder cimport Recorder
from disqueue.journal.reserve cimport Reserve
from disqueue.journal.segments cimport Segment, SegmentTable
from disqueue.journal.writer cimport Writer
from disqueue.wire.journal_records cimport append_pass, append_record, append_start

cdef int _CATCH_UP_JOBS, _CLOCK_STEP_MS


cdef class JournalRuntime:
    cdef public object settings
    cdef public object disk
    cdef public object executor
    cdef public Node node
    cdef public object log
    cdef public str state
    cdef public str error
    cdef public bint full
    cdef public object loaded
    cdef public object on_error
    cdef public object port_of
    cdef public SegmentTable table
    cdef public Recorder recorder
    cdef public Writer writer
    cdef public Compactor compactor
    cdef object _loading
    cdef long long _building
    cdef long long _clock_ms
    cdef bint _catching_up
    cdef bint _tell_run
    cdef bint _locked
    cdef bytearray _first
    cdef JournalPort _port

    @cython.locals(writer=Writer)
    cpdef bint end_pass(self, long long now_ms, long long wall_ms, bint last=*) except -1
    @cython.locals(now_ms="long long", deadline_ms="long long", other_ms="long long")
    cpdef long long next_deadline_ms(self) except? -2
    cdef _follow_policy(self)
    @cython.locals(moved_ms="long long")
    cdef _follow_clock(self, long long clock_ms)
    @cython.locals(writer=Writer, recorder=Recorder, chunk=bytearray, place="long long", started=bint, marked=Py_ssize_t)
    cdef _write(self, long long now_ms, long long wall_ms)
    @cython.locals(active=Segment, reserve=Reserve)
    cdef _background(self, long long now_ms)
    @cython.locals(writer=Writer, error=str, full=bint)
    cdef _publish(self)
