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

__all__ = ["ParserLimits", "ProtocolError", "ReplyWriter", "RequestParser"]


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


# Short words come again and again: command names, options, queue names, numbers. The recent ones are kept and given
# out again, which saves making them, and computing their hash.
cdef PyObject* known[KNOWN_SLOTS]


cdef inline uint32_t slot_of(const char* data, Py_ssize_t count) noexcept:
    """The place of a word of 2 to 24 bytes among the known ones."""
    cdef uint64_t head = 0, tail = 0
    cdef uint32_t head32, tail32
    cdef uint16_t head16, tail16
    if count >= 8:
        memcpy(&head, data, 8)
        memcpy(&tail, data + count - 8, 8)
        if count > 16:
            head ^= (<uint64_t>data[count >> 1]) << 32
    elif count >= 4:
        memcpy(&head32, data, 4)
        memcpy(&tail32, data + count - 4, 4)
        head, tail = head32, tail32
    else:
        memcpy(&head16, data, 2)
        memcpy(&tail16, data + count - 2, 2)
        head, tail = head16, tail16
    head = (head ^ (tail * 0x9E3779B97F4A7C15ULL) ^ <uint64_t>count) * 0xFF51AFD7ED558CCDULL
    return <uint32_t>(head >> 54)


cdef inline PyObject* make_argument(const char* data, Py_ssize_t count) except NULL:
    """A bytes object with these bytes, perhaps one that was made before."""
    cdef uint32_t slot
    cdef PyObject* word
    if count < 2 or count > KNOWN_BYTES:
        return new_bytes(data, count)
    slot = slot_of(data, count)
    word = known[slot]
    if word != NULL:
        if bytes_size(word) == count and memcmp(bytes_data(word), data, count) == 0:
            keep(word)
            return word
        known[slot] = NULL
        drop(word)
    word = new_bytes(data, count)
    keep(word)
    known[slot] = word
    return word


# Blocks for reads: a connection has one only while it has something to parse.
cdef PyObject* spare[SPARE_BLOCKS]
cdef int spare_count = 0


cdef inline PyObject* take_block() except NULL:
    global spare_count
    if spare_count:
        spare_count -= 1
        return spare[spare_count]
    return new_bytes(NULL, _READ_BYTES)


cdef inline void give_block(PyObject* block) noexcept:
    """Give up a reference to a block. The last one of a read block makes it a spare one."""
    global spare_count
    if references(block) == 1 and bytes_size(block) == _READ_BYTES and spare_count < SPARE_BLOCKS:
        spare[spare_count] = block
        spare_count += 1
    else:
        drop(block)


@cython.no_gc
@cython.final
cdef class RequestParser:
    """Turns the bytes of one connection into requests, whatever way they are cut.

    `feed` (or `get_buffer` and `buffer_updated`), then `next_request` until it returns None.
    After a ProtocolError all further input is ignored.
    """

    def __cinit__(self, limits=None):
        if limits is None:
            limits = DEFAULT_LIMITS
        self.max_arguments = limits.max_arguments
        self.max_bulk_bytes = limits.max_bulk_bytes
        self.max_line_bytes = limits.max_line_bytes
        self.max_query_buffer_bytes = limits.max_query_buffer_bytes
        self.body_bytes = -1

    def __dealloc__(self):
        self.abandon()

    def __getbuffer__(self, Py_buffer* view, int flags):
        cdef PyObject* block = self.body if self.window_in_body else self.block
        if self.window == NULL or block == NULL:
            raise BufferError("only get_buffer gives access to the memory of a parser")
        PyBuffer_FillInfo(view, self, self.window, self.window_room, 0, flags)
        keep(block)
        view.internal = block

    def __releasebuffer__(self, Py_buffer* view):
        give_block(<PyObject*>view.internal)

    @property
    def buffered_bytes(self):
        """Bytes held for this connection: unparsed input and the arguments of the unfinished request."""
        return self.end - self.start + self.request_bytes + self.body_filled

    cpdef void feed(self, data) except *:
        """Take what was received. ProtocolError if more waits than the query buffer may hold."""
        cdef Py_buffer view
        if self.broken:
            return
        self.window = NULL
        self.window_room = 0
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            self.take_in(<const char*>view.buf, view.len)
        finally:
            PyBuffer_Release(&view)
        self.check_unparsed()

    cpdef object get_buffer(self, Py_ssize_t sizehint=-1):
        """Where the next bytes may be received; valid until the next call to the parser."""
        self.window_in_body = self.body != NULL and self.body_filled < self.body_bytes
        if self.window_in_body:
            self.reserve_body(1)
            self.window = bytes_data(self.body) + self.body_filled
            self.window_room = self.body_capacity - self.body_filled
        else:
            self.reserve(MIN_READ_BYTES)
            self.window = bytes_data(self.block) + self.end
            self.window_room = self.capacity - self.end
        return PyMemoryView_FromObject(self)

    cpdef void buffer_updated(self, Py_ssize_t count) except *:
        """`count` bytes were written to the buffer that `get_buffer` gave."""
        if not 0 <= count <= self.window_room:
            raise ValueError(f"{count} bytes cannot have been received, there was room for {self.window_room}")
        self.window = NULL
        self.window_room = 0
        if self.broken:
            return
        if self.window_in_body:
            self.body_filled += count
        else:
            self.end += count
            self.check_unparsed()

    cpdef list next_request(self):
        """The next whole request, or None if more bytes are needed. ProtocolError once for a fault."""
        cdef list request
        if self.broken:
            return None
        request = self.parse()
        if request is None:
            self.settle()
        return request

    cdef list parse(self):
        cdef list request
        while True:
            if self.count:
                if not self.receive_arguments():
                    self.hide_missing()
                    return None
                request = self.arguments
                self.arguments = None
                self.count = self.filled = self.request_bytes = 0
                return request
            if self.start >= self.end:
                return None
            if bytes_data(self.block)[self.start] == STAR:
                if not self.begin_request():
                    return None
            else:
                request = self.take_inline()
                if request is None or request:
                    return request

    cdef bint begin_request(self) except -1:
        """Take the head of a request. False if it is not there yet; an empty or a null request is skipped."""
        cdef Py_ssize_t count = self.header()
        if count > 0:
            if count > self.max_arguments:
                self.fail(INVALID_COUNT)
            self.arguments = new_list(count if count <= PREPARED_ARGUMENTS else 0)
            self.count = count
            self.filled = 0
        elif count == INCOMPLETE:
            return False
        elif count == INVALID:
            self.fail(INVALID_COUNT)
        elif count == TOO_LONG:
            self.fail(TOO_BIG_COUNT)
        return True

    cdef bint receive_arguments(self) except -1:
        """Take the arguments that are there; True if the request is complete."""
        cdef Py_ssize_t length, available
        cdef const char* payload
        while self.filled < self.count:
            if self.body_bytes < 0 and not self.begin_argument():
                return False
            length = self.body_bytes
            if self.body == NULL:
                available = self.end - self.start
                if available >= length + 2:
                    payload = bytes_data(self.block) + self.start
                    # Disque skips these two bytes unseen. No client sends others, and a wrong length is found out
                    # here and not in the next request, which may be one that somebody else has put into a body.
                    if payload[length] != CR or payload[length + 1] != LF:
                        self.fail(NO_TERMINATOR)
                    self.start += length + 2
                    self.add_argument(make_argument(payload, length))
                    continue
                if length <= _LARGE_BODY_BYTES:
                    return False
                self.begin_large(min(available, length))
            if not self.receive_large():
                return False
        return True

    cdef bint begin_argument(self) except -1:
        """Take the head of an argument; False if it is not there yet."""
        cdef Py_ssize_t length
        if self.start >= self.end:
            return False
        if bytes_data(self.block)[self.start] != DOLLAR:
            self.fail(unexpected_type(<uint8_t>bytes_data(self.block)[self.start]))
        length = self.header()
        if length == INCOMPLETE:
            return False
        if length == TOO_LONG:
            self.fail(TOO_BIG_LENGTH)
        if length < 0 or length > self.max_bulk_bytes:
            self.fail(INVALID_LENGTH)
        if self.request_bytes + length + _ARGUMENT_OVERHEAD_BYTES > self.max_query_buffer_bytes:
            self.fail(query_buffer_exceeded(self.max_query_buffer_bytes))
        self.body_bytes = length
        return True

    cdef int begin_large(self, Py_ssize_t available) except -1:
        """Move what is there of a body to memory that grows as the rest arrives."""
        self.body_capacity = min(self.body_bytes, max(_READ_BYTES, 2 * available))
        self.body = new_bytes(NULL, self.body_capacity)
        if available:
            memcpy(bytes_data(self.body), bytes_data(self.block) + self.start, available)
        self.body_filled = available
        self.start += available
        return 0

    cdef bint receive_large(self) except -1:
        """Take the body that was received on its own, if it is whole and its terminator is there."""
        cdef const char* terminator
        cdef PyObject* argument
        if self.body_filled < self.body_bytes or self.end - self.start < 2:
            return False
        terminator = bytes_data(self.block) + self.start
        if terminator[0] != CR or terminator[1] != LF:
            self.fail(NO_TERMINATOR)
        self.start += 2
        argument = self.body
        self.body = NULL
        self.body_filled = 0
        self.add_argument(argument)
        return True

    cdef int add_argument(self, PyObject* argument) except -1:
        """Append to the request; takes the reference."""
        if self.count <= PREPARED_ARGUMENTS:
            set_item(self.arguments, self.filled, argument)
        else:
            try:
                append_item(self.arguments, argument)
            finally:
                drop(argument)
        self.filled += 1
        self.request_bytes += self.body_bytes + _ARGUMENT_OVERHEAD_BYTES
        self.body_bytes = -1
        return 0

    cdef int hide_missing(self) except -1:
        """Fill the places of arguments that are still to come: the list may be seen by the garbage collector."""
        cdef Py_ssize_t index
        cdef bytes nothing = b""
        if self.count <= PREPARED_ARGUMENTS:
            for index in range(self.filled, self.count):
                keep(<PyObject*>nothing)
                set_item(self.arguments, index, <PyObject*>nothing)
        return 0

    cdef list take_inline(self):
        """The words of an inline request, empty for a blank line; None if its end is not there yet."""
        cdef Py_ssize_t begin = self.start, length
        cdef Py_ssize_t end = self.line_end()
        cdef const char* data
        if end == INCOMPLETE:
            return None
        if end == TOO_LONG:
            self.fail(TOO_BIG_INLINE)
        data = bytes_data(self.block)
        self.start = end + 1
        length = end - begin
        if length and data[end - 1] == CR:
            length -= 1
        try:
            return split_inline(data[begin:begin + length])
        except ProtocolError:
            self.abandon()
            raise

    cdef Py_ssize_t header(self) noexcept:
        """Take a header line and return its number, or say with a negative one why there is none."""
        cdef const char* line = bytes_data(self.block) + self.start
        cdef const char* first = line + 1
        cdef const char* stop = bytes_data(self.block) + self.end
        cdef const char* place = first
        cdef Py_ssize_t value = 0
        cdef uint32_t digit
        while place < stop:
            digit = <uint32_t><uint8_t>place[0] - ZERO
            if digit > 9:
                break
            if place - first == MAX_DIGITS:
                return self.unusual_header()
            value = value * 10 + digit
            place += 1
        if (
            place == first
            or stop - place < 2
            or place[0] != CR
            or place[1] != LF
            or (first[0] == ZERO and place - first > 1)
            or place + 1 - line > self.max_line_bytes
        ):
            return self.unusual_header()
        self.start += place + 2 - line
        self.scanned = 0
        return value

    cdef Py_ssize_t unusual_header(self) noexcept:
        """What `header` does for lines that are incomplete, negative or wrong."""
        cdef Py_ssize_t end = self.line_end()
        cdef const char* place = bytes_data(self.block) + self.start + 1
        cdef const char* stop
        if end < 0:
            return end
        stop = bytes_data(self.block) + end - 1
        self.start = end + 1
        if stop <= place or stop[0] != CR or place[0] != MINUS:
            # Positive numbers are taken before: here they have a leading zero, too many digits or a wrong line end.
            return INVALID
        place += 1
        if stop == place or stop - place > MAX_DIGITS or place[0] == ZERO:
            return INVALID
        while place < stop:
            if <uint8_t>place[0] - ZERO > 9 or place[0] < ZERO:
                return INVALID
            place += 1
        return NEGATIVE

    cdef Py_ssize_t line_end(self) noexcept:
        """Where the line feed of the line at `start` is. The length of a line is limited however the stream is cut."""
        cdef const char* data = bytes_data(self.block)
        cdef Py_ssize_t available = self.end - self.start
        cdef Py_ssize_t searched = min(available, self.max_line_bytes + 1) - self.scanned
        cdef const char* found = NULL
        if searched > 0:
            found = <const char*>memchr(data + self.start + self.scanned, LF, searched)
        if found != NULL:
            self.scanned = 0
            return found - data
        self.scanned = available
        return TOO_LONG if available > self.max_line_bytes else INCOMPLETE

    cdef int take_in(self, const char* data, Py_ssize_t count) except -1:
        """Append to what is being received."""
        cdef Py_ssize_t part
        if self.body != NULL:
            part = min(count, self.body_bytes - self.body_filled)
            if part:
                self.reserve_body(part)
                memcpy(bytes_data(self.body) + self.body_filled, data, part)
                self.body_filled += part
                data += part
                count -= part
        if count:
            self.reserve(count)
            memcpy(bytes_data(self.block) + self.end, data, count)
            self.end += count
        return 0

    cdef int reserve(self, Py_ssize_t count) except -1:
        """Make room for `count` bytes behind the unparsed input."""
        cdef Py_ssize_t rest = self.end - self.start
        cdef PyObject* block
        if self.block != NULL:
            if rest == 0:
                self.start = self.end = 0
            if self.capacity - self.end >= count:
                return 0
            # Move the rest only where it is less than what was consumed: a byte is moved once on average.
            if self.start >= rest and self.capacity - rest >= count:
                memmove(bytes_data(self.block), bytes_data(self.block) + self.start, rest)
                self.start, self.end = 0, rest
                return 0
        block = take_block() if rest + count <= _READ_BYTES else new_bytes(NULL, 2 * (rest + count))
        if self.block != NULL:
            memcpy(bytes_data(block), bytes_data(self.block) + self.start, rest)
            give_block(self.block)
        self.block = block
        self.capacity = bytes_size(block)
        self.start, self.end = 0, rest
        return 0

    cdef int reserve_body(self, Py_ssize_t count) except -1:
        """Make room for `count` bytes of the body: twice what is there, never more than was announced."""
        cdef Py_ssize_t needed = self.body_filled + count, capacity
        cdef PyObject* grown
        if needed <= self.body_capacity:
            return 0
        capacity = min(self.body_bytes, max(needed, 2 * self.body_capacity))
        if references(self.body) == 1:
            grown = self.body
            self.body = NULL
            resize_bytes(&grown, capacity)
        else:
            # An event loop still holds a view of the old one.
            grown = new_bytes(NULL, capacity)
            memcpy(bytes_data(grown), bytes_data(self.body), self.body_filled)
            drop(self.body)
        self.body = grown
        self.body_capacity = capacity
        return 0

    cdef int settle(self) except -1:
        """Hold no more memory than the unparsed rest needs until the next read."""
        cdef Py_ssize_t rest = self.end - self.start
        cdef PyObject* block
        if self.block == NULL or (self.window != NULL and not self.window_in_body):
            return 0
        if rest == 0:
            give_block(self.block)
            self.block = NULL
            self.capacity = self.start = self.end = 0
        elif self.capacity >= _READ_BYTES and (rest <= SMALL_REST_BYTES or rest < self.capacity >> 2 and self.capacity > _READ_BYTES):
            block = new_bytes(bytes_data(self.block) + self.start, rest)
            give_block(self.block)
            self.block = block
            self.capacity = self.end = rest
            self.start = 0
        return 0

    cdef int check_unparsed(self) except -1:
        if self.end - self.start > self.max_query_buffer_bytes:
            self.fail(query_buffer_exceeded(self.max_query_buffer_bytes))
        return 0

    cdef int fail(self, bytes text) except -1:
        self.abandon()
        raise ProtocolError(text)

    cdef void abandon(self) noexcept:
        """Forget everything and take no more."""
        self.broken = True
        if self.block != NULL:
            give_block(self.block)
            self.block = NULL
        if self.body != NULL:
            drop(self.body)
            self.body = NULL
        self.window = NULL
        self.arguments = None
        self.capacity = self.start = self.end = self.scanned = 0
        self.count = self.filled = self.request_bytes = self.body_filled = 0
        self.body_bytes = -1


# The numbers up to 999 with CRLF, and in the last byte how many characters that is.
cdef char small_numbers[1000][8]
cdef char pairs_of_digits[200]


cdef void make_tables():
    cdef bytes text
    cdef int number
    for number in range(1000):
        text = b"%d\r\n" % number
        memcpy(small_numbers[number], <const char*>text, len(text))
        small_numbers[number][7] = <char>len(text)
    for number in range(100):
        pairs_of_digits[2 * number] = <char>(ZERO + number // 10)
        pairs_of_digits[2 * number + 1] = <char>(ZERO + number % 10)


make_tables()


cdef inline char* add_number(char* place, long long number) noexcept:
    """Write a number and CRLF; returns where it ends. 24 bytes must be free."""
    cdef char digits[24]
    cdef char* first = digits + 20
    cdef uint64_t rest
    cdef int pair
    if 0 <= number < 1000:
        memcpy(place, small_numbers[number], 8)
        return place + small_numbers[number][7]
    rest = <uint64_t>number
    if number < 0:
        rest = 0 - rest
        place[0] = MINUS
        place += 1
    while rest >= 10:
        pair = <int>(rest % 100)
        rest //= 100
        first -= 2
        memcpy(first, pairs_of_digits + 2 * pair, 2)
    if rest or first == digits + 20:
        first -= 1
        first[0] = <char>(ZERO + rest)
    memcpy(place, first, digits + 20 - first)
    place += digits + 20 - first
    place[0] = CR
    place[1] = LF
    return place + 2


cdef inline Py_ssize_t size_of(bytes data) except -1:
    if data is None:
        raise TypeError("bytes are needed, not None")
    return bytes_size(<PyObject*>data)


@cython.no_gc
@cython.final
cdef class ReplyWriter:
    """The replies to one client that have not been sent, in RESP2 or RESP3.

    `protocol` (2 or 3) may change between two replies; `size` is how many bytes wait to be taken.
    """

    def __cinit__(self, int protocol=2):
        self.protocol = protocol
        self.usual_bytes = FIRST_REPLY_BYTES

    def __dealloc__(self):
        if self.block != NULL:
            drop(self.block)

    cpdef bytes take(self):
        """All that was written since the last call."""
        cdef PyObject* taken
        cdef bytes result
        if self.size == 0:
            return b""
        self.usual_bytes = min(self.size + HEAD_BYTES, HANDED_OVER_BYTES)
        if self.size <= HANDED_OVER_BYTES:
            result = PyBytes_FromStringAndSize(self.data, self.size)
            self.size = 0
            if self.capacity <= KEPT_REPLY_BYTES:
                return result
            taken = self.block
        else:
            taken = self.block
            self.block = NULL
            resize_bytes(&taken, self.size)
            result = <bytes><object>taken
        drop(taken)
        self.block = NULL
        self.data = NULL
        self.capacity = self.size = 0
        return result

    cpdef void raw(self, bytes data) except *:
        """Bytes that are already in the protocol."""
        cdef Py_ssize_t count = size_of(data)
        self.reserve(count)
        self.add(bytes_data(<PyObject*>data), count)

    cpdef void status(self, bytes text) except *:
        """A simple string; line ends in it become blanks."""
        self.line(c"+", text)

    cpdef void error(self, bytes text) except *:
        """An error, `text` with its prefix word; line ends in it become blanks."""
        self.line(c"-", text)

    cpdef void integer(self, long long number) except *:
        """A signed 64-bit integer; OverflowError if it is not one."""
        self.head(c":", number)

    cpdef void boolean(self, bint value) except *:
        """True or false; in RESP2 the integers 1 and 0."""
        if self.protocol == 3:
            self.constant(b"#t\r\n" if value else b"#f\r\n", 4)
        else:
            self.head(c":", value)

    cpdef void double(self, double value) except *:
        """A floating point number; in RESP2 a bulk string."""
        cdef bytes text = repr(value).encode()
        if self.protocol == 3:
            self.line(c",", text)
        else:
            self.bulk(text)

    cpdef void bulk(self, bytes data) except *:
        """A binary safe string."""
        self.reserve(size_of(data) + HEAD_BYTES)
        self.add_string(data)

    cpdef void bulk_array(self, list items) except *:
        """An array of bulk strings."""
        self.head(c"*", len(items))
        for item in items:
            self.bulk(item)

    cpdef void null_bulk(self) except *:
        """No string; in RESP3 the one null."""
        if self.protocol == 3:
            self.constant(b"_\r\n", 3)
        else:
            self.constant(b"$-1\r\n", 5)

    cpdef void null_array(self) except *:
        """No array; in RESP3 the one null."""
        if self.protocol == 3:
            self.constant(b"_\r\n", 3)
        else:
            self.constant(b"*-1\r\n", 5)

    cpdef void array(self, Py_ssize_t count) except *:
        """The head of an array; `count` elements must follow."""
        self.head(c"*", count)

    cpdef void map(self, Py_ssize_t pairs) except *:
        """The head of a map; `pairs` keys and values must follow. A flat array in RESP2."""
        if self.protocol == 3:
            self.head(c"%", pairs)
        else:
            self.head(c"*", 2 * pairs)

    cpdef void push(self, Py_ssize_t count) except *:
        """The head of an out-of-band message of `count` elements; an array in RESP2."""
        self.head(c">" if self.protocol == 3 else b"*", count)

    cpdef void job(self, bytes queue, bytes job_id, bytes body) except *:
        """A job as GETJOB hands it out."""
        self.reserve(size_of(queue) + size_of(job_id) + size_of(body) + 4 * HEAD_BYTES)
        self.add(b"*3\r\n", 4)
        self.add_string(queue)
        self.add_string(job_id)
        self.add_string(body)

    cpdef void job_with_counters(
        self, bytes queue, bytes job_id, bytes body, long long nacks, long long additional_deliveries
    ) except *:
        """A job as GETJOB WITHCOUNTERS hands it out."""
        self.reserve(size_of(queue) + size_of(job_id) + size_of(body) + 8 * HEAD_BYTES)
        self.add(b"*7\r\n", 4)
        self.add_string(queue)
        self.add_string(job_id)
        self.add_string(body)
        self.add(b"$5\r\nnacks\r\n", 11)
        self.add_head(c":", nacks)
        self.add(b"$21\r\nadditional-deliveries\r\n", 28)
        self.add_head(c":", additional_deliveries)

    cdef int reserve(self, Py_ssize_t count) except -1:
        """Make room for `count` bytes; the `add` methods rely on it."""
        if self.capacity - self.size < count:
            self.grow(count)
        return 0

    cdef int grow(self, Py_ssize_t count) except -1:
        cdef Py_ssize_t capacity = max(self.usual_bytes, 2 * self.capacity, self.size + count)
        cdef Py_ssize_t size = self.size
        cdef PyObject* block = self.block
        if block == NULL:
            block = new_bytes(NULL, capacity)
        else:
            # A resize that fails frees the block: what waits in it is lost with the connection.
            self.block = NULL
            self.capacity = self.size = 0
            resize_bytes(&block, capacity)
            self.size = size
        self.block = block
        self.data = bytes_data(block)
        self.capacity = capacity
        return 0

    cdef int line(self, char kind, bytes text) except -1:
        cdef Py_ssize_t count = size_of(text), index
        cdef char* place
        self.reserve(count + 3)
        place = self.data + self.size
        place[0] = kind
        place += 1
        memcpy(place, bytes_data(<PyObject*>text), count)
        if memchr(place, CR, count) != NULL or memchr(place, LF, count) != NULL:
            for index in range(count):
                if place[index] == CR or place[index] == LF:
                    place[index] = 32
        place[count] = CR
        place[count + 1] = LF
        self.size += count + 3
        return 0

    cdef int head(self, char kind, long long number) except -1:
        self.reserve(HEAD_BYTES)
        self.add_head(kind, number)
        return 0

    cdef int constant(self, const char* text, Py_ssize_t count) except -1:
        self.reserve(count)
        self.add(text, count)
        return 0

    cdef void add_head(self, char kind, long long number) noexcept:
        cdef char* place = self.data + self.size
        place[0] = kind
        self.size = add_number(place + 1, number) - self.data

    cdef void add(self, const char* data, Py_ssize_t count) noexcept:
        memcpy(self.data + self.size, data, count)
        self.size += count

    cdef void add_string(self, bytes data) noexcept:
        cdef Py_ssize_t count = bytes_size(<PyObject*>data)
        cdef char* place = self.data + self.size
        place[0] = DOLLAR
        place = add_number(place + 1, count)
        memcpy(place, bytes_data(<PyObject*>data), count)
        place[count] = CR
        place[count + 1] = LF
        self.size = place + count + 2 - self.data
