cpdef bint covers(mask, part) except -1
cpdef int count_of(mask) except -1
cpdef unconfirmed(owners, members, unknown, confirmed)
