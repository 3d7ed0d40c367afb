cimport cython

from disqueue.commands.clock cimport SystemClock
from disqueue.commands.jobs cimport ackjob, addjob, getjob
from disqueue.core.client cimport Client
from disqueue.core.node cimport Node
from disqueue.wire.resp cimport ReplyWriter


cdef int REPLY_ON, REPLY_SKIP, REPLY_SKIP_NEXT, REPLY_OFF, MAX_PENDING_ADDS


cdef class Entry:
    cdef readonly object command
    cdef readonly bytes name
    cdef object handler
    cdef readonly int arity
    cdef bint stores
    cdef bint writes
    cdef bint loading
    cdef bint no_auth
    cdef readonly bint fast
    cdef public long long calls
    cdef public long long elapsed_us


cdef class Dispatcher:
    cdef object broker
    cdef Node node
    cdef object clock_us
    cdef SystemClock system_clock
    cdef readonly dict entries
    cdef readonly dict by_name
    cdef readonly list monitors
    cdef dict muted
    cdef readonly bytes password
    cdef readonly bytes loading
    cdef readonly bytes write_error
    cdef public bint all_synced
    cdef bint guarded
    cdef public bint memory_limited
    cdef public long long slow_us
    cdef readonly long long mark_us
    cdef public bint marked
    cdef ReplyWriter behind
    cdef Entry addjob, getjob, ackjob

    cdef _add_name(self, bytes name, Entry entry)
    cpdef add_monitor(self, Client client)
    cpdef forget(self, Client client)
    cpdef mark(self)
    cdef long long _read_clock(self) except? -1
    cpdef bint may_go_behind(self, Client client, list args)
    @cython.locals(reply=ReplyWriter, behind=ReplyWriter)
    cpdef execute_behind(self, Client client, list args)
    @cython.locals(entry=Entry, count=Py_ssize_t, written=Py_ssize_t, now_us="long long", elapsed_us="long long", reply=ReplyWriter)
    cpdef execute(self, Client client, list args)
    cdef _refuse_unknown(self, Client client, bytes name)
    cdef bint _admit(self, Client client, Entry entry, list args) except -1
    cpdef mute(self, Client client)
    cpdef unmute(self, Client client)
    cdef _next_muted(self, Client client)
