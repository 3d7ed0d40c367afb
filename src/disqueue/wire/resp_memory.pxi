# Memory that is used again: words that come often, and blocks for reads. Included by resp.pyx.

# Short words come again and again: command names, options, queue names, numbers. The recent ones are kept and given
# out again, which saves making them, and computing their hash.
cdef PyObject* known[KNOWN_SLOTS]
# Words that keep their place: other words of the same place are made anew each time.
cdef bint kept[KNOWN_SLOTS]


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
        if kept[slot]:
            return new_bytes(data, count)
        known[slot] = NULL
        drop(word)
    word = new_bytes(data, count)
    keep(word)
    known[slot] = word
    return word


def keep_words(words):
    """Give out these very objects for arguments that equal them, so that a look-up finds them by identity."""
    cdef bytes word
    cdef uint32_t slot
    for word in words:
        if 2 <= len(word) <= KNOWN_BYTES:
            slot = slot_of(bytes_data(<PyObject*>word), len(word))
            if not kept[slot]:
                keep(<PyObject*>word)
                if known[slot] != NULL:
                    drop(known[slot])
                known[slot] = <PyObject*>word
                kept[slot] = True


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
