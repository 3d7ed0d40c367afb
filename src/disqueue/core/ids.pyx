# cython: boundscheck=False, wraparound=False
"""Job ids in C: the compiled twin of `ids.py`, equal to it in all that can be seen.

An id is written into its bytes object at once, instead of being put together from pieces.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy

ID_BYTES = 40
RANDOM_BYTES = 18
RANDOM_TEXT_BYTES = 24
BLOCK_IDS = 256
BLOCK_BYTES = RANDOM_BYTES * BLOCK_IDS
MAX_TTL_MINUTES = 0xFFFF
DASH = 45
RANDOM_START = 11

cdef enum:
    _ID_BYTES = 40
    _PREFIX_BYTES = 11
    _RANDOM_BYTES = 18
    _DASH = 45
cdef const char* HEXADECIMAL = b"0123456789abcdef"
cdef const char* BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


cdef inline void write_base64(char* text, const unsigned char* data) noexcept:
    """Write 18 bytes as 24 characters."""
    cdef int group
    cdef unsigned int bits
    for group in range(6):
        bits = (<unsigned int>data[0] << 16) | (<unsigned int>data[1] << 8) | data[2]
        text[0] = BASE64[bits >> 18]
        text[1] = BASE64[(bits >> 12) & 63]
        text[2] = BASE64[(bits >> 6) & 63]
        text[3] = BASE64[bits & 63]
        data += 3
        text += 4


@cython.final
cdef class JobIds:
    """Makes job ids for one node. `entropy(n)` returns n random bytes."""

    def __init__(self, bytes node_id, entropy):
        self.prefix = b"D-" + node_id[:8] + b"-"
        if len(self.prefix) != _PREFIX_BYTES:
            raise ValueError(f"a node id has 40 characters, not {len(node_id)}")
        self.entropy = entropy
        self.block = b""
        self.offset = 0

    cpdef bytes make(self, long long ttl_s, long long retry_s):
        """Return a new id for a job that lives `ttl_s` seconds."""
        cdef bytes job_id = PyBytes_FromStringAndSize(NULL, _ID_BYTES)
        self.write(PyBytes_AS_STRING(job_id), ttl_s, retry_s)
        return job_id

    cdef int write(self, char* text, long long ttl_s, long long retry_s) except -1:
        """Write the 40 bytes of a new id."""
        cdef long long field = ttl_field(ttl_s, retry_s)
        if self.offset + _RANDOM_BYTES > len(self.block):
            drawn = self.entropy(BLOCK_BYTES)
            if len(drawn) != BLOCK_BYTES:
                raise ValueError(f"entropy must give the {BLOCK_BYTES} bytes that it is asked for, not {len(drawn)}")
            self.block = drawn
            self.offset = 0
        memcpy(text, PyBytes_AS_STRING(self.prefix), _PREFIX_BYTES)
        write_base64(text + _PREFIX_BYTES, <const unsigned char*>PyBytes_AS_STRING(self.block) + self.offset)
        self.offset += _RANDOM_BYTES
        text[35] = _DASH
        text[36] = HEXADECIMAL[(field >> 12) & 15]
        text[37] = HEXADECIMAL[(field >> 8) & 15]
        text[38] = HEXADECIMAL[(field >> 4) & 15]
        text[39] = HEXADECIMAL[field & 15]
        return 0


cpdef long long ttl_field(long long ttl_s, long long retry_s):
    """Return the TTL field of an id: minutes, odd when the job is delivered at least once."""
    cdef long long minutes = ttl_s // 60
    if minutes > 0xFFFF:
        minutes = 0xFFFF
    return minutes | 1 if retry_s > 0 else minutes & ~1


cpdef bint is_valid_id(bytes job_id):
    """Tell whether the bytes have the shape of a job id."""
    if len(job_id) != _ID_BYTES:
        return False
    cdef const char* text = PyBytes_AS_STRING(job_id)
    return text[0] == 68 and text[1] == _DASH and text[10] == _DASH and text[35] == _DASH


cpdef long long id_ttl_minutes(bytes job_id):
    """Return the TTL field of a valid id in minutes; a digit that is not hexadecimal counts as 0."""
    cdef long long minutes = 0
    cdef int place
    cdef char digit
    for place in range(36, 40):
        digit = PyBytes_AS_STRING(job_id)[place] if place < len(job_id) else 48
        minutes *= 16
        if 48 <= digit <= 57:
            minutes += digit - 48
        elif 97 <= (digit | 32) <= 102:
            minutes += (digit | 32) - 87
    return minutes


cpdef bint is_at_least_once(bytes job_id):
    """Tell from its id whether a job comes back until it is acknowledged."""
    return id_ttl_minutes(job_id) & 1 == 1
