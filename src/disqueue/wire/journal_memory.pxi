# Records in raw memory, for the kernels that read and write them: numbers at any address, and a bytearray that grows.

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from *:
    """
    #define room_in(array) \\
        (((PyByteArrayObject*)(array))->ob_exports == 0 \\
            ? ((PyByteArrayObject*)(array))->ob_bytes + ((PyByteArrayObject*)(array))->ob_alloc \\
                - ((PyByteArrayObject*)(array))->ob_start - 1 : -1)
    static inline void set_length(PyObject* array, Py_ssize_t length) {
        Py_SET_SIZE(array, length);
        ((PyByteArrayObject*)array)->ob_start[length] = 0;
    }
    """
    Py_ssize_t room_in(PyObject* array) noexcept
    void set_length(PyObject* array, Py_ssize_t length) noexcept

cdef enum:
    _PAYLOAD = 9  # where a payload begins
    _SPARE = 256


cdef inline void put16(uint8_t* p, uint16_t value) noexcept:
    p[0] = <uint8_t>value
    p[1] = <uint8_t>(value >> 8)


cdef inline void put32(uint8_t* p, uint32_t value) noexcept:
    put16(p, <uint16_t>value)
    put16(p + 2, <uint16_t>(value >> 16))


cdef inline void put64(uint8_t* p, uint64_t value) noexcept:
    put32(p, <uint32_t>value)
    put32(p + 4, <uint32_t>(value >> 32))


cdef inline uint16_t get16(const uint8_t* p) noexcept:
    return <uint16_t>(p[0] | p[1] << 8)


cdef inline uint32_t get32(const uint8_t* p) noexcept:
    return <uint32_t>get16(p) | <uint32_t>get16(p + 2) << 16


cdef inline uint64_t get64(const uint8_t* p) noexcept:
    return <uint64_t>get32(p) | <uint64_t>get32(p + 4) << 32


cdef inline uint8_t* extend(bytearray buffer, Py_ssize_t count) except NULL:
    """Make a buffer longer; return where the new bytes begin. Any address in it that was known before may be wrong now."""
    cdef Py_ssize_t at = PyByteArray_GET_SIZE(buffer)
    cdef Py_ssize_t size = at + count
    if size > room_in(<PyObject*>buffer):
        PyByteArray_Resize(buffer, 2 * size + _SPARE)  # doubled, so that little is copied; by itself it grows by an eighth
    set_length(<PyObject*>buffer, size)  # a resize would give back what is spare
    return <uint8_t*>PyByteArray_AS_STRING(buffer) + at


cdef inline uint8_t* open_record(bytearray buffer, Py_ssize_t payload, int kind) except NULL:
    """Make room for a record of so many bytes of payload; return where it begins."""
    cdef uint8_t* p = extend(buffer, _PAYLOAD + payload)
    put32(p + 4, <uint32_t>(payload + 1))
    p[8] = <uint8_t>kind
    return p
