# The C side of the journal's records; other compiled modules cimport it from here.

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

cpdef void append_record(bytearray buffer, long long base, int kind, bytes payload) except *
cpdef void append_pass(
    bytearray buffer, long long base, long long wall_ms, long long synced_segment, long long synced_offset
) except *
cpdef void append_start(bytearray buffer, long long base, long long previous_segment, long long previous_end) except *
cpdef void append_state(
    bytearray buffer, long long base, bytes job_id, int state, int flags, long long nacks, long long deliveries,
    long long due_wall_ms, long long order_ns, object owners, object confirmed
) except *
cpdef void append_job(
    bytearray buffer, long long base, bytes job_id, int state, int flags, long long nacks, long long deliveries,
    long long due_wall_ms, long long order_ns, object owners, object confirmed, long long ctime_ns,
    long long expires_wall_ms, long long retry_s, long long delay_s, long long ttl_s, int repl, bytes queue, bytes body
) except *
cpdef void append_forgotten(bytearray buffer, long long base, bytes job_id, long long segment) except *
cdef int write_state(
    bytearray buffer, int64_t base, const char* job_id, int state, int flags, long long nacks, long long deliveries,
    long long due_wall_ms, long long order_ns, object owners, object confirmed
) except -1
cdef int write_job(
    bytearray buffer, int64_t base, const char* job_id, int state, int flags, long long nacks, long long deliveries,
    long long due_wall_ms, long long order_ns, object owners, object confirmed, long long ctime_ns,
    long long expires_wall_ms, long long retry_s, long long delay_s, long long ttl_s, int repl, bytes queue, bytes body
) except -1
cpdef void reseal(bytearray buffer, long long base) except *
cpdef void empty(bytearray buffer) except *
cdef uint32_t checksum_of(const uint8_t* p, Py_ssize_t count, int64_t place) except? 0


@cython.final
cdef class RecordScanner:
    cdef public long long salt
    cdef public bytes data
    cdef public Py_ssize_t data_offset
    cdef public Py_ssize_t at
    cdef public Py_ssize_t size
    cdef public int kind
    cdef public Py_ssize_t start
    cdef public Py_ssize_t end
    cdef public long long offset
    cdef public Py_ssize_t needed

    cpdef void feed(self, bytes data, long long offset) except *
    cpdef int advance(self) except 0
    cpdef bytes payload(self)


@cython.final
cdef class JobFields:
    cdef public bytes id
    cdef public unsigned char state
    cdef public unsigned short flags
    cdef public unsigned int nacks
    cdef public unsigned int deliveries
    cdef public long long due_wall_ms
    cdef public long long order_ns
    cdef public object owners
    cdef public object confirmed
    cdef public long long ctime_ns
    cdef public long long expires_wall_ms
    cdef public unsigned int retry_s
    cdef public unsigned int delay_s
    cdef public unsigned int ttl_s
    cdef public unsigned short repl
    cdef public bytes queue
    cdef public bytes body


cpdef void read_state(bytes data, Py_ssize_t start, Py_ssize_t end, JobFields fields) except *
cpdef void read_job(bytes data, Py_ssize_t start, Py_ssize_t end, JobFields fields) except *
cpdef tuple decode_forgotten(bytes data, Py_ssize_t start, Py_ssize_t end)
cpdef bytes job_id_at(bytes data, Py_ssize_t start)
