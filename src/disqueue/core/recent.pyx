# cython: boundscheck=False, wraparound=False
"""The ids of jobs that are over, in C: the compiled twin of `recent.py`, equal to it in all that can be seen.

A generation is one block of ids, one behind the other as they came, and an open hash table of their numbers beside it: no objects
that stay for a minute and are spread over the memory. What a generation has allocated is used again by the next but one.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from disqueue.core.job cimport hash_of_id

GENERATION_MS = 30_000
GENERATION_IDS = 50_000
ID_BYTES = 40

cdef enum:
    _ID_BYTES = 40
    _SMALLEST = 64
cdef long long _GENERATION_MS = GENERATION_MS
cdef uint32_t _GENERATION_IDS = GENERATION_IDS


@cython.final
cdef class RecentIds:
    def __cinit__(self):
        self.young.capacity = self.old.capacity = 0
        self.started_ms = 0

    def __dealloc__(self):
        free_generation(&self.young)
        free_generation(&self.old)

    cpdef add(self, bytes job_id, long long now_ms):
        """Remember an id. Raises ValueError for what is none."""
        cdef Generation swapped
        cdef Generation* young = &self.young
        cdef const char* text = PyBytes_AS_STRING(job_id)
        cdef uint32_t id_hash, slot
        if PyBytes_GET_SIZE(job_id) != _ID_BYTES:
            raise ValueError(f"a job id has {_ID_BYTES} bytes, not {PyBytes_GET_SIZE(job_id)}")
        if young.count >= _GENERATION_IDS or now_ms - self.started_ms >= _GENERATION_MS:
            swapped = self.old
            self.old = self.young
            self.young = swapped
            if young.count:
                memset(young.slots, 0, young.capacity * sizeof(uint64_t))
                young.count = 0
            self.started_ms = now_ms
        if young.count * 2 >= young.capacity:
            grow(young)
        id_hash = hash_of_id(text)
        slot = find(young, text, id_hash)
        if young.slots[slot] == 0:
            memcpy(young.ids + young.count * _ID_BYTES, text, _ID_BYTES)
            young.count += 1
            young.slots[slot] = <uint64_t>id_hash << 32 | young.count

    cpdef bint holds(self, bytes job_id) except -1:
        """Tell whether an id is remembered."""
        cdef const char* text = PyBytes_AS_STRING(job_id)
        cdef uint32_t id_hash
        if PyBytes_GET_SIZE(job_id) != _ID_BYTES:
            return False
        id_hash = hash_of_id(text)
        if self.young.count and self.young.slots[find(&self.young, text, id_hash)] != 0:
            return True
        return self.old.count != 0 and self.old.slots[find(&self.old, text, id_hash)] != 0

    def __contains__(self, bytes job_id):
        return self.holds(job_id)

    cpdef clear(self):
        """Forget all."""
        free_generation(&self.young)
        free_generation(&self.old)


cdef uint32_t find(Generation* generation, const char* text, uint32_t id_hash) noexcept:
    """Return the slot of an id, or the empty one where it belongs. Half of the slots are empty; there is at least one slot.

    A slot has the hash in its upper half, the number of the id in the lower one, from 1 on; 0: empty.
    """
    cdef uint32_t mask = generation.capacity - 1
    cdef uint32_t slot = id_hash & mask
    cdef uint64_t entry
    cdef uint32_t place
    while True:
        entry = generation.slots[slot]
        if entry == 0:
            return slot
        if entry >> 32 == id_hash:
            place = <uint32_t>entry
            if memcmp(generation.ids + (place - 1) * _ID_BYTES, text, _ID_BYTES) == 0:
                return slot
        slot = (slot + 1) & mask


cdef int grow(Generation* generation) except -1:
    """Double the slots, and the room for ids, which is half of them."""
    cdef uint32_t capacity = generation.capacity * 2 if generation.capacity else _SMALLEST
    cdef uint64_t* slots
    cdef uint64_t entry
    cdef uint32_t index, slot
    cdef char* ids = <char*>PyMem_Realloc(generation.ids, capacity // 2 * _ID_BYTES)
    if ids == NULL:
        raise MemoryError
    generation.ids = ids
    slots = <uint64_t*>PyMem_Calloc(capacity, sizeof(uint64_t))
    if slots == NULL:
        raise MemoryError
    for index in range(generation.capacity):
        entry = generation.slots[index]
        if entry:
            slot = <uint32_t>(entry >> 32) & (capacity - 1)
            while slots[slot]:
                slot = (slot + 1) & (capacity - 1)
            slots[slot] = entry
    PyMem_Free(generation.slots)
    generation.slots = slots
    generation.capacity = capacity
    return 0


cdef void free_generation(Generation* generation) noexcept:
    PyMem_Free(generation.ids)
    PyMem_Free(generation.slots)
    memset(generation, 0, sizeof(Generation))
