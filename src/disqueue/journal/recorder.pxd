# C types of recorder.py.

cimport cython
from disqueue.core.job cimport Job
from disqueue.core.node cimport Node
from disqueue.core.queue cimport Queue
from disqueue.journal.image cimport job_record_bytes
from disqueue.journal.segments cimport Segment, SegmentTable
from disqueue.wire.journal_records cimport append_forgotten, append_job, append_record, append_state

cdef int _CHANGED
cdef int _WHOLE_AGAIN
cdef int _GONE
cdef int FORGOTTEN_RECORD_BYTES

@cython.locals(due_ms="long long", queue=Queue)
cdef append_whole(bytearray buffer, long long base, Job job, long long wall_offset_ms)
@cython.locals(due_ms="long long")
cdef append_changed(bytearray buffer, long long base, Job job, long long wall_offset_ms)


cdef class Recorder:
    cdef public SegmentTable table
    cdef public Node node
    cdef public unsigned int first_segment
    cdef public object error
    cdef public bint always_synced
    cdef public list changed
    cdef public list endings
    cdef public set changed_queues
    cdef public list slots_written

    cpdef job_added(self, Job job)
    @cython.locals(flags=int)
    cpdef job_changed(self, Job job)
    @cython.locals(flags=int)
    cpdef job_forgotten(self, Job job)
    cpdef rewrite_job(self, Job job)
    cpdef bint pending(self)
    @cython.locals(changed=list, job=Job)
    cpdef append_changes(self, bytearray buffer, long long base, long long wall_offset_ms, int jobs_max=*)
    @cython.locals(flags=int, segment="long long")
    cdef _append_change(self, bytearray buffer, long long base, Job job, long long wall_offset_ms)
    @cython.locals(endings=dict)
    cdef _append_ending(self, bytearray buffer, long long base, bytes job_id, long long segment)
    cpdef account_job(self, Job job, Segment segment)
    @cython.locals(number="unsigned int", old=Segment)
    cpdef account_state(self, Job job, Segment segment)
    @cython.locals(segment=Segment)
    cpdef unaccount(self, Job job)
