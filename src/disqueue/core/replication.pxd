cimport cython
from disqueue.core.client cimport Client
from disqueue.core.copying cimport Copying
from disqueue.core.ids cimport JobIds
from disqueue.core.job cimport Job, new_job
from disqueue.core.peers cimport Peers
from disqueue.core.queue cimport Queue
from disqueue.wire.resp cimport ReplyWriter

cdef int ACTIVE, DELAYED, DELIVERED, GONE, HELD, ONCE_QUEUED, WAIT_REPL, PAUSED_IN, LEVEL_NORMAL
cdef int ASK_AHEAD_MS, BY_MOVE, BY_TIME
cdef int DELETE, ENQUEUE, REFUSED, REFUSED_DONE, REFUSED_LEAVING, REFUSED_MEMORY, REFUSED_PAUSED, REFUSED_SIZE, STORED

cdef class Replication(Peers):
    cdef public object done

    cpdef init_replication(self)
    @cython.locals(external=bint, at_once=bint, wanted="long long", queue=Queue, job=Job, reply=ReplyWriter)
    cpdef add_job(self, Client client, bytes name, bytes body, long long timeout_ms, long long replicate, long long ttl_s,
                  long long retry_s, long long delay_s, long long maxlen, bint asynchronous)
    @cython.locals(queue=Queue, queued_elsewhere=int)
    cpdef begin_life(self, Job job)
    cdef long long _default_copies(self, long long retry_s, bint external) except -1
    @cython.locals(job=Job, copying=Copying)
    cpdef copy_stored(self, peer, bytes job_id)
    @cython.locals(copying=Copying)
    cpdef replicated(self, Job job)
    @cython.locals(job=Job)
    cpdef enqueue_ordered(self, bytes job_id, long long delay_ms)
