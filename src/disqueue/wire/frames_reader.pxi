# Part of frames.pyx: records from MessagePack.

cdef struct Reader:
    const uint8_t* p
    const uint8_t* end


cdef int _refuse(Reader* reader, str wanted) except -1:
    if reader.p >= reader.end:
        raise ValueError("input data was truncated")
    raise ValueError(f"0x{reader.p[0]:02x} where there should be {wanted}")


cdef int _need(Reader* reader, uint64_t count) except -1:
    if count > <uint64_t>(reader.end - reader.p):
        raise ValueError("input data was truncated")
    return 0


cdef int _read_big_endian(Reader* reader, int count, uint64_t* value) except -1:
    """Read a number of `count` bytes behind the byte that says so."""
    cdef int at
    _need(reader, 1 + count)
    value[0] = 0
    for at in range(1, 1 + count):
        value[0] = value[0] << 8 | reader.p[at]
    reader.p += 1 + count
    return 0


cdef inline int _read_uint(Reader* reader, uint64_t limit, uint64_t* value) except -1:
    """Read a number from 0 to `limit`, which is 127 at least."""
    if reader.p < reader.end and reader.p[0] < 0x80:
        value[0] = reader.p[0]
        reader.p += 1
        return 0
    return _read_long_uint(reader, limit, value)


cdef int _read_long_uint(Reader* reader, uint64_t limit, uint64_t* value) except -1:
    """Read a number that may have more than one byte."""
    cdef uint8_t code
    cdef int count
    if reader.p >= reader.end:
        _refuse(reader, "a number")
    code = reader.p[0]
    if code < 0x80:
        value[0] = code
        reader.p += 1
    elif 0xCC <= code <= 0xCF:
        _read_big_endian(reader, 1 << (code - 0xCC), value)
    elif 0xD0 <= code <= 0xD3:
        count = 1 << (code - 0xD0)
        _read_big_endian(reader, count, value)
        if value[0] >> (8 * count - 1):
            raise ValueError("a negative number")
    else:
        _refuse(reader, "a number that is not negative")
    if value[0] > limit:
        raise ValueError(f"{value[0]} is more than {limit}")
    return 0


cdef object _read_number(Reader* reader):
    """Read a `Number`: from -1 on."""
    cdef uint64_t value
    cdef int count
    if reader.p < reader.end:
        if reader.p[0] == 0xFF:
            reader.p += 1
            return -1
        if 0xD0 <= reader.p[0] <= 0xD3:
            count = 1 << (reader.p[0] - 0xD0)
            _read_big_endian(reader, count, &value)
            if value >> (8 * count - 1):
                if count < 8:
                    value |= ~<uint64_t>0 << (8 * count)
                if value != ~<uint64_t>0:
                    raise ValueError("a number below -1")
                return -1
            if value > _MAX_MS:
                raise ValueError(f"{value} is more than {_MAX_MS}")
            return value
    _read_uint(reader, _MAX_MS, &value)
    return value


cdef bytes _read_bytes(Reader* reader, Py_ssize_t least, Py_ssize_t most):
    cdef uint64_t size
    cdef bytes found
    if reader.p >= reader.end or not 0xC4 <= reader.p[0] <= 0xC6:
        _refuse(reader, "bytes")
    _read_big_endian(reader, 1 << (reader.p[0] - 0xC4), &size)
    if size < <uint64_t>least or (most >= 0 and size > <uint64_t>most):
        raise ValueError(f"{size} bytes, allowed are {least} to {most}")
    _need(reader, size)
    found = PyBytes_FromStringAndSize(<const char*>reader.p, <Py_ssize_t>size)
    reader.p += size
    return found


cdef object _read_mask(Reader* reader):
    cdef uint64_t value
    if reader.p < reader.end and 0xC4 <= reader.p[0] <= 0xC6:
        return _read_bytes(reader, 0, _MAX_MASK_BYTES)
    _read_uint(reader, ~<uint64_t>0, &value)
    return value


cdef Py_ssize_t _read_array(Reader* reader) except -1:
    """Read the head of an array; that it has so many items is only what it says."""
    cdef uint64_t count
    cdef uint8_t code
    if reader.p >= reader.end:
        _refuse(reader, "an array")
    code = reader.p[0]
    if 0x90 <= code <= 0x9F:
        reader.p += 1
        return code & 15
    if code != 0xDC and code != 0xDD:
        _refuse(reader, "an array")
    _read_big_endian(reader, 2 if code == 0xDC else 4, &count)
    return <Py_ssize_t>count


cdef Py_ssize_t _read_list(Reader* reader, Py_ssize_t most, Py_ssize_t item_bytes) except -1:
    """Read the head of a list of at most so many items, which have at least so many bytes each: they may be allocated."""
    cdef Py_ssize_t count = _read_array(reader)
    if count > most:
        raise ValueError(f"a list of {count} items, {most} are allowed")
    _need(reader, <uint64_t>count * <uint64_t>item_bytes)
    return count


cdef list _read_ids(Reader* reader):
    cdef Py_ssize_t count = _read_list(reader, _MAX_BATCH, _ID_ENCODED)
    cdef Py_ssize_t at
    cdef list ids = PyList_New(count)
    cdef bytes one
    for at in range(count):
        if reader.end - reader.p >= _ID_ENCODED and reader.p[0] == 0xC4 and reader.p[1] == _ID:
            one = PyBytes_FromStringAndSize(<const char*>reader.p + 2, _ID)
            reader.p += _ID_ENCODED
        else:
            one = _read_bytes(reader, _ID, _ID)
        Py_INCREF(one)
        PyList_SET_ITEM(ids, at, one)
    return ids


cdef list _read_numbers(Reader* reader, bint masks):
    cdef Py_ssize_t count = _read_list(reader, _MAX_BATCH, 1)
    cdef Py_ssize_t at
    cdef list numbers = PyList_New(count)
    cdef object one
    for at in range(count):
        one = _read_mask(reader) if masks else _read_number(reader)
        Py_INCREF(one)
        PyList_SET_ITEM(numbers, at, one)
    return numbers


cdef bytes _read_name(Reader* reader, bytes last):
    """Read the name of a queue; jobs that stand together mostly have the same one, and then share it."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(last)
    if size <= 0xFF and reader.end - reader.p >= 2 + size and reader.p[0] == 0xC4 and reader.p[1] == size:
        if memcmp(reader.p + 2, PyBytes_AS_STRING(last), size) == 0:
            reader.p += 2 + size
            return last
    return _read_bytes(reader, 0, _MAX_NAME_BYTES)


cdef JobRecord _read_job(Reader* reader, bytes last_queue):
    cdef JobRecord record = JobRecord.__new__(JobRecord)
    cdef uint64_t value
    cdef Py_ssize_t fields = _read_array(reader)
    if fields < _JOB_FIELDS:
        raise ValueError(f"a job of {fields} fields, {_JOB_FIELDS} are wanted")
    record.id = _read_bytes(reader, _ID, _ID)
    record.queue = _read_name(reader, last_queue)
    record.body = _read_bytes(reader, 0, -1)
    _read_uint(reader, _MAX_NS, &value)
    record.ctime_ns = <long long>value
    _read_uint(reader, _MAX_SECONDS, &value)
    record.ttl_s = <long long>value
    _read_uint(reader, _MAX_SECONDS, &value)
    record.retry_s = <long long>value
    _read_uint(reader, _MAX_SECONDS, &value)
    record.delay_s = <long long>value
    _read_uint(reader, 0xFFFF, &value)
    record.replicate = <int>value
    _read_uint(reader, _MAX_MS, &value)
    record.left_ms = <long long>value
    _read_uint(reader, _MAX_MS, &value)
    record.wait_ms = <long long>value
    _read_uint(reader, 0xFFFF, &value)
    record.nacks = <int>value
    _read_uint(reader, 0xFFFF, &value)
    record.deliveries = <int>value
    record.owners = _read_mask(reader)
    _skip_items(reader, fields - _JOB_FIELDS, 0)
    return record


cdef list _read_jobs(Reader* reader):
    cdef Py_ssize_t count = _read_list(reader, _MAX_JOBS, _JOB_ENCODED_LEAST + _ID)
    cdef Py_ssize_t at
    cdef list jobs = PyList_New(count)
    cdef JobRecord one
    cdef bytes queue = b""
    for at in range(count):
        one = _read_job(reader, queue)
        queue = one.queue
        Py_INCREF(one)
        PyList_SET_ITEM(jobs, at, one)
    return jobs


cdef object _read_record(Reader* reader):
    cdef const uint8_t* start = reader.p
    cdef Py_ssize_t fields = _read_array(reader)
    cdef uint64_t kind
    cdef int tag = 0
    cdef bint queue_now = False
    cdef object record
    cdef list ids
    if fields >= 2 and reader.p < reader.end and _STORE <= reader.p[0] <= _GOT_ACK:
        tag = reader.p[0]
        reader.p += 1
    if tag == _BATCH and fields >= 4:
        _read_uint(reader, 0xFFFF, &kind)
        ids = _read_ids(reader)
        record = _Batch(kind, ids, _read_numbers(reader, False))
        _skip_items(reader, fields - 4, 0)
    elif (tag == _SET_ACK or tag == _GOT_ACK) and fields >= 3:
        ids = _read_ids(reader)
        record = (_SetAck if tag == _SET_ACK else _GotAck)(ids, _read_numbers(reader, True))
        _skip_items(reader, fields - 3, 0)
    elif tag == _STORE:
        ids = _read_jobs(reader)
        if fields >= 3:
            if reader.p >= reader.end or not 0xC2 <= reader.p[0] <= 0xC3:
                _refuse(reader, "yes or no")
            queue_now = reader.p[0] == 0xC3
            reader.p += 1
            _skip_items(reader, fields - 3, 0)
        record = _Store(ids, queue_now)
    elif tag == _MOVE:
        record = _Move(_read_jobs(reader))
        _skip_items(reader, fields - 2, 0)
    elif tag == _OFFER:
        ids = _read_jobs(reader)
        if fields >= 3:
            record = _Offer(ids, _read_numbers(reader, False))
            _skip_items(reader, fields - 3, 0)
        else:
            record = _Offer(ids)
    else:
        reader.p = start
        _skip(reader, 0)
        record = _decode(PyBytes_FromStringAndSize(<const char*>start, reader.p - start))
    return record


cdef int _skip_items(Reader* reader, Py_ssize_t count, int depth) except -1:
    """Skip fields that a newer release has added."""
    while count > 0:
        _skip(reader, depth)
        count -= 1
    return 0


cdef int _skip(Reader* reader, int depth) except -1:
    """Skip one value of any kind."""
    cdef uint8_t code
    cdef uint64_t size = 0
    cdef int head = 0
    if reader.p >= reader.end:
        _refuse(reader, "a value")
    if depth > _DEPTH_MAX:
        raise ValueError("values are nested too deep")
    code = reader.p[0]
    if code <= 0x7F or code >= 0xE0 or code == 0xC0 or code == 0xC2 or code == 0xC3:
        reader.p += 1
    elif code <= 0x8F:
        reader.p += 1
        _skip_items(reader, 2 * (code & 15), depth + 1)
    elif code <= 0x9F:
        reader.p += 1
        _skip_items(reader, code & 15, depth + 1)
    elif code <= 0xBF:
        _need(reader, 1 + (code & 31))
        reader.p += 1 + (code & 31)
    elif 0xC4 <= code <= 0xC9 or 0xD9 <= code <= 0xDB:  # bytes, extensions, text
        head = 1 << (code - 0xC4 if code <= 0xC6 else code - 0xC7 if code <= 0xC9 else code - 0xD9)
        _read_big_endian(reader, head, &size)
        if 0xC7 <= code <= 0xC9:
            size += 1
        _need(reader, size)
        reader.p += size
    elif 0xCA <= code <= 0xD8:  # numbers, extensions of a fixed size
        if code <= 0xCB:
            size = 4 << (code - 0xCA)
        elif code <= 0xCF:
            size = 1 << (code - 0xCC)
        elif code <= 0xD3:
            size = 1 << (code - 0xD0)
        else:
            size = 1 + (1 << (code - 0xD4))
        _need(reader, 1 + size)
        reader.p += 1 + size
    elif 0xDC <= code <= 0xDF:
        _read_big_endian(reader, 2 if code == 0xDC or code == 0xDE else 4, &size)
        _skip_items(reader, <Py_ssize_t>(size if code <= 0xDD else 2 * size), depth + 1)
    else:
        _refuse(reader, "a value")
    return 0


cpdef list decode_records(payload):
    """Return the records of a payload. Raises ValueError, RecursionError or MemoryError."""
    cdef Py_buffer view
    cdef Reader reader
    cdef Py_ssize_t count
    cdef list records = []
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        reader.p = <const uint8_t*>view.buf
        reader.end = reader.p + view.len
        count = _read_list(&reader, _MAX_FRAME_RECORDS, 1)
        for _ in range(count):
            records.append(_read_record(&reader))
        if reader.p != reader.end:
            raise ValueError("there are bytes behind the last record")
        return records
    finally:
        PyBuffer_Release(&view)
