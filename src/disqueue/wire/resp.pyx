"""RESP requests and replies on raw memory: the compiled twin of `resp.py`, equal to it in all that can be seen.

Memory is held in bytes objects that nobody else has yet: a large body becomes the argument without a copy, and a view
that an event loop still holds keeps alive what it points to.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromObject
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memmove

from disqueue.wire.resp_common import (
    ARGUMENT_OVERHEAD_BYTES,
    DEFAULT_LIMITS,
    INVALID_COUNT,
    INVALID_LENGTH,
    LARGE_BODY_BYTES,
    NO_TERMINATOR,
    READ_BYTES,
    TOO_BIG_COUNT,
    TOO_BIG_INLINE,
    TOO_BIG_LENGTH,
    ParserLimits,
    ProtocolError,
    query_buffer_exceeded,
    split_inline,
    unexpected_type,
)

__all__ = ["ParserLimits", "ProtocolError", "ReplyWriter", "RequestParser", "keep_words"]


cdef extern from "Python.h":
    PyObject* new_bytes "PyBytes_FromStringAndSize" (const char* data, Py_ssize_t count) except NULL
    int resize_bytes "_PyBytes_Resize" (PyObject** block, Py_ssize_t count) except -1
    char* bytes_data "PyBytes_AS_STRING" (PyObject* block) noexcept
    Py_ssize_t bytes_size "PyBytes_GET_SIZE" (PyObject* block) noexcept
    Py_ssize_t references "Py_REFCNT" (PyObject* block) noexcept
    void keep "Py_INCREF" (PyObject* block) noexcept
    void drop "Py_DECREF" (PyObject* block) noexcept
    list new_list "PyList_New" (Py_ssize_t count)
    int append_item "PyList_Append" (list items, PyObject* item) except -1
    int set_item "PyList_SetItem" (list items, Py_ssize_t index, PyObject* item) except -1


cdef Py_ssize_t _ARGUMENT_OVERHEAD_BYTES = ARGUMENT_OVERHEAD_BYTES
cdef Py_ssize_t _LARGE_BODY_BYTES = LARGE_BODY_BYTES
cdef Py_ssize_t _READ_BYTES = READ_BYTES

cdef enum:
    # What `header` and `line_end` return instead of a number.
    NEGATIVE = -1
    INCOMPLETE = -2
    INVALID = -3
    TOO_LONG = -4
    # More digits than this are beyond every limit, and this many fit in 64 bits.
    MAX_DIGITS = 18
    # The header of a body of up to 9 digits; longer ones are rare. And the least that an argument can be: $0 and two line ends.
    USUAL_HEADER_BYTES = 12
    SHORTEST_ARGUMENT_BYTES = 6
    # The least room that is offered to a read.
    MIN_READ_BYTES = 16384
    # A rest of input up to this size gets memory of its own, so that a slow client does not hold a read block.
    SMALL_REST_BYTES = 4096
    # A list for up to this many arguments is made at once; a longer one grows as they come, whatever was announced.
    PREPARED_ARGUMENTS = 64
    # Read blocks kept for the next read. More are only in use at once while many requests are half received.
    SPARE_BLOCKS = 16
    # What an idle writer may keep.
    KEPT_REPLY_BYTES = 4096
    FIRST_REPLY_BYTES = 256
    # Replies above this are handed over as they are, smaller ones are copied out.
    HANDED_OVER_BYTES = 16384
    # A kind, 20 digits and CRLF, and what is written beyond the end of a number in one move.
    HEAD_BYTES = 32
    CR = 13
    LF = 10
    ZERO = 48
    MINUS = 45
    STAR = 42
    DOLLAR = 36
    # Short arguments are looked up among recent ones.
    KNOWN_BYTES = 24
    KNOWN_SLOTS = 1024


# One C file, so that the compiler sees the three parts at once.
include "resp_memory.pxi"
include "resp_parser.pxi"
include "resp_writer.pxi"
