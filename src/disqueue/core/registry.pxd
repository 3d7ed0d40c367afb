cimport cython
from disqueue.core.ids cimport JobIds
from disqueue.core.job cimport Job
from disqueue.core.job_table cimport JobTable
from disqueue.core.journal_port cimport JournalPort
from disqueue.core.masks cimport covers
from disqueue.core.queue cimport Queue
from disqueue.core.settings cimport Settings
from disqueue.core.timers cimport Timed, TimerWheel

cdef int ACKED
cdef int DELAYED
cdef int QUEUED
cdef int WAIT_REPL
cdef int _JOB_BYTES

cdef class Registry:
    cdef public Settings settings
    cdef public object entropy
    cdef public bytes node_id
    cdef public JobIds ids
    cdef public object log
    cdef public JournalPort journal
    cdef public long long now_ms
    cdef public long long wall_ms
    cdef public long long stalled_until_ms
    cdef public long long grace_ms
    cdef public long long last_ctime_ns
    cdef public JobTable jobs
    cdef public dict queues
    cdef Queue last_queue
    cdef public long long visible_queues
    cdef public object scanned_queues
    cdef public TimerWheel timers
    cdef public object idle_queues
    cdef public object evictable
    cdef public long long used_bytes
    cdef public long long peak_bytes
    cdef public long long buffer_bytes
    cdef public long long queued_jobs
    cdef public long long acked_jobs
    cdef public long long delayed_jobs
    cdef public long long waiting_jobs
    cdef public long long evicted_jobs
    cdef public long long expired_jobs

    cpdef begin_pass(self, long long now_ms, long long wall_ms)
    @cython.locals(due=list, fired=Py_ssize_t)
    cpdef advance(self)
    @cython.locals(deadline_ms="long long")
    cpdef long long next_deadline_ms(self)
    cpdef timer_fired(self, Timed timed)
    cpdef long long next_ctime_ns(self)
    cpdef add_owners(self, Job job, mask)
    cpdef bint journal_fails(self) except -1
    cpdef bint journal_refuses(self) except -1
    @cython.locals(queue=Queue)
    cpdef register(self, Job job)
    @cython.locals(queue=Queue)
    cpdef unregister(self, Job job)
    cpdef add_owners(self, Job job, object mask)
    cpdef bint journal_fails(self) except -1
    @cython.locals(queue=Queue)
    cpdef set_delayed(self, Job job)
    @cython.locals(queue=Queue)
    cpdef clear_delayed(self, Job job)
    @cython.locals(queue=Queue)
    cpdef Queue known_queue(self, bytes name)
    @cython.locals(queue=Queue)
    cpdef Queue queue_named(self, bytes name)
    cpdef make_visible(self, Queue queue)
    cpdef watch_idle(self, Queue queue)
    cpdef idle_queue_added(self)
    cpdef hide(self, Queue queue)
    cpdef drop_unused(self, Queue queue)
    cpdef long long memory_bytes(self)
    cpdef int memory_level(self)
    cpdef mark_queued(self, Job job)
