"""Jobs as records of the journal: the compiled twin of `job_records.py`, which says what is done."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcmp, memcpy

from disqueue.core.job cimport Job
from disqueue.core.queue cimport Queue
from disqueue.wire.journal_records cimport checksum_of, write_job, write_state

from disqueue.wire import journal_format as _format

include "../wire/journal_memory.pxi"

cdef enum:
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
    _GROUP_BYTES_MAX = 8192

cdef object NONE_OF_THEM = 0  # the set of no nodes, most often this very object
cdef int64_t LATER_MAX = 1LL << 31

assert (_STATES_BYTES, _JOBS_BYTES, _ENDS_BYTES, _ITEM_BYTES, _GROUP_BYTES_MAX) == (
    _format.STATES_BYTES, _format.JOBS_BYTES, _format.ENDS_BYTES, _format.JOBS_ITEM_BYTES, _format.GROUP_BYTES_MAX
)


cdef inline bint is_usual(Job job) except -1:
    if job.order_ns != job.ctime_ns or (job.confirmed is not NONE_OF_THEM and job.confirmed != 0):
        return False
    return (<object>1 is job.owners) or job.owners.bit_length() < 64


@cython.final
cdef class JobRecords:
    """See the plain twin."""

    def __init__(self):
        self.buffer = bytearray()
        self.owners = 0
        self.name = b""

    cpdef void begin(self, bytearray buffer, long long base) except *:
        self.buffer = buffer
        self.base = base
        self.kind = 0  # a record that an exception left open ends in another buffer

    cpdef int finish(self) except -1:
        cdef uint8_t* p
        cdef Py_ssize_t size
        if self.kind != 0:
            p = <uint8_t*>PyByteArray_AS_STRING(self.buffer) + self.at
            size = PyByteArray_GET_SIZE(self.buffer) - self.at
            put32(p + 4, <uint32_t>(size - 8))
            put16(p + _PAYLOAD + _PREFIX, <uint16_t>self.count)
            put32(p, checksum_of(p + 4, size - 4, self.base + self.at))
            self.kind = 0
        return 0

    cpdef Py_ssize_t whole(self, Job job, long long wall_offset_ms) except -1:
        cdef Queue queue = job.queue
        cdef bytes name = b"" if queue is None else queue.name
        cdef bytes body = job.body
        cdef Py_ssize_t body_bytes = PyBytes_GET_SIZE(body)
        cdef Py_ssize_t lead = _PAYLOAD + _JOBS_BYTES + PyBytes_GET_SIZE(name)
        cdef Py_ssize_t size = _ITEM_BYTES + body_bytes
        cdef int64_t due_ms = job.due_ms + wall_offset_ms if job.due_ms != 0 else 0
        cdef int64_t expires_ms = job.expires_ms + wall_offset_ms
        cdef int64_t later_ms = expires_ms - (job.ctime_ns // 1000000 + job.ttl_s * 1000)
        cdef uint8_t* p
        if (
            job.ctime_ns < 0 or later_ms < -LATER_MAX or later_ms >= LATER_MAX or lead + size > _GROUP_BYTES_MAX
            or not is_usual(job)
        ):
            return self.whole_alone(job, due_ms, expires_ms, name)
        if self.has_room(_JOBS, size) and self.body_bytes == body_bytes and self.has_state(job, due_ms) and self.is_like(job, name):
            self.count += 1
            p = extend(self.buffer, size)
            lead = 0
        else:
            p = self.open_state(_JOBS, job, due_ms, lead + size)
            put32(p + 36, <uint32_t>job.retry_s)
            put32(p + 40, <uint32_t>job.delay_s)
            put32(p + 44, <uint32_t>job.ttl_s)
            put16(p + 48, job.replicate)
            put16(p + 50, <uint16_t>PyBytes_GET_SIZE(name))
            put32(p + 52, <uint32_t>body_bytes)
            memcpy(p + 56, PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
            p += 56 + PyBytes_GET_SIZE(name)
            self.retry_s = job.retry_s
            self.delay_s = job.delay_s
            self.ttl_s = job.ttl_s
            self.replicate = job.replicate
            self.name = name
            self.body_bytes = body_bytes
        memcpy(p, job.id_text + _PREFIX, _TAIL)
        put64(p + 29, job.ctime_ns)
        put32(p + 37, <uint32_t>later_ms)
        memcpy(p + 41, PyBytes_AS_STRING(body), body_bytes)
        return lead + size

    cpdef Py_ssize_t changed(self, Job job, long long wall_offset_ms) except -1:
        cdef int64_t due_ms = job.due_ms + wall_offset_ms if job.due_ms != 0 else 0
        cdef uint8_t* p
        if not is_usual(job):
            return self.state_alone(job, due_ms)
        if self.has_room(_STATES, _TAIL) and self.has_state(job, due_ms):
            self.count += 1
            memcpy(extend(self.buffer, _TAIL), job.id_text + _PREFIX, _TAIL)
            return _TAIL
        p = self.open_state(_STATES, job, due_ms, _PAYLOAD + _STATES_BYTES + _TAIL)
        memcpy(p + _STATES_BYTES, job.id_text + _PREFIX, _TAIL)
        return _PAYLOAD + _STATES_BYTES + _TAIL

    cpdef Py_ssize_t ended(self, Job job, long long segment) except -1:
        return self.append_end(job.id_text, segment)

    cpdef Py_ssize_t ended_id(self, bytes job_id, long long segment) except -1:
        if PyBytes_GET_SIZE(job_id) != _ID:
            raise ValueError("a job id has 40 bytes")
        return self.append_end(PyBytes_AS_STRING(job_id), segment)

    cdef Py_ssize_t append_end(self, const char* job_id, int64_t segment) except -1:
        cdef uint8_t* p
        if self.has_room(_ENDS, _TAIL) and self.segment == segment and memcmp(self.prefix, job_id, _PREFIX) == 0:
            self.count += 1
            memcpy(extend(self.buffer, _TAIL), job_id + _PREFIX, _TAIL)
            return _TAIL
        p = self.open(_ENDS, job_id, _PAYLOAD + _ENDS_BYTES + _TAIL)
        put32(p + 13, <uint32_t>segment)
        memcpy(p + _ENDS_BYTES, job_id + _PREFIX, _TAIL)
        self.segment = segment
        return _PAYLOAD + _ENDS_BYTES + _TAIL

    cdef inline bint has_room(self, int kind, Py_ssize_t size) noexcept:
        """Whether the open record is of this kind and may take so many bytes more."""
        return self.kind == kind and PyByteArray_GET_SIZE(self.buffer) - self.at + size <= _GROUP_BYTES_MAX

    cdef inline bint has_state(self, Job job, int64_t due_ms) except -1:
        """Whether a job's state is that of the jobs in the open record."""
        return (
            self.due_ms == due_ms and self.state == job.state and self.flags == job.flags and self.nacks == job.nacks
            and self.deliveries == job.deliveries and memcmp(self.prefix, job.id_text, _PREFIX) == 0
            and (self.owners is job.owners or self.owners == job.owners)
        )

    cdef inline bint is_like(self, Job job, bytes name) except -1:
        """The same of what never changes, but for the body's length."""
        return (
            self.ttl_s == job.ttl_s and self.retry_s == job.retry_s and self.delay_s == job.delay_s
            and self.replicate == job.replicate and (self.name is name or self.name == name)
        )

    cdef uint8_t* open(self, int kind, const char* job_id, Py_ssize_t size) except NULL:
        """Begin a record of `size` bytes so far, for one job; return where its payload begins."""
        self.finish()
        cdef Py_ssize_t at = PyByteArray_GET_SIZE(self.buffer)
        cdef uint8_t* p = extend(self.buffer, size)
        self.kind = kind
        self.count = 1
        self.at = at
        memcpy(self.prefix, job_id, _PREFIX)
        p[8] = <uint8_t>kind
        memcpy(p + _PAYLOAD, job_id, _PREFIX)
        return p + _PAYLOAD

    cdef uint8_t* open_state(self, int kind, Job job, int64_t due_ms, Py_ssize_t size) except NULL:
        """The same, with the state of a job."""
        cdef uint64_t owners = job.owners
        cdef uint8_t* p = self.open(kind, job.id_text, size)
        p[13] = job.state
        put16(p + 14, job.flags)
        put16(p + 16, job.nacks)
        put16(p + 18, job.deliveries)
        put64(p + 20, due_ms)
        put64(p + 28, owners)
        self.state = job.state
        self.flags = job.flags
        self.nacks = job.nacks
        self.deliveries = job.deliveries
        self.due_ms = due_ms
        self.owners = job.owners
        return p

    cdef Py_ssize_t whole_alone(self, Job job, int64_t due_ms, int64_t expires_ms, bytes name) except -1:
        self.finish()
        cdef Py_ssize_t before = PyByteArray_GET_SIZE(self.buffer)
        write_job(
            self.buffer, self.base, job.id_text, job.state, job.flags, job.nacks, job.deliveries, due_ms, job.order_ns,
            job.owners, job.confirmed, job.ctime_ns, expires_ms, job.retry_s, job.delay_s, job.ttl_s, job.replicate, name,
            job.body
        )
        return PyByteArray_GET_SIZE(self.buffer) - before

    cdef Py_ssize_t state_alone(self, Job job, int64_t due_ms) except -1:
        self.finish()
        cdef Py_ssize_t before = PyByteArray_GET_SIZE(self.buffer)
        write_state(
            self.buffer, self.base, job.id_text, job.state, job.flags, job.nacks, job.deliveries, due_ms, job.order_ns,
            job.owners, job.confirmed
        )
        return PyByteArray_GET_SIZE(self.buffer) - before
