cimport cython
from disqueue.core.client cimport Client
from disqueue.core.job cimport Job
from disqueue.core.job_replies cimport reply_job
from disqueue.core.queue cimport Queue
from disqueue.core.scheduler cimport Scheduler
from disqueue.core.timers cimport Timed
from disqueue.wire.resp cimport ReplyWriter

cdef int BLOCKED_GETJOB, NOT_BLOCKED
cdef int PAUSED_OUT
cdef long long NEVER_MS, _MAX_JOBS_A_REPLY, _MAX_REPLY_BYTES

cdef class Delivery(Scheduler):
    cdef public object on_unblock
    cdef public bint leaving
    cdef public long long blocked_clients

    cpdef init_delivery(self)
    cpdef get_jobs(self, Client client, list names, long long count, long long timeout_ms, bint nohang, bint with_counters)
    @cython.locals(queue=Queue, job=Job, reply=ReplyWriter)
    cpdef bint get_first(self, Client client, bytes name, bint with_counters) except -1
    @cython.locals(queue=Queue, ready=list)
    cpdef serve_ready(self)
    cpdef serve_peers(self, Queue queue)
    cpdef consumer_missed(self, bytes name, long long count)
    cpdef consumer_waits(self, Queue queue)
    cpdef unblock(self, Client client)
    @cython.locals(queue=Queue)
    cpdef stop_waiting(self, Client client)
    cpdef getjob_timed_out(self, Client client)
    cpdef end_all_waits(self, bytes error)
    cpdef block(self, Client client, int kind, long long timeout_ms)
    cpdef client_timed_out(self, Client client)
    cpdef other_timer_fired(self, Timed timed)
    @cython.locals(queue=Queue, job=Job, found=bint, body_bytes="long long")
    cdef _collect(self, list names, long long count, list jobs)
    @cython.locals(job=Job, body_bytes="long long")
    cdef _collect_one(self, Queue queue, long long count, list jobs)
    @cython.locals(job=Job, reply=ReplyWriter)
    cdef _reply_jobs(self, Client client, list jobs, bint with_counters)
    @cython.locals(queue=Queue)
    cdef _wait(self, Client client, list names, long long timeout_ms)
    @cython.locals(client=Client)
    cdef _serve_waiters(self, Queue queue)
