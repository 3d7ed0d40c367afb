cimport cython
from disqueue.core.acknowledgement cimport Acknowledgement
from disqueue.core.client cimport Client
from disqueue.core.job cimport Job
from disqueue.core.timers cimport Timed
from disqueue.wire.resp cimport ReplyWriter

cdef int ACKED, ACTIVE, DELETED, DELIVERED, HELD, PLACEHOLDER, QUEUED, WAIT_REPL
cdef int BY_COMMAND, BY_NACK
cdef int _ACKJOB, _NACK, _ENQUEUE, _DEQUEUE, _WORKING, _DELJOB
cdef Py_ssize_t _MAX_BATCH

cdef class Request(Timed):
    cdef public long long number
    cdef public Client client
    cdef public int verb
    cdef public long long total
    cdef public long long deadline_ms
    cdef public list unknown
    cdef public set acks
    cdef public list candidates
    cdef public object asked
    cdef public long long result

cdef class Forwarding(Acknowledgement):
    cdef public dict requests
    cdef public long long last_request
    cdef public dict ack_requests

    cpdef init_forwarding(self)
    @cython.locals(job=Job, total="long long", job_id=bytes, reply=ReplyWriter, count=Py_ssize_t, index=Py_ssize_t)
    cpdef id_command(self, Client client, int verb, list ids, Py_ssize_t first=*)
    cpdef long long apply(self, int verb, Job job) except? -1
