cimport cython
from disqueue.core.copying cimport Copying
from disqueue.core.job cimport Job
from disqueue.core.queue cimport Queue
from disqueue.core.registry cimport Registry
from disqueue.core.timers cimport Timed

cdef int ACKED, ACTIVE, ASKED, CONTESTED, COUNTER_MAX, DELAYED, DELIVERED, GONE, HELD, LEASED, MOVED, ONCE_QUEUED, QUEUED, WAIT_REPL
cdef int PAUSED_IN, PAUSED_OUT
cdef int LEVEL_FULL
cdef int _BY_TIME, _BY_COMMAND, _BY_NACK, _BY_MOVE, _ASK_AHEAD_MS, _LINGER_MS, _HELD_ASK_MS, _PAUSE_RETRY_MS

cdef class Scheduler(Registry):
    cdef public Timed idle_timer
    cdef public int last_level
    cdef public list ready_queues

    cpdef init_scheduler(self)
    @cython.locals(wake_ms="long long", due_ms="long long", copying=Copying)
    cpdef arm(self, Job job)
    @cython.locals(copying=Copying)
    cpdef job_due(self, Job job)
    cdef _due(self, Job job)
    @cython.locals(due_ms="long long")
    cdef bint _may_be_taken_over(self, Job job) except -1
    @cython.locals(lease=int)
    cdef _ask_first(self, Job job)
    cdef bint _must_ask(self, Job job) except -1
    cpdef add_timed_out(self, Job job)
    cpdef copy_step(self, Job job)
    cpdef ask_about_held(self, Job job)
    cpdef ask_owners(self, Job job)
    cpdef renew(self, Job job)
    cpdef announce_queued(self, Job job, int reason)
    @cython.locals(queue=Queue, order_ns="long long", announced=bint)
    cpdef bint enqueue(self, Job job, int reason) except -1
    cpdef count_nack(self, Job job)
    cpdef mark_ready(self, Queue queue)
    @cython.locals(queue=Queue)
    cpdef dequeue(self, Job job)
    @cython.locals(job=Job)
    cpdef Job take_first(self, Queue queue)
    @cython.locals(job=Job)
    cdef Job _take_repeatable(self, Queue queue)
    @cython.locals(queue=Queue)
    cpdef start_lease(self, Job job)
    cpdef postpone(self, Job job, long long delay_ms)
    cdef _postpone(self, Job job)
    @cython.locals(last=Job)
    cdef long long _order_behind(self, Queue queue) except? -1
    cpdef expire(self, Job job)
    cpdef delete(self, Job job)
    cpdef add_failed(self, Job job)
    cpdef long long idle_limit_ms(self)
    cpdef check_level(self)
    @cython.locals(queue=Queue)
    cpdef drop_idle_queues(self)
    cdef bint _is_idle(self, Queue queue)
    cpdef bint out_of_memory(self) except -1
    cdef _evict(self)
    cpdef set_acked(self, Job job)
