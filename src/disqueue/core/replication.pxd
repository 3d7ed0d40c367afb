cimport cython
from disqueue.core.client cimport Answer, Client
from disqueue.core.copying cimport Copying
from disqueue.core.ids cimport JobIds
from disqueue.core.job cimport Job, id_of, make_job, new_job
from disqueue.core.job_replies cimport reply_id
from disqueue.core.masks cimport count_of, covers
from disqueue.core.peer cimport Peer
from disqueue.core.peers cimport Peers
from disqueue.core.queue cimport Queue
from disqueue.core.recent cimport RecentIds
from disqueue.wire.frames cimport JobRecord
from disqueue.wire.resp cimport ReplyWriter

cdef int ACTIVE, DELAYED, DELIVERED, GONE, HELD, ONCE_QUEUED, WAIT_REPL, PAUSED_IN, LEVEL_NORMAL
cdef int _TAKEOVER_JITTER_MS, STEP_MS, NOT_BLOCKED, BLOCKED_ADDJOB
cdef long long NEVER_MS
cdef int ASK_AHEAD_MS, BY_MOVE, BY_TIME
cdef int DELETE, ENQUEUE, REFUSED, REFUSED_DONE, REFUSED_LEAVING, REFUSED_MEMORY, REFUSED_PAUSED, REFUSED_SIZE, STORED

cdef class Replication(Peers):
    cdef public RecentIds done
    cdef public list partly_answered

    cpdef init_replication(self)
    @cython.locals(external=bint, at_once=bint, wanted="long long", queue=Queue, job=Job, reply=ReplyWriter)
    cpdef add_job(self, Client client, bytes name, bytes body, long long timeout_ms, long long replicate, long long ttl_s,
                  long long retry_s, long long delay_s, long long maxlen, bint asynchronous)
    @cython.locals(queue=Queue, queued_elsewhere=int)
    cpdef begin_life(self, Job job)
    cdef long long _default_copies(self, long long retry_s, bint external) except -1
    @cython.locals(copying=Copying)
    cdef _add_synchronously(self, Client client, Job job, long long wanted, bint external, long long timeout_ms)
    cdef _begin_copying(self, Job job, Copying copying, long long wanted)
    @cython.locals(reachable=list, count=Py_ssize_t, place="long long", targets=list, peer=Peer)
    cdef list _choose_targets(self, Job job, Copying copying, long long wanted)
    cdef _copy_to(self, Job job, list targets)
    @cython.locals(peer=Peer, wait_ms="long long", rtt_ms="long long")
    cdef _plan_step(self, Copying copying, list targets)
    cdef bint _must_wait(self, Copying copying) except -1
    cpdef tell_answered(self)
    @cython.locals(job=Job, copying=Copying)
    cpdef copy_stored(self, Peer peer, bytes job_id)
    cdef bint _give_up_paused(self, Job job, Copying copying) except -1
    @cython.locals(copying=Copying)
    cpdef replicated(self, Job job)
    @cython.locals(client=Client, reply=ReplyWriter)
    cdef _end_copying(self, Job job, Copying copying)
    @cython.locals(client=Client)
    cdef _answer_add(self, Copying copying, bytes text)
    @cython.locals(reply=ReplyWriter, answer=Answer)
    cdef _write_answers(self, Client client)
    @cython.locals(record=JobRecord, job_id=bytes, known=Job, job=Job, reason=int)
    cpdef store_copies(self, Peer peer, list jobs, bint queue_now)
    @cython.locals(queue=Queue, name=bytes)
    cdef int _why_refuse(self, JobRecord record) except -1
    @cython.locals(queue=Queue, job=Job, copies=int, left_ms="long long")
    cpdef Job job_from_record(self, Peer peer, JobRecord record)
    @cython.locals(job=Job, wait_ms="long long")
    cdef Job _take_copy(self, Peer peer, JobRecord record)
    cdef _keep_replica(self, Job job, long long wait_ms)
    @cython.locals(job=Job)
    cpdef enqueue_ordered(self, bytes job_id, long long delay_ms)
