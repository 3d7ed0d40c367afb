"""Replies from a writer straight into a socket: the usual one fits, and no bytes object is made of it.

The compiled twin of `sending.py`.
"""

from disqueue.wire.resp cimport ReplyWriter

cdef extern from *:
    """
    #ifdef _WIN32
    static Py_ssize_t disqueue_send(long long descriptor, const char* data, Py_ssize_t count) { return 0; }
    #else
    #include <sys/socket.h>
    #include <errno.h>
    #ifndef MSG_NOSIGNAL
    #define MSG_NOSIGNAL 0
    #endif
    static Py_ssize_t disqueue_send(long long descriptor, const char* data, Py_ssize_t count) {
        Py_ssize_t sent;
        do sent = send((int)descriptor, data, (size_t)count, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (sent < 0 && errno == EINTR);
        return sent;
    }
    #endif
    """
    Py_ssize_t disqueue_send(long long descriptor, const char* data, Py_ssize_t count) noexcept nogil


cpdef Py_ssize_t send_now(ReplyWriter writer, long long descriptor) except -1:
    """Send what a socket takes without waiting, and return how many bytes that is; the rest stays in the writer.

    An error counts as nothing sent: whoever sends the rest in the usual way meets it again.
    """
    cdef Py_ssize_t sent
    if writer.size == 0:
        return 0
    sent = disqueue_send(descriptor, writer.data, writer.size)
    if sent <= 0:
        return 0
    writer.drop_sent(sent)
    return sent
