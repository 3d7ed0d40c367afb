cdef class PeerJobs:
    cdef public list slot_map
    cdef public dict translated
    cdef public object heard_mask, heard_owners
    cdef public Py_ssize_t slots_told
    cdef public dict in_flight
    cdef public dict offered
    cdef public dict held
    cdef public dict released
    cdef public dict wanted
