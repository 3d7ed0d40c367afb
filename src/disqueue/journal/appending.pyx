"""Writing to a file without making objects of it: the compiled twin of `appending.py`."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Check, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_SetFromErrno

cdef extern from *:
    """
    #ifdef _WIN32
    #include <io.h>
    #define disqueue_write_once _write
    #else
    #include <unistd.h>
    #define disqueue_write_once write
    #endif
    #include <errno.h>
    /* What of a megabyte at most was written; the last of the data comes with a call of its own. */
    static Py_ssize_t disqueue_write(long long descriptor, const char* data, Py_ssize_t count) {
        Py_ssize_t written;
        do written = disqueue_write_once((int)descriptor, data, count > (1 << 20) ? (1 << 20) : (unsigned)count);
        while (written < 0 && errno == EINTR);
        return written;
    }
    """
    Py_ssize_t disqueue_write(long long descriptor, const char* data, Py_ssize_t count) noexcept nogil


cpdef int append_all(long long descriptor, data) except -1:
    """See the plain twin. Other threads run meanwhile: a disk that is slow for one of them must not stop the others."""
    cdef const char* p
    cdef Py_ssize_t left, written
    if PyByteArray_Check(data):
        p = PyByteArray_AS_STRING(data)
        left = PyByteArray_GET_SIZE(data)
    else:
        p = PyBytes_AS_STRING(<bytes?>data)
        left = PyBytes_GET_SIZE(data)
    while left > 0:
        with nogil:
            written = disqueue_write(descriptor, p, left)
        if written < 0:
            PyErr_SetFromErrno(OSError)
            return -1
        p += written
        left -= written
    return 0
