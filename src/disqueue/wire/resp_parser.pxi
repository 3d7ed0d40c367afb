# The parser. Included by resp.pyx.


@cython.no_gc
@cython.final
cdef class RequestParser:
    """Turns the bytes of one connection into requests, whatever way they are cut.

    `feed` (or `get_buffer` and `buffer_updated`), then `next_request` until it returns None.
    After a ProtocolError all further input is ignored.
    """

    def __cinit__(self, limits=None):
        self.set_limits(DEFAULT_LIMITS if limits is None else limits)
        self.body_bytes = -1

    def set_limits(self, limits):
        """Let other limits hold from the next header on."""
        self.max_arguments = limits.max_arguments
        self.max_bulk_bytes = limits.max_bulk_bytes
        self.max_line_bytes = limits.max_line_bytes
        self.max_query_buffer_bytes = limits.max_query_buffer_bytes

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
        return self.held_bytes()

    cpdef Py_ssize_t held_bytes(self) noexcept:
        """As `buffered_bytes`, which compiled code would look up by its name."""
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
        self.open_window()
        return PyMemoryView_FromObject(self)

    cpdef object get_window(self, Py_ssize_t sizehint=-1):
        """As `get_buffer`, for an event loop: the parser itself, which has a length and can be written to."""
        self.open_window()
        return self

    def __len__(self):
        """The room of the window that is open."""
        return self.window_room

    def __bool__(self):
        return True

    cdef int open_window(self) except -1:
        self.window_in_body = self.body != NULL and self.body_filled < self.body_bytes
        if self.window_in_body:
            self.reserve_body(1)
            self.window = bytes_data(self.body) + self.body_filled
            self.window_room = self.body_capacity - self.body_filled
        else:
            self.reserve(MIN_READ_BYTES)
            self.window = bytes_data(self.block) + self.end
            self.window_room = self.capacity - self.end
        return 0

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
        if self.body_bytes < 0 and self.count <= PREPARED_ARGUMENTS and self.max_line_bytes >= USUAL_HEADER_BYTES:
            self.take_usual_arguments()
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

    cdef int take_usual_arguments(self) except -1:
        """Take the arguments that are whole and in order, quickly; any other is left to the careful way."""
        cdef const char* data = bytes_data(self.block)
        cdef const char* place
        cdef const char* stop = data + self.end
        cdef Py_ssize_t length
        cdef Py_ssize_t room = self.max_query_buffer_bytes - self.request_bytes - _ARGUMENT_OVERHEAD_BYTES
        cdef uint32_t digit
        while self.filled < self.count:
            place = data + self.start
            if stop - place < SHORTEST_ARGUMENT_BYTES or place[0] != DOLLAR:
                return 0
            length = <uint32_t><uint8_t>place[1] - ZERO
            if length > 9 or (length == 0 and place[2] != CR):
                return 0
            place += 2
            # At most 9 digits, and a byte that is none ends the number before the input does.
            while place[0] != CR:
                digit = <uint32_t><uint8_t>place[0] - ZERO
                if digit > 9 or length >= 100_000_000:
                    return 0
                length = length * 10 + digit
                place += 1
                if place >= stop:
                    return 0
            if length > self.max_bulk_bytes or length > room or stop - place < length + 4 or place[1] != LF:
                return 0
            place += 2
            if place[length] != CR or place[length + 1] != LF:
                return 0
            set_item(self.arguments, self.filled, make_argument(place, length))
            self.start = place + length + 2 - data
            self.filled += 1
            self.request_bytes += length + _ARGUMENT_OVERHEAD_BYTES
            room -= length + _ARGUMENT_OVERHEAD_BYTES
            self.scanned = 0
        return 0

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
            try:
                resize_bytes(&grown, capacity)
            except MemoryError:
                self.abandon()
                raise
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
            # Not made from the data: a bytes object of one character is shared by all.
            block = new_bytes(NULL, rest)
            memcpy(bytes_data(block), bytes_data(self.block) + self.start, rest)
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
