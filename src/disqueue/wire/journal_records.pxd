# C types of journal_records.py.

cimport cython

cdef int _PASS_BYTES
cdef int _START_BYTES
cdef int _STATE_BYTES
cdef int _JOB_BYTES
cdef int _FORGOTTEN_BYTES
cdef object _CRC
cdef object _FRAME
cdef object _STATE
cdef object _JOB
cdef object _FORGOTTEN
cdef object _STATE_PAYLOAD
cdef object _JOB_PAYLOAD
cdef object _FORGOTTEN_PAYLOAD
cdef list _SMALL_MASKS
cdef object crc32c

@cython.locals(checksum="unsigned int")
cdef void _seal(bytearray buffer, long long base, bytes record) except *
cpdef void append_record(bytearray buffer, long long base, int kind, bytes payload) except *
cpdef void append_pass(
    bytearray buffer, long long base, long long wall_ms, long long synced_segment, long long synced_offset
) except *
cpdef void append_start(bytearray buffer, long long base, long long previous_segment, long long previous_end) except *
cpdef bytes mask_bytes(object mask)
@cython.locals(owner_bytes=bytes, confirmed_bytes=bytes)
cpdef void append_state(
    bytearray buffer, long long base, bytes job_id, int state, int flags, long long nacks, long long deliveries,
    long long due_wall_ms, long long order_ns, object owners, object confirmed
) except *
@cython.locals(owner_bytes=bytes, confirmed_bytes=bytes)
cpdef void append_job(
    bytearray buffer, long long base, bytes job_id, int state, int flags, long long nacks, long long deliveries,
    long long due_wall_ms, long long order_ns, object owners, object confirmed, long long ctime_ns,
    long long expires_wall_ms, long long retry_s, long long delay_s, long long ttl_s, int repl, bytes queue, bytes body
) except *
cpdef void append_forgotten(bytearray buffer, long long base, bytes job_id, long long segment) except *


cdef class RecordScanner:
    cdef public long long salt
    cdef public bytes data
    cdef public object view
    cdef public Py_ssize_t data_offset
    cdef public Py_ssize_t at
    cdef public Py_ssize_t size
    cdef public int kind
    cdef public Py_ssize_t start
    cdef public Py_ssize_t end
    cdef public long long offset
    cdef public Py_ssize_t needed

    cpdef void feed(self, bytes data, long long offset) except *
    @cython.locals(at=Py_ssize_t, left=Py_ssize_t, end=Py_ssize_t, length="unsigned int", checksum="unsigned int")
    cpdef int advance(self) except 0
    cpdef bytes payload(self)


cpdef object decode_mask(bytes data, Py_ssize_t start, Py_ssize_t size)
@cython.locals(fields=tuple, owner_size=Py_ssize_t, confirmed_size=Py_ssize_t, at=Py_ssize_t)
cpdef tuple decode_state(bytes data, Py_ssize_t start, Py_ssize_t end)
@cython.locals(
    fields=tuple, owner_size=Py_ssize_t, confirmed_size=Py_ssize_t, at=Py_ssize_t, queue_at=Py_ssize_t, body_at=Py_ssize_t,
    body_end=Py_ssize_t
)
cpdef tuple decode_job(bytes data, Py_ssize_t start, Py_ssize_t end)
cpdef tuple decode_forgotten(bytes data, Py_ssize_t start, Py_ssize_t end)
