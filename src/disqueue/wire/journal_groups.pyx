"""Records about several jobs, read: the compiled twin of `journal_groups.py`, equal to it in all that can be seen."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcpy

from disqueue.wire.journal_records cimport JobFields, decode_forgotten, job_id_at

from disqueue.wire import journal_format as _format
from disqueue.wire.journal_format import RecordError

include "journal_memory.pxi"

cdef enum:
    _JOB = 3
    _STATE = 4
    _FORGOTTEN = 5
    _JOBS = 11
    _STATES = 12
    _ENDS = 13
    _ID = 40
    _PREFIX = 11
    _TAIL = 29
    _STATES_BYTES = 36
    _JOBS_BYTES = 56
    _ENDS_BYTES = 17
    _ITEM_BYTES = 41

assert (_STATES_BYTES, _JOBS_BYTES, _ENDS_BYTES, _ITEM_BYTES) == (
    _format.STATES_BYTES, _format.JOBS_BYTES, _format.ENDS_BYTES, _format.JOBS_ITEM_BYTES
)


@cython.final
cdef class GroupReader:
    """See the plain twin."""

    def __init__(self):
        self.fields = JobFields()
        self.data = b""

    cpdef void begin(self, int kind, bytes data, Py_ssize_t start, Py_ssize_t end) except *:
        cdef JobFields fields = self.fields
        cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(data) + start
        cdef Py_ssize_t head = _ENDS_BYTES if kind == _ENDS else _STATES_BYTES if kind == _STATES else _JOBS_BYTES
        cdef Py_ssize_t item_bytes = _TAIL
        cdef Py_ssize_t queue_size = 0
        cdef Py_ssize_t count
        self.left = 0  # of a record that is refused there is nothing to go through
        if start + head > end or end > PyBytes_GET_SIZE(data):
            raise RecordError("a record about several jobs is too short")
        memcpy(self.prefix, p, _PREFIX)
        count = get16(p + 11)
        if kind == _ENDS:
            self.target = get32(p + 13)
        else:
            fields.state = p[13]
            fields.flags = get16(p + 14)
            fields.nacks = get16(p + 16)
            fields.deliveries = get16(p + 18)
            fields.due_wall_ms = <int64_t>get64(p + 20)
            fields.owners = get64(p + 28)
            fields.confirmed = 0
        if kind == _JOBS:
            fields.retry_s = get32(p + 36)
            fields.delay_s = get32(p + 40)
            fields.ttl_s = get32(p + 44)
            fields.repl = get16(p + 48)
            queue_size = get16(p + 50)
            self.body_bytes = get32(p + 52)
            item_bytes = _ITEM_BYTES + self.body_bytes
        if count == 0 or start + head + queue_size + count * item_bytes > end:
            raise RecordError("a record about several jobs is shorter than it says")
        if kind == _JOBS:
            fields.queue = PyBytes_FromStringAndSize(<const char*>p + head, queue_size)
        self.kind = kind
        self.data = data
        self.left = count
        self.at = start + head + queue_size
        self.lead = _PAYLOAD + head + queue_size

    cpdef bint advance(self) except -1:
        cdef JobFields fields = self.fields
        cdef const uint8_t* p
        cdef bytes job_id
        cdef int64_t ctime_ns
        cdef Py_ssize_t size = _TAIL
        if self.left == 0:
            return False
        self.left -= 1
        p = <const uint8_t*>PyBytes_AS_STRING(self.data) + self.at
        job_id = PyBytes_FromStringAndSize(NULL, _ID)
        memcpy(PyBytes_AS_STRING(job_id), self.prefix, _PREFIX)
        memcpy(PyBytes_AS_STRING(job_id) + _PREFIX, p, _TAIL)
        fields.id = job_id
        if self.kind == _JOBS:
            ctime_ns = <int64_t>get64(p + 29)
            if ctime_ns < 0:
                raise RecordError("a job in a record about several was made before all times")
            fields.ctime_ns = fields.order_ns = ctime_ns
            fields.expires_wall_ms = ctime_ns // 1000000 + <int64_t>fields.ttl_s * 1000 + <int32_t>get32(p + 37)
            fields.body = PyBytes_FromStringAndSize(<const char*>p + _ITEM_BYTES, self.body_bytes)
            size = _ITEM_BYTES + self.body_bytes
        self.size = self.lead + size
        self.lead = 0
        self.at += size
        return True


cpdef list subjects(int kind, bytes data, Py_ssize_t start, Py_ssize_t end):
    """See the plain twin."""
    cdef Py_ssize_t size = _PAYLOAD + end - start
    cdef int single
    cdef GroupReader reader
    cdef list found
    if kind == _JOB or kind == _STATE:
        return [(kind, job_id_at(data, start), 0, size)]
    if kind == _FORGOTTEN:
        job_id, target = decode_forgotten(data, start, end)
        return [(kind, job_id, target, size)]
    if kind < _JOBS or kind > _ENDS:
        return []
    single = kind - _JOBS + _JOB
    reader = GroupReader()
    reader.begin(kind, data, start, end)
    found = []
    while reader.advance():
        found.append((single, reader.fields.id, reader.target, reader.size))
    return found
