"""Sets of nodes as bit masks of slots: the compiled twin of `masks.py`, in C where a mask has less than 64 bits.

Masks are never negative.
"""


cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1


cdef extern from *:
    int __builtin_popcountll(unsigned long long value)


cpdef bint covers(mask, part) except -1:
    """Tell whether all bits of `part` are in `mask`."""
    cdef int large = 0
    cdef int larger = 0
    if mask is part:
        return True
    cdef long long small_mask = PyLong_AsLongLongAndOverflow(mask, &large)
    cdef long long small_part = PyLong_AsLongLongAndOverflow(part, &larger)
    if large or larger:
        return part & ~mask == 0
    return small_part & ~small_mask == 0


cpdef int count_of(mask) except -1:
    """Return how many bits a mask has."""
    cdef int large = 0
    cdef long long small = PyLong_AsLongLongAndOverflow(mask, &large)
    return mask.bit_count() if large else __builtin_popcountll(small)


cpdef unconfirmed(owners, members, unknown, confirmed):
    """Return the owners but this node (bit 0) that are members or not known yet, and have not confirmed."""
    cdef int large = 0
    cdef int any_large = 0
    cdef long long small_owners = PyLong_AsLongLongAndOverflow(owners, &large)
    any_large |= large
    cdef long long small_members = PyLong_AsLongLongAndOverflow(members, &large)
    any_large |= large
    cdef long long small_unknown = PyLong_AsLongLongAndOverflow(unknown, &large)
    any_large |= large
    cdef long long small_confirmed = PyLong_AsLongLongAndOverflow(confirmed, &large)
    if any_large or large:
        return owners & (members | unknown) & ~confirmed & ~1
    return small_owners & (small_members | small_unknown) & ~small_confirmed & ~1
