from disqueue.core.forwarding cimport Forwarding

cdef class Federation(Forwarding):
    pass
