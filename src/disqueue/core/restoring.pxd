cimport cython
from disqueue.core.job cimport Job
from disqueue.core.node cimport Node
from disqueue.core.queue cimport Queue

cdef int ACKED, ACTIVE, ASKED, CONTESTED, DELAYED, DELIVERED, HELD, LEASED, MOVED, ONCE_QUEUED, PLACEHOLDER, QUEUED, RESTORED

@cython.locals(state=int, queue=Queue, delayed=int)
cpdef bint restore_job(Node node, Job job, bytes name) except -1
cdef bint _may_be_elsewhere(Node node, Job job) except -1
cdef _ask_first(Node node, Job job)
cdef _restore_ack(Node node, Job job)
cdef _restore_held(Node node, Job job)
