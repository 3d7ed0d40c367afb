# C types of image.py.

cimport cython
from disqueue.core.job cimport Job, new_job
from disqueue.core.job_table cimport JobTable
from disqueue.core.masks cimport covers
from disqueue.journal.job_order cimport JobOrder
from disqueue.journal.segments cimport Segment, SegmentTable
from disqueue.wire.journal_groups cimport GroupReader
from disqueue.wire.journal_records cimport JobFields, decode_forgotten, read_job, read_state

cdef int ENDS, FORGOTTEN, FRAME_BYTES, JOB, JOBS, OPTIONAL_KINDS, PASS, SEGMENT_START, STATE, STATES
cdef int _STATE_BYTES_MAX


cdef class Image:
    cdef public SegmentTable table
    cdef public object slot_of
    cdef public list slots
    cdef public object unchanged
    cdef public JobTable jobs
    cdef public JobOrder order
    cdef public dict names
    cdef public dict pauses
    cdef public object run
    cdef public object closed
    cdef public long long records
    cdef public long long shift_ms
    cdef public long long last_ms
    cdef public JobFields fields
    cdef public GroupReader group

    cpdef apply(self, int kind, bytes data, Py_ssize_t start, Py_ssize_t end, Segment segment)
    @cython.locals(time_ms="long long")
    cdef _apply_pass(self, long long wall_ms)
    @cython.locals(group=GroupReader)
    cdef _apply_group(self, int kind, bytes data, Py_ssize_t start, Py_ssize_t end, Segment segment)
    @cython.locals(older=Job, job=Job, job_id=bytes)
    cdef _apply_job(self, JobFields fields, Segment segment, long long size)
    @cython.locals(job=Job)
    cdef _apply_state(self, JobFields fields, Segment segment, long long size, bint in_order)
    @cython.locals(due_ms="long long")
    cdef _set_state(self, Job job, JobFields fields)
    @cython.locals(job=Job)
    cdef _apply_forgotten(self, bytes job_id, target, Segment segment, long long size)
    @cython.locals(segment=Segment)
    cdef _take_out(self, Job job)
    @cython.locals(segment=Segment)
    cdef _take_out_state(self, Job job)
