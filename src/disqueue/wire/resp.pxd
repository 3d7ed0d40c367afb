# The C side of the RESP wire; other compiled modules cimport it from here.

cimport cython
from cpython.object cimport PyObject


@cython.final
cdef class RequestParser:
    cdef Py_ssize_t max_arguments, max_bulk_bytes, max_line_bytes, max_query_buffer_bytes
    # Unparsed input: a bytes object that is used as raw memory.
    cdef PyObject* block
    cdef Py_ssize_t capacity, start, end, scanned
    # Where the event loop may write: the end of `block` or of `body`.
    cdef char* window
    cdef Py_ssize_t window_room
    cdef bint window_in_body
    # The request that is being received.
    cdef list arguments
    cdef Py_ssize_t count, filled, request_bytes
    # The argument that is being received: its announced length, and memory of its own if it is large.
    cdef PyObject* body
    cdef Py_ssize_t body_bytes, body_capacity, body_filled
    cdef bint broken

    cpdef void feed(self, data) except *
    cpdef object get_buffer(self, Py_ssize_t sizehint=*)
    cpdef object get_window(self, Py_ssize_t sizehint=*)
    cpdef Py_ssize_t held_bytes(self) noexcept
    cpdef void buffer_updated(self, Py_ssize_t count) except *
    cpdef list next_request(self)

    cdef int open_window(self) except -1
    cdef list parse(self)
    cdef bint begin_request(self) except -1
    cdef bint receive_arguments(self) except -1
    cdef int take_usual_arguments(self) except -1
    cdef bint begin_argument(self) except -1
    cdef bint receive_large(self) except -1
    cdef int begin_large(self, Py_ssize_t available) except -1
    cdef int add_argument(self, PyObject* argument) except -1
    cdef int hide_missing(self) except -1
    cdef list take_inline(self)
    cdef Py_ssize_t header(self) noexcept
    cdef Py_ssize_t unusual_header(self) noexcept
    cdef Py_ssize_t line_end(self) noexcept
    cdef int take_in(self, const char* data, Py_ssize_t count) except -1
    cdef int reserve(self, Py_ssize_t count) except -1
    cdef int reserve_body(self, Py_ssize_t count) except -1
    cdef int settle(self) except -1
    cdef int check_unparsed(self) except -1
    cdef int fail(self, bytes text) except -1
    cdef void abandon(self) noexcept


@cython.final
cdef class ReplyWriter:
    cdef public int protocol
    cdef readonly Py_ssize_t size
    cdef PyObject* block
    cdef char* data
    cdef Py_ssize_t capacity, usual_bytes

    cpdef bytes take(self)
    cdef int drop_sent(self, Py_ssize_t count) except -1
    cpdef void raw(self, bytes data) except *
    cpdef void status(self, bytes text) except *
    cpdef void error(self, bytes text) except *
    cpdef void integer(self, long long number) except *
    cpdef void boolean(self, bint value) except *
    cpdef void double(self, double value) except *
    cpdef void bulk(self, bytes data) except *
    cpdef void bulk_array(self, list items) except *
    cpdef void null_bulk(self) except *
    cpdef void null_array(self) except *
    cpdef void array(self, Py_ssize_t count) except *
    cpdef void map(self, Py_ssize_t pairs) except *
    cpdef void push(self, Py_ssize_t count) except *
    cpdef void job(self, bytes queue, bytes job_id, bytes body) except *
    cpdef void job_with_counters(
        self, bytes queue, bytes job_id, bytes body, long long nacks, long long additional_deliveries
    ) except *

    cdef int reserve(self, Py_ssize_t count) except -1
    cdef int grow(self, Py_ssize_t count) except -1
    cdef int line(self, char kind, bytes text) except -1
    cdef int head(self, char kind, long long number) except -1
    cdef int constant(self, const char* text, Py_ssize_t count) except -1
    cdef void add_head(self, char kind, long long number) noexcept
    cdef void add(self, const char* data, Py_ssize_t count) noexcept
    cdef void add_string(self, bytes data) noexcept
