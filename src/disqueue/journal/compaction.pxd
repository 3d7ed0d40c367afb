# C types of compaction.py.

cimport cython
from disqueue.journal.recorder cimport Recorder
from disqueue.journal.segments cimport Segment, SegmentTable
from disqueue.journal.writer cimport Writer
from disqueue.wire.journal_groups cimport subjects
from disqueue.wire.journal_records cimport RecordScanner

cdef int FORGOTTEN, JOB, STATE, WHOLE
cdef int _IDLE, _READING, _SYNCING
cdef long long _LOOK_MS, _STEP_BYTES


cdef class Compactor:
    cdef public object disk
    cdef public SegmentTable table
    cdef public Writer writer
    cdef public Recorder recorder
    cdef public object jobs
    cdef public long long percentage
    cdef public long long min_bytes
    cdef public int state
    cdef public str error
    cdef public long long rewrite_up_to
    cdef public object log
    cdef public long long last_ms
    cdef public bint store_wanted
    cdef long long _began_ms
    cdef Segment _source
    cdef RecordScanner _scanner
    cdef long long _offset
    cdef bytes _ready
    cdef bint _loading
    cdef tuple _wait_for
    cdef long long _retry_at_ms
    cdef long long _look_at_ms
    cdef bint _stopped

    cpdef bint rewriting(self) except -1
    cpdef long long deadline_ms(self, long long now_ms) except? -2
    cpdef step(self, long long now_ms)
    @cython.locals(stop="long long", source=Segment, scanner=RecordScanner)
    cdef _read(self)
    @cython.locals(kind=int, target="long long")
    cdef _keep(self, Segment source, RecordScanner scanner)
