from disqueue.core.node cimport Node


cdef class NodeHolder:
    cdef public Node node
