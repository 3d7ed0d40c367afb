cimport cython
from disqueue.core.client cimport Client
from disqueue.core.forwarding cimport Forwarding
from disqueue.core.handover cimport Handover
from disqueue.core.job cimport Job
from disqueue.core.queue cimport Queue
from disqueue.core.settings cimport Settings

cdef class Node(Handover):
    cpdef end_pass(self)
