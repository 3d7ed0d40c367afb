# The writer. Included by resp.pyx.


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

    cdef int drop_sent(self, Py_ssize_t count) except -1:
        """The first `count` bytes have been sent from where they stand."""
        if count < self.size:
            memmove(self.data, self.data + count, self.size - count)
            self.size -= count
            return 0
        self.usual_bytes = min(self.size + HEAD_BYTES, HANDED_OVER_BYTES)
        self.size = 0
        if self.capacity > KEPT_REPLY_BYTES:
            drop(self.block)
            self.block = NULL
            self.data = NULL
            self.capacity = 0
        return 0

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
