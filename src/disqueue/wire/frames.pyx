"""The records of a frame on raw memory: the compiled twin of `frames.py`, equal to it in all that can be seen.

Records that carry jobs or ids are read and written here; the others, which are rare, go through msgspec. What is read is as
bounded as there: lists are allocated only for what the frame can hold.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy

import msgspec

from disqueue.wire import job_records as _records

MAX_FRAME_RECORDS = 1 << 17

cdef enum:
    _ID = 40
    _ID_ENCODED = 42
    _JOB_FIELDS = 13
    _JOB_ENCODED_LEAST = 14
    _INT_BYTES = 9
    _DEPTH_MAX = 64
    _STORE = 10
    _MOVE = 11
    _OFFER = 12
    _BATCH = 13
    _SET_ACK = 14
    _GOT_ACK = 15

cdef Py_ssize_t _MAX_FRAME_RECORDS = MAX_FRAME_RECORDS
cdef Py_ssize_t _MAX_BATCH = _records.MAX_BATCH
cdef Py_ssize_t _MAX_JOBS = _records.MAX_JOBS
cdef Py_ssize_t _MAX_NAME_BYTES = _records.MAX_NAME_BYTES
cdef Py_ssize_t _MAX_MASK_BYTES = 4096
cdef uint64_t _MAX_SECONDS = 0x7FFFFFFF
cdef uint64_t _MAX_MS = 1 << 46
cdef uint64_t _MAX_NS = 1 << 62

cdef object _Batch = _records.Batch
cdef object _SetAck = _records.SetAck
cdef object _GotAck = _records.GotAck
cdef object _Store = _records.Store
cdef object _Move = _records.Move
cdef object _Offer = _records.Offer
cdef object _encode = msgspec.msgpack.Encoder().encode
cdef object _decode = msgspec.msgpack.Decoder(_records.AnyRecord).decode


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class JobRecord:
    """A job on its way, as `job_records.JobRecord`, which this is equal to."""

    def __init__(
        self, bytes id, bytes queue, bytes body, long long ctime_ns, long long ttl_s, long long retry_s, long long delay_s,
        int replicate, long long left_ms, long long wait_ms, int nacks, int deliveries, owners
    ):
        self.id = id
        self.queue = queue
        self.body = body
        self.ctime_ns = ctime_ns
        self.ttl_s = ttl_s
        self.retry_s = retry_s
        self.delay_s = delay_s
        self.replicate = replicate
        self.left_ms = left_ms
        self.wait_ms = wait_ms
        self.nacks = nacks
        self.deliveries = deliveries
        self.owners = owners

    def __eq__(self, other):
        if not isinstance(other, (JobRecord, _records.JobRecord)):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _records.JobRecord.__struct_fields__)

    def __repr__(self):
        return "JobRecord(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in _records.JobRecord.__struct_fields__) + ")"


include "frames_writer.pxi"
include "frames_reader.pxi"
