"""The journal's records on raw memory: the compiled twin of `journal_records.py`, equal to it in all that can be seen."""

cimport cython
from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongAndOverflow
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.string cimport memcpy

from crc32c import crc32c

include "journal_memory.pxi"

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <nmmintrin.h>
    static int has_crc32c_instruction(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("sse4.2") != 0;
    }
    __attribute__((target("sse4.2")))
    static uint32_t crc32c_by_instruction(const uint8_t* p, Py_ssize_t count, uint32_t start) {
        uint64_t crc = (uint32_t)~start;
        uint64_t word;
        for (; count >= 8; p += 8, count -= 8) {
            memcpy(&word, p, 8);
            crc = _mm_crc32_u64(crc, word);
        }
        for (; count > 0; p++, count--)
            crc = _mm_crc32_u8((uint32_t)crc, *p);
        return ~(uint32_t)crc;
    }
    #else
    static int has_crc32c_instruction(void) { return 0; }
    static uint32_t crc32c_by_instruction(const uint8_t* p, Py_ssize_t count, uint32_t start) { return 0; }
    #endif
    """
    bint has_crc32c_instruction() noexcept
    uint32_t crc32c_by_instruction(const uint8_t* p, Py_ssize_t count, uint32_t start) noexcept

from disqueue.wire import journal_format as _format
from disqueue.wire.journal_format import RecordError

WHOLE = 1
MORE = 2
DAMAGED = 3

cdef enum:
    _WHOLE = 1
    _MORE = 2
    _DAMAGED = 3
    _PASS = 1
    _SEGMENT_START = 2
    _JOB = 3
    _STATE = 4
    _FORGOTTEN = 5
    _ID = 40
    _FRAME = 8
    # The fixed parts of payloads.
    _PASS_BYTES = 28
    _START_BYTES = 12
    _STATE_BYTES = 71
    _JOB_BYTES = 109
    _FORGOTTEN_BYTES = 44

cdef int64_t _RECORD_BYTES_MAX = _format.RECORD_BYTES_MAX
cdef bytes _PASS_MAGIC = _format.PASS_MAGIC
cdef object _crc32c = crc32c
cdef bint _by_instruction = has_crc32c_instruction()

assert (_PASS_BYTES, _START_BYTES, _STATE_BYTES, _JOB_BYTES, _FORGOTTEN_BYTES) == (
    _format.PASS_BYTES, _format.START_BYTES, _format.STATE_BYTES, _format.JOB_BYTES, _format.FORGOTTEN_BYTES
)


cdef uint32_t checksum_of(const uint8_t* p, Py_ssize_t count, int64_t place) except? 0:
    if _by_instruction:  # records are short: most of the time would go into the call and the view
        return crc32c_by_instruction(p, count, <uint32_t>place)
    return _crc32c(PyMemoryView_FromMemory(<char*>p, count, PyBUF_READ), place & 0xFFFFFFFF)


cdef int close_record(bytearray buffer, int64_t base, uint8_t* p) except -1:
    """Put the checksum before a record that reaches to the end of the buffer."""
    cdef Py_ssize_t at = p - <uint8_t*>PyByteArray_AS_STRING(buffer)
    put32(p, checksum_of(p + 4, PyByteArray_GET_SIZE(buffer) - at - 4, base + at))
    return 0


cpdef void append_record(bytearray buffer, long long base, int kind, bytes payload) except *:
    """See the plain twin."""
    cdef Py_ssize_t count = PyBytes_GET_SIZE(payload)
    cdef uint8_t* p = open_record(buffer, count, kind)
    memcpy(p + _PAYLOAD, PyBytes_AS_STRING(payload), count)
    close_record(buffer, base, p)


cpdef void append_pass(
    bytearray buffer, long long base, long long wall_ms, long long synced_segment, long long synced_offset
) except *:
    """See the plain twin."""
    cdef uint8_t* p = open_record(buffer, _PASS_BYTES, _PASS)
    memcpy(p + 9, PyBytes_AS_STRING(_PASS_MAGIC), 8)
    put64(p + 17, wall_ms)
    put32(p + 25, <uint32_t>synced_segment)
    put64(p + 29, synced_offset)
    close_record(buffer, base, p)


cpdef void append_start(bytearray buffer, long long base, long long previous_segment, long long previous_end) except *:
    """See the plain twin."""
    cdef uint8_t* p = open_record(buffer, _START_BYTES, _SEGMENT_START)
    put32(p + 9, <uint32_t>previous_segment)
    put64(p + 13, previous_end)
    close_record(buffer, base, p)


cdef int check_id(bytes job_id) except -1:
    if PyBytes_GET_SIZE(job_id) != _ID:
        raise ValueError("a job id has 40 bytes")
    return 0


cdef void put_state(
    uint8_t* p, const char* job_id, int state, int flags, long long nacks, long long deliveries, long long due_wall_ms,
    long long order_ns, Py_ssize_t owner_size, Py_ssize_t confirmed_size
) noexcept:
    """Write the fixed part of a state behind the head of a record."""
    memcpy(p + 9, job_id, _ID)
    p[49] = <uint8_t>state
    put16(p + 50, <uint16_t>flags)
    put32(p + 52, <uint32_t>nacks)
    put32(p + 56, <uint32_t>deliveries)
    put64(p + 60, due_wall_ms)
    put64(p + 68, order_ns)
    put16(p + 76, <uint16_t>owner_size)
    put16(p + 78, <uint16_t>confirmed_size)


cdef inline Py_ssize_t mask_size(object mask) except -1:
    cdef int overflow
    cdef long value = PyLong_AsLongAndOverflow(mask, &overflow)
    if 0 <= value < 256 and not overflow:
        return value != 0
    return (mask.bit_length() + 7) >> 3


cdef inline int write_mask(uint8_t* p, object mask, Py_ssize_t count) except -1:
    cdef bytes wide
    if count == 1:
        p[0] = <uint8_t>mask
    elif count > 1:
        wide = mask.to_bytes(count, "little")
        memcpy(p, PyBytes_AS_STRING(wide), count)
    return 0


cpdef void append_state(
    bytearray buffer, long long base, bytes job_id, int state, int flags, long long nacks, long long deliveries,
    long long due_wall_ms, long long order_ns, object owners, object confirmed
) except *:
    """See the plain twin."""
    check_id(job_id)
    write_state(
        buffer, base, PyBytes_AS_STRING(job_id), state, flags, nacks, deliveries, due_wall_ms, order_ns, owners, confirmed
    )


cdef int write_state(
    bytearray buffer, int64_t base, const char* job_id, int state, int flags, long long nacks, long long deliveries,
    long long due_wall_ms, long long order_ns, object owners, object confirmed
) except -1:
    """The same with the 40 characters of an id."""
    cdef Py_ssize_t owner_size = mask_size(owners)
    cdef Py_ssize_t confirmed_size = mask_size(confirmed)
    cdef uint8_t* p = open_record(buffer, _STATE_BYTES + owner_size + confirmed_size, _STATE)
    put_state(p, job_id, state, flags, nacks, deliveries, due_wall_ms, order_ns, owner_size, confirmed_size)
    write_mask(p + 80, owners, owner_size)
    write_mask(p + 80 + owner_size, confirmed, confirmed_size)
    return close_record(buffer, base, p)


cpdef void append_job(
    bytearray buffer, long long base, bytes job_id, int state, int flags, long long nacks, long long deliveries,
    long long due_wall_ms, long long order_ns, object owners, object confirmed, long long ctime_ns,
    long long expires_wall_ms, long long retry_s, long long delay_s, long long ttl_s, int repl, bytes queue, bytes body
) except *:
    """See the plain twin."""
    check_id(job_id)
    write_job(
        buffer, base, PyBytes_AS_STRING(job_id), state, flags, nacks, deliveries, due_wall_ms, order_ns, owners, confirmed,
        ctime_ns, expires_wall_ms, retry_s, delay_s, ttl_s, repl, queue, body
    )


cdef int write_job(
    bytearray buffer, int64_t base, const char* job_id, int state, int flags, long long nacks, long long deliveries,
    long long due_wall_ms, long long order_ns, object owners, object confirmed, long long ctime_ns,
    long long expires_wall_ms, long long retry_s, long long delay_s, long long ttl_s, int repl, bytes queue, bytes body
) except -1:
    """The same with the 40 characters of an id."""
    cdef Py_ssize_t owner_size = mask_size(owners)
    cdef Py_ssize_t confirmed_size = mask_size(confirmed)
    cdef Py_ssize_t queue_size = PyBytes_GET_SIZE(queue)
    cdef Py_ssize_t body_size = PyBytes_GET_SIZE(body)
    cdef uint8_t* p = open_record(buffer, _JOB_BYTES + owner_size + confirmed_size + queue_size + body_size, _JOB)
    put_state(p, job_id, state, flags, nacks, deliveries, due_wall_ms, order_ns, owner_size, confirmed_size)
    put64(p + 80, ctime_ns)
    put64(p + 88, expires_wall_ms)
    put32(p + 96, <uint32_t>retry_s)
    put32(p + 100, <uint32_t>delay_s)
    put32(p + 104, <uint32_t>ttl_s)
    put16(p + 108, <uint16_t>repl)
    put32(p + 110, <uint32_t>queue_size)
    put32(p + 114, <uint32_t>body_size)
    cdef uint8_t* q = p + 118
    write_mask(q, owners, owner_size)
    q += owner_size
    write_mask(q, confirmed, confirmed_size)
    q += confirmed_size
    memcpy(q, PyBytes_AS_STRING(queue), queue_size)
    memcpy(q + queue_size, PyBytes_AS_STRING(body), body_size)
    return close_record(buffer, base, p)


cpdef void append_forgotten(bytearray buffer, long long base, bytes job_id, long long segment) except *:
    """See the plain twin."""
    check_id(job_id)
    cdef uint8_t* p = open_record(buffer, _FORGOTTEN_BYTES, _FORGOTTEN)
    memcpy(p + 9, PyBytes_AS_STRING(job_id), _ID)
    put32(p + 49, <uint32_t>segment)
    close_record(buffer, base, p)


cpdef void reseal(bytearray buffer, long long base) except *:
    """See the plain twin."""
    cdef uint8_t* p = <uint8_t*>PyByteArray_AS_STRING(buffer)
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(buffer)
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t length
    while at < size:
        length = get32(p + at + 4)
        put32(p + at, checksum_of(p + at + 4, length + 4, base + at))
        at += _FRAME + length


cpdef void empty(bytearray buffer) except *:
    """See the plain twin."""
    cdef Py_ssize_t size = PyByteArray_GET_SIZE(buffer)
    cdef Py_ssize_t room = room_in(<PyObject*>buffer)
    if room > 4 * size + _SPARE or (room < 0 and size > 0):  # the latter raises: somebody looks at it
        PyByteArray_Resize(buffer, 0)
    elif room >= 0:  # an empty one may have no memory
        set_length(<PyObject*>buffer, 0)


@cython.final
cdef class RecordScanner:
    """See the plain twin."""

    def __init__(self, salt):
        self.salt = salt
        self.data = b""
        self.data_offset = 0
        self.at = 0
        self.size = 0
        self.kind = 0
        self.start = 0
        self.end = 0
        self.offset = 0
        self.needed = 0

    cpdef void feed(self, bytes data, long long offset) except *:
        self.data = data
        self.data_offset = offset
        self.offset = offset
        self.at = 0
        self.size = PyBytes_GET_SIZE(data)

    cpdef int advance(self) except 0:
        cdef Py_ssize_t at = self.at
        cdef Py_ssize_t left = self.size - at
        cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(self.data) + at
        cdef int64_t length
        self.offset = self.data_offset + at
        self.needed = _FRAME
        if left < _FRAME:
            return _MORE
        length = get32(p + 4)
        if length < 1 or length > _RECORD_BYTES_MAX:
            return _DAMAGED
        self.needed = _FRAME + length
        if left < self.needed:
            return _MORE
        if checksum_of(p + 4, length + 4, self.salt + self.offset) != get32(p):
            return _DAMAGED
        self.kind = p[8]
        self.start = at + _PAYLOAD
        self.end = at + self.needed
        self.at = self.end
        return _WHOLE

    cpdef bytes payload(self):
        return self.data[self.start : self.end]


@cython.final
cdef class JobFields:
    """See the plain twin."""

    def __init__(self):
        self.id = b""
        self.owners = 0
        self.confirmed = 0
        self.queue = b""
        self.body = b""


cdef object get_mask(const uint8_t* p, Py_ssize_t count):
    if count == 0:
        return 0
    if count == 1:
        return p[0]
    return int.from_bytes(PyBytes_FromStringAndSize(<const char*>p, count), "little")


cdef Py_ssize_t get_state(const uint8_t* p, JobFields fields) except -1:
    """Read the fixed part of a state; return the length of both sets."""
    fields.id = PyBytes_FromStringAndSize(<const char*>p, _ID)
    fields.state = p[40]
    fields.flags = get16(p + 41)
    fields.nacks = get32(p + 43)
    fields.deliveries = get32(p + 47)
    fields.due_wall_ms = <int64_t>get64(p + 51)
    fields.order_ns = <int64_t>get64(p + 59)
    return get16(p + 67) + get16(p + 69)


cpdef void read_state(bytes data, Py_ssize_t start, Py_ssize_t end, JobFields fields) except *:
    """See the plain twin."""
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(data) + start
    if end - start < _STATE_BYTES or end > PyBytes_GET_SIZE(data):
        raise RecordError("a state record is too short")
    if start + _STATE_BYTES + get_state(p, fields) > end:
        raise RecordError("the sets of nodes in a state record are longer than the record")
    fields.owners = get_mask(p + _STATE_BYTES, get16(p + 67))
    fields.confirmed = get_mask(p + _STATE_BYTES + get16(p + 67), get16(p + 69))


cpdef void read_job(bytes data, Py_ssize_t start, Py_ssize_t end, JobFields fields) except *:
    """See the plain twin."""
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(data) + start
    if end - start < _JOB_BYTES or end > PyBytes_GET_SIZE(data):
        raise RecordError("a job record is too short")
    cdef int64_t queue_at = _JOB_BYTES + get_state(p, fields)
    cdef int64_t queue_size = get32(p + 101)
    cdef int64_t body_size = get32(p + 105)
    if start + queue_at + queue_size + body_size > end:
        raise RecordError("the queue name and the body in a job record are longer than the record")
    fields.owners = get_mask(p + _JOB_BYTES, get16(p + 67))
    fields.confirmed = get_mask(p + _JOB_BYTES + get16(p + 67), get16(p + 69))
    fields.ctime_ns = <int64_t>get64(p + 71)
    fields.expires_wall_ms = <int64_t>get64(p + 79)
    fields.retry_s = get32(p + 87)
    fields.delay_s = get32(p + 91)
    fields.ttl_s = get32(p + 95)
    fields.repl = get16(p + 99)
    fields.queue = PyBytes_FromStringAndSize(<const char*>p + queue_at, queue_size)
    fields.body = PyBytes_FromStringAndSize(<const char*>p + queue_at + queue_size, body_size)


cpdef tuple decode_forgotten(bytes data, Py_ssize_t start, Py_ssize_t end):
    """See the plain twin."""
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(data) + start
    if end - start < _FORGOTTEN_BYTES or end > PyBytes_GET_SIZE(data):
        raise RecordError("a record of a forgotten job is too short")
    return PyBytes_FromStringAndSize(<const char*>p, _ID), get32(p + 40)


cpdef bytes job_id_at(bytes data, Py_ssize_t start):
    """See the plain twin."""
    return data[start : start + _ID]
