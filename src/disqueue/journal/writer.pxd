# C types of writer.py.

cimport cython
from disqueue.journal.reserve cimport Reserve
from disqueue.journal.segments cimport Segment, SegmentTable
from disqueue.wire.journal_records cimport append_start, empty, reseal

cdef int _SYNC_MS
cdef long long _UNSYNCED_BYTES_MAX, _UNSYNCED_BYTES_SOON


cdef class Writer:
    cdef public object disk
    cdef public object executor
    cdef public SegmentTable table
    cdef public str policy
    cdef public Reserve reserve
    cdef public str error
    cdef public bint busy
    cdef public dict files
    cdef public long long written_offset
    cdef public object unsynced
    cdef public long long unsynced_bytes
    cdef public long long unwritten
    cdef public tuple synced
    cdef public bint syncing
    cdef public bint sync_wanted
    cdef public long long synced_ms
    cdef public long long delayed_syncs
    cdef public bint lost
    cdef public long long failures
    cdef public long long retry_at_ms
    cdef public long long prepare_at_ms
    cdef public tuple next
    cdef public object make_prologue
    cdef public object on_replaced
    cdef public object on_trouble
    cdef public long long now_ms
    cdef public long long wall_ms
    cdef public long long synced_chunks
    cdef public list spare
    cdef public long long spare_bytes

    @cython.locals(active=Segment)
    cpdef long long place(self) except -1
    @cython.locals(buffer=bytearray)
    cpdef bytearray take_buffer(self)
    @cython.final
    cdef _give_buffer(self, bytearray buffer)
    @cython.locals(active=Segment)
    cpdef append(self, bytearray chunk, long long now_ms)
    cpdef tick(self, long long now_ms)
    cpdef long long deadline_ms(self) except? -2
    cpdef bint kept(self) except -1
    cpdef bint behind(self) except -1
    @cython.locals(chunk=bytearray, active=Segment)
    cdef _write(self)
    @cython.locals(written="long long")
    cdef _force(self)
    cdef bint _sync_due(self) except -1
