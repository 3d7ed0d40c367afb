# Part of frames.pyx: records to MessagePack.

cdef struct Buffer:
    uint8_t* data
    Py_ssize_t size
    Py_ssize_t room


cdef int _reserve(Buffer* buffer, Py_ssize_t count) except -1:
    """Make room for so many bytes more."""
    cdef Py_ssize_t room = buffer.size + count
    cdef uint8_t* data
    if room > buffer.room:
        room = room + room // 2 + 256
        data = <uint8_t*>realloc(buffer.data, room)
        if data == NULL:
            raise MemoryError
        buffer.data = data
        buffer.room = room
    return 0


cdef inline uint8_t* _put_big_endian(uint8_t* p, uint64_t value, int count) noexcept:
    while count:
        count -= 1
        p[0] = <uint8_t>(value >> (8 * count))
        p += 1
    return p


cdef inline uint8_t* _put_uint(uint8_t* p, uint64_t value) noexcept:
    """Write the shortest form of a number, 9 bytes at most; return where it ends."""
    if value < 0x80:
        p[0] = <uint8_t>value
        return p + 1
    if value <= 0xFF:
        p[0] = 0xCC
        return _put_big_endian(p + 1, value, 1)
    if value <= 0xFFFF:
        p[0] = 0xCD
        return _put_big_endian(p + 1, value, 2)
    if value <= 0xFFFFFFFFULL:
        p[0] = 0xCE
        return _put_big_endian(p + 1, value, 4)
    p[0] = 0xCF
    return _put_big_endian(p + 1, value, 8)


cdef inline uint8_t* _put_int(uint8_t* p, long long value) noexcept:
    if value >= 0:
        return _put_uint(p, <uint64_t>value)
    if value >= -32:
        p[0] = <uint8_t>value
        return p + 1
    if value >= -0x80:
        p[0] = 0xD0
        return _put_big_endian(p + 1, <uint64_t>value, 1)
    if value >= -0x8000:
        p[0] = 0xD1
        return _put_big_endian(p + 1, <uint64_t>value, 2)
    if value >= -0x80000000LL:
        p[0] = 0xD2
        return _put_big_endian(p + 1, <uint64_t>value, 4)
    p[0] = 0xD3
    return _put_big_endian(p + 1, <uint64_t>value, 8)


cdef inline uint8_t* _put_bytes(uint8_t* p, bytes value) noexcept:
    """Write a text of up to 4 GB, for which there is room: 5 bytes more than it has."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(value)
    if size <= 0xFF:
        p[0] = 0xC4
        p = _put_big_endian(p + 1, <uint64_t>size, 1)
    elif size <= 0xFFFF:
        p[0] = 0xC5
        p = _put_big_endian(p + 1, <uint64_t>size, 2)
    else:
        p[0] = 0xC6
        p = _put_big_endian(p + 1, <uint64_t>size, 4)
    memcpy(p, PyBytes_AS_STRING(value), size)
    return p + size


cdef inline uint8_t* _put_array(uint8_t* p, Py_ssize_t count) noexcept:
    if count < 16:
        p[0] = <uint8_t>(0x90 | count)
        return p + 1
    if count <= 0xFFFF:
        p[0] = 0xDC
        return _put_big_endian(p + 1, <uint64_t>count, 2)
    p[0] = 0xDD
    return _put_big_endian(p + 1, <uint64_t>count, 4)


cdef int _write_raw(Buffer* buffer, bytes value) except -1:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(value)
    _reserve(buffer, size)
    memcpy(buffer.data + buffer.size, PyBytes_AS_STRING(value), size)
    buffer.size += size
    return 0


cdef int _write_array(Buffer* buffer, Py_ssize_t count) except -1:
    _reserve(buffer, 5)
    buffer.size = _put_array(buffer.data + buffer.size, count) - buffer.data
    return 0


cdef int _write_ids(Buffer* buffer, list ids) except -1:
    cdef uint8_t* p
    cdef bytes one
    cdef Py_ssize_t count = PyList_GET_SIZE(ids)
    _reserve(buffer, 5 + count * _ID_ENCODED)
    _write_array(buffer, count)
    for one in ids:
        _reserve(buffer, 5 + PyBytes_GET_SIZE(one))
        p = buffer.data + buffer.size
        buffer.size = _put_bytes(p, one) - buffer.data
    return 0


cdef int _write_numbers(Buffer* buffer, list numbers) except -1:
    """Numbers, and masks that are too large for one."""
    cdef Py_ssize_t count = PyList_GET_SIZE(numbers)
    cdef object one
    _reserve(buffer, 5 + count * _INT_BYTES)
    _write_array(buffer, count)
    for one in numbers:
        _write_number(buffer, one)
    return 0


cdef int _write_number(Buffer* buffer, one) except -1:
    if type(one) is bytes:
        _reserve(buffer, 5 + PyBytes_GET_SIZE(<bytes>one))
        buffer.size = _put_bytes(buffer.data + buffer.size, <bytes>one) - buffer.data
    else:
        _reserve(buffer, _INT_BYTES)
        if one < 0:
            buffer.size = _put_int(buffer.data + buffer.size, one) - buffer.data
        else:
            buffer.size = _put_uint(buffer.data + buffer.size, one) - buffer.data
    return 0


cdef int _write_jobs(Buffer* buffer, list jobs) except -1:
    cdef object one
    cdef JobRecord record
    _write_array(buffer, PyList_GET_SIZE(jobs))
    for one in jobs:
        if type(one) is JobRecord:
            record = one
            one = encode_job(
                record.id, record.queue, record.body, record.ctime_ns, record.ttl_s, record.retry_s, record.delay_s,
                record.replicate, record.left_ms, record.wait_ms, record.nacks, record.deliveries, record.owners
            )
        elif type(one) is not bytes:
            one = _encode(one)
        _write_raw(buffer, <bytes>one)
    return 0


cdef int _write_record(Buffer* buffer, record) except -1:
    cdef object kind = type(record)
    if kind is _Batch:
        _reserve(buffer, 2 + _INT_BYTES)
        buffer.data[buffer.size] = 0x94
        buffer.data[buffer.size + 1] = _BATCH
        buffer.size = _put_uint(buffer.data + buffer.size + 2, record.kind) - buffer.data
        _write_ids(buffer, record.ids)
        _write_numbers(buffer, record.numbers)
    elif kind is _SetAck or kind is _GotAck:
        _reserve(buffer, 2)
        buffer.data[buffer.size] = 0x93
        buffer.data[buffer.size + 1] = _SET_ACK if kind is _SetAck else _GOT_ACK
        buffer.size += 2
        _write_ids(buffer, record.ids)
        _write_numbers(buffer, record.owners)
    elif kind is _Store:
        _reserve(buffer, 2)
        buffer.data[buffer.size] = 0x93
        buffer.data[buffer.size + 1] = _STORE
        buffer.size += 2
        _write_jobs(buffer, record.jobs)
        _reserve(buffer, 1)
        buffer.data[buffer.size] = 0xC3 if record.queue_now else 0xC2
        buffer.size += 1
    elif kind is _Move or kind is _Offer:
        _reserve(buffer, 2)
        buffer.data[buffer.size] = 0x92 if kind is _Move else 0x93
        buffer.data[buffer.size + 1] = _MOVE if kind is _Move else _OFFER
        buffer.size += 2
        _write_jobs(buffer, record.jobs)
        if kind is _Offer:
            _write_numbers(buffer, record.numbers)
    else:
        _write_raw(buffer, _encode(record))
    return 0


cpdef encode_job(
    bytes job_id, bytes queue, bytes body, long long ctime_ns, long long ttl_s, long long retry_s, long long delay_s,
    long long replicate, long long left_ms, long long wait_ms, long long nacks, long long deliveries, owners
):
    """Return the fields of a `JobRecord`, encoded once for all the peers that it goes to."""
    cdef uint8_t[_INT_BYTES * 10] numbers
    cdef uint8_t* end = numbers
    cdef uint8_t* p
    cdef Py_ssize_t size = 1
    cdef bytes text, whole
    cdef bytes mask = None
    end = _put_int(end, ctime_ns)
    end = _put_int(end, ttl_s)
    end = _put_int(end, retry_s)
    end = _put_int(end, delay_s)
    end = _put_int(end, replicate)
    end = _put_int(end, left_ms)
    end = _put_int(end, wait_ms)
    end = _put_int(end, nacks)
    end = _put_int(end, deliveries)
    if type(owners) is bytes:
        mask = owners
        size += _bytes_size(mask)
    else:
        end = _put_uint(end, owners)
    size += _bytes_size(job_id) + _bytes_size(queue) + _bytes_size(body) + (end - numbers)
    whole = PyBytes_FromStringAndSize(NULL, size)
    p = <uint8_t*>PyBytes_AS_STRING(whole)
    p[0] = 0x90 | _JOB_FIELDS
    p = _put_bytes(p + 1, job_id)
    p = _put_bytes(p, queue)
    p = _put_bytes(p, body)
    memcpy(p, numbers, end - numbers)
    if mask is not None:
        _put_bytes(p + (end - numbers), mask)
    return whole


cdef inline Py_ssize_t _bytes_size(bytes value) except -1:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(value)
    return size + (2 if size <= 0xFF else 3 if size <= 0xFFFF else 5)


cpdef bytes encode_records(records):
    """Return the payload of a frame."""
    cdef Buffer buffer
    buffer.data = NULL
    buffer.size = buffer.room = 0
    try:
        _write_array(&buffer, len(records))
        for record in records:
            _write_record(&buffer, record)
        return PyBytes_FromStringAndSize(<char*>buffer.data, buffer.size)
    finally:
        free(buffer.data)
