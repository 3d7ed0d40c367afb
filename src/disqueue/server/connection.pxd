cimport cython

from disqueue.commands.dispatch cimport Dispatcher
from disqueue.core.client cimport Client
from disqueue.server.passes cimport Participant, Passes
from disqueue.server.sending cimport send_now
from disqueue.wire.resp cimport ReplyWriter, RequestParser


cdef int NOT_BLOCKED, BLOCKED_ADDJOB, _REQUESTS_A_TURN, REPLY_BYTES_A_TURN, INPUT_BYTES_PAUSE, DRAIN_BYTES_MAX, ACCOUNT_STEP_BYTES


cdef class Connection(Participant):
    cdef Passes shell
    cdef Dispatcher dispatcher
    cdef readonly RequestParser parser
    cdef readonly ReplyWriter writer
    cdef readonly Client client
    cdef readonly object transport
    cdef object is_closing
    cdef readonly list held
    cdef bint stranger
    cdef bint reading_paused
    cdef readonly bint writing_paused
    cdef public bint draining
    cdef readonly bint ended
    cdef readonly bint closed
    cdef public long long soft_since_ms
    cdef public long long accounted_bytes
    cdef long long drained_bytes
    cdef public int descriptor
    cdef bint backlog

    cpdef buffer_updated(self, Py_ssize_t count)
    @cython.locals(dispatcher=Dispatcher, client=Client, left=int, request=list)
    cpdef take_turn(self)
    @cython.locals(blocked=int)
    cpdef bint may_take_turn(self)
    @cython.final
    cdef refuse(self, bytes reply)
    @cython.final
    @cython.locals(held="long long", change="long long")
    cdef account(self)
    @cython.locals(client=Client)
    cpdef flush(self)
    @cython.final
    cdef _send(self, object transport)
