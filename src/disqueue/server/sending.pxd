from disqueue.wire.resp cimport ReplyWriter

cpdef Py_ssize_t send_now(ReplyWriter writer, long long descriptor) except -1
