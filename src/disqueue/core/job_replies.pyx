# cython: boundscheck=False, wraparound=False
"""What a client is told of a job, copied from the job's own memory into the reply: the compiled twin of `job_replies.py`."""

from cpython.bytes cimport PyBytes_GET_SIZE

from disqueue.core.job cimport Job
from disqueue.core.queue cimport Queue
from disqueue.wire.resp cimport ReplyWriter

cdef enum:
    ID_BYTES = 40
    # A kind, 20 digits, line ends, and what is written beyond the end of a number in one move.
    HEAD_BYTES = 32
    COUNTERS_BYTES = 128


cpdef reply_id(ReplyWriter reply, Job job):
    """Write the id of a job that this node has made: it holds no line ends."""
    reply.reserve(ID_BYTES + 3)
    reply.add(b"+", 1)
    reply.add(job.id_text, ID_BYTES)
    reply.add(b"\r\n", 2)


cpdef reply_job(ReplyWriter reply, Job job, bint with_counters):
    """Write a job that has a queue, as one element of GETJOB's reply."""
    cdef Queue queue = job.queue
    if queue is None or queue.name is None or job.body is None:
        raise TypeError("a job that is handed out has a queue and a body")
    reply.reserve(PyBytes_GET_SIZE(queue.name) + ID_BYTES + PyBytes_GET_SIZE(job.body) + 4 * HEAD_BYTES + COUNTERS_BYTES)
    reply.add(b"*7\r\n" if with_counters else b"*3\r\n", 4)
    reply.add_string(queue.name)
    reply.add(b"$40\r\n", 5)
    reply.add(job.id_text, ID_BYTES)
    reply.add(b"\r\n", 2)
    reply.add_string(job.body)
    if with_counters:
        reply.add(b"$5\r\nnacks\r\n", 11)
        reply.add_head(c":", job.nacks)
        reply.add(b"$21\r\nadditional-deliveries\r\n", 28)
        reply.add_head(c":", job.deliveries)
