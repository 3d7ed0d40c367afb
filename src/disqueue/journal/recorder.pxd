# C types of recorder.py.

cimport cython
from disqueue.core.job cimport Job
from disqueue.core.journal_port cimport JournalPort
from disqueue.core.membership cimport Membership
from disqueue.core.node cimport Node
from disqueue.core.queue cimport Queue
from disqueue.journal.job_records cimport JobRecords
from disqueue.journal.segments cimport Segment, SegmentTable
from disqueue.wire.journal_groups cimport subjects
from disqueue.wire.journal_records cimport append_record

cdef int _CHANGED
cdef int _WHOLE_AGAIN
cdef int _GONE
cdef int _STATE_BYTES_MAX


cdef class Recorder(JournalPort):
    cdef public SegmentTable table
    cdef public Node node
    cdef public unsigned int first_segment
    cdef public list changed
    cdef public list endings
    cdef public set changed_queues
    cdef public list slots_written
    cdef JobRecords records

    cpdef job_added(self, Job job)
    @cython.locals(flags=int)
    cpdef job_changed(self, Job job)
    @cython.locals(segment=Segment, body_bytes=Py_ssize_t)
    cpdef body_dropped(self, Job job)
    @cython.locals(flags=int)
    cpdef job_forgotten(self, Job job)
    cpdef queue_changed(self, Queue queue)
    cpdef rewrite_job(self, Job job)
    cpdef bint pending(self)
    @cython.locals(changed=list, job=Job, records=JobRecords)
    cpdef append_changes(self, bytearray buffer, long long base, long long wall_offset_ms, int jobs_max=*)
    @cython.final
    @cython.locals(flags=int, segment="unsigned int")
    cdef int _append_change(self, JobRecords records, Job job, long long wall_offset_ms) except -1
    @cython.final
    @cython.locals(active=Segment, endings=dict)
    cdef int _account_ending(self, long long segment, long long size) except -1
    @cython.final
    @cython.locals(active=Segment)
    cdef Segment _segment(self, long long number)
    @cython.final
    @cython.locals(queue=Queue)
    cdef int _account_job(self, Job job, Segment segment, long long size) except -1
    @cython.final
    cdef int _account_state(self, Job job, Segment segment, long long size) except -1
    @cython.final
    @cython.locals(segment=Segment)
    cdef int _unaccount_state(self, Job job) except -1
    @cython.final
    @cython.locals(segment=Segment)
    cdef int _unaccount(self, Job job) except -1
    @cython.final
    @cython.locals(written=list, members=Membership)
    cdef _append_slots(self, bytearray buffer, long long base)
