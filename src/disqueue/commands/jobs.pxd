cimport cython
from disqueue.commands.holder cimport NodeHolder
from disqueue.commands.numbers cimport parse_integer
from disqueue.core.client cimport Client
from disqueue.core.ids cimport is_valid_id
from disqueue.core.node cimport Node
from disqueue.core.settings cimport Settings

cdef long long INVALID
cdef long long MAX_TIMEOUT_MS
cdef int ACKJOB, DELJOB, DEQUEUE, ENQUEUE, FASTACK, NACK
cdef dict OPTIONS, GET_OPTIONS
cdef bytes RETRY_WORD, REPLICATE_WORD, FROM_WORD
cdef int MAX_SECONDS
cdef int NONE, REPLICATE, TTL, RETRY, DELAY, MAXLEN, ASYNC, TIMEOUT, COUNT, NOHANG, WITHCOUNTERS, FROM
cdef int DEFAULT_TTL_S, MAX_DEFAULT_RETRY_S

@cython.final
cdef class AddOptions:
    cdef public long long replicate
    cdef public long long ttl_s
    cdef public long long retry_s
    cdef public long long delay_s
    cdef public long long maxlen
    cdef public bint asynchronous

    cdef clear(self)

@cython.locals(options=AddOptions)
cdef AddOptions _no_options()

@cython.locals(node=Node, options=AddOptions, timeout_ms="long long", ttl_s="long long", retry_s="long long", replicate="long long")
cpdef addjob(NodeHolder broker, Client client, list args)
cdef long long _default_retry(long long ttl_s)
@cython.locals(name=bytes, body=bytes)
cdef _check_sizes(long long max_name_bytes, long long max_job_bytes, list args)
cdef int _add_option(bytes word) except -1
cdef int _get_option(bytes word) except -1
@cython.locals(index=Py_ssize_t, count=Py_ssize_t, value="long long", code=int)
cdef _parse_options(list args, AddOptions options)
cdef _set_option(AddOptions options, int code, long long value)
cdef _error_of_timeout(long long value)
@cython.locals(value="long long")
cdef long long _timeout(bytes text)
cdef bint _is_huge(bytes text)
@cython.locals(timeout_ms="long long", wanted="long long", nohang=bint, with_counters=bint, index=Py_ssize_t, count=Py_ssize_t, code=int)
cpdef getjob(NodeHolder broker, Client client, list args)
@cython.locals(limit="long long", length="long long", index=Py_ssize_t)
cdef bint _names_valid(NodeHolder broker, Client client, list args, Py_ssize_t first) except -1
@cython.locals(index=Py_ssize_t)
cdef bint _ids_valid(Client client, list args) except -1
cdef _id_command(NodeHolder broker, Client client, int verb, list args)
cpdef ackjob(NodeHolder broker, Client client, list args)
