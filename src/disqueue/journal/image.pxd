# C types of image.py.

cimport cython
from disqueue.core.job cimport Job, new_job
from disqueue.core.job_table cimport JobTable
from disqueue.core.masks cimport covers
from disqueue.journal.job_order cimport JobOrder
from disqueue.journal.segments cimport Segment, SegmentTable
from disqueue.wire.journal_records cimport JobFields, decode_forgotten, read_job, read_state

cdef int FORGOTTEN, FORGOTTEN_RECORD_BYTES, JOB, JOB_RECORD_BYTES, OPTIONAL_KINDS, PASS, SEGMENT_START, STATE

cpdef long long job_record_bytes(Job job)


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

    cpdef apply(self, int kind, bytes data, Py_ssize_t start, Py_ssize_t end, Segment segment)
    @cython.locals(time_ms="long long")
    cdef _apply_pass(self, long long wall_ms)
    @cython.locals(older=Job, job=Job, fields=JobFields, job_id=bytes)
    cdef _apply_job(self, bytes data, Py_ssize_t start, Py_ssize_t end, Segment segment)
    @cython.locals(job=Job, older=Segment, fields=JobFields)
    cdef _apply_state(self, bytes data, Py_ssize_t start, Py_ssize_t end, Segment segment)
    @cython.locals(fields=JobFields, due_ms="long long")
    cdef _set_state(self, Job job)
    @cython.locals(job=Job)
    cdef _apply_forgotten(self, bytes data, Py_ssize_t start, Py_ssize_t end, Segment segment)
    @cython.locals(segment=Segment)
    cdef _take_out(self, Job job)
