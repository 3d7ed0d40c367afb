# cython: boundscheck=False, wraparound=False
"""All jobs of a node by id, in C: small open hash tables of pointers, one for the first two random characters of the id.

See `job_table.py`, the plain twin, for the order of a scan. A table holds a pointer a job, and behind all pointers 16 bits of the hash of each
job's id: a job that is passed by on the way to another one is not looked at, which would be a miss of the cache for each. A table
doubles at three quarters full and shrinks at an eighth, so that no change moves more than a few hundred pointers.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.string cimport memcmp

from disqueue.core.job cimport hash_of_id

SHARDS = 4096
CURSOR_CHARACTERS = 9
BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

cdef int _SHARDS = 4096
cdef int RANDOM_AT = 11
cdef int CURSOR_SHIFT = 6 * 7
cdef unsigned int SMALLEST = 8
cdef unsigned int TAG_MASK = 0xFFFF
cdef unsigned char ORDER[256]
for _character in range(256):
    ORDER[_character] = max(BASE64.find(_character), 0)


cdef inline int shard_of(const char* text) noexcept:
    return ORDER[<unsigned char>text[RANDOM_AT]] * 64 + ORDER[<unsigned char>text[RANDOM_AT + 1]]


cdef unsigned long long position_of(const char* text) noexcept:
    cdef unsigned long long position = 0
    cdef int index
    for index in range(9):
        position = position * 64 + ORDER[<unsigned char>text[RANDOM_AT + index]]
    return position


def scan_position(bytes job_id):
    """Return the place of an id in scan order."""
    return position_of(PyBytes_AS_STRING(job_id))


cdef inline unsigned short* tags_of(Shard* shard) noexcept:
    """The low bits of the hashes of the ids, slot by slot; where there is no job they mean nothing."""
    return <unsigned short*>(shard.slots + shard.mask + 1)


cdef inline unsigned int hash_at(Shard* shard, unsigned int index, unsigned int mask) noexcept:
    """As much of the hash of the id in a slot as this mask needs."""
    return tags_of(shard)[index] if mask <= TAG_MASK else (<Job>shard.slots[index]).id_hash


def _first(entry):
    return entry[0]


@cython.final
cdef class JobTable:
    def __cinit__(self):
        self.shards = <Shard*>PyMem_Calloc(_SHARDS, sizeof(Shard))
        if self.shards == NULL:
            raise MemoryError()
        self.count = 0

    def __dealloc__(self):
        cdef int number
        cdef unsigned int index
        if self.shards == NULL:
            return
        for number in range(_SHARDS):
            if self.shards[number].slots != NULL:
                for index in range(self.shards[number].mask + 1):
                    if self.shards[number].slots[index] != NULL:
                        Py_DECREF(<Job>self.shards[number].slots[index])
                PyMem_Free(self.shards[number].slots)
        PyMem_Free(self.shards)

    cpdef Job get(self, bytes job_id):
        """Return the job with this (valid) id, or None."""
        if len(job_id) != 40:
            return None
        cdef const char* text = PyBytes_AS_STRING(job_id)
        cdef Shard* shard = &self.shards[shard_of(text)]
        if shard.used == 0:
            return None
        cdef unsigned int id_hash = hash_of_id(text)
        cdef unsigned int index = id_hash & shard.mask
        cdef unsigned short* tags = tags_of(shard)
        cdef unsigned short tag = <unsigned short>id_hash
        cdef PyObject* entry
        while True:
            entry = shard.slots[index]
            if entry == NULL:
                return None
            if tags[index] == tag and (<Job>entry).id_hash == id_hash and memcmp((<Job>entry).id_text, text, 40) == 0:
                return <Job>entry
            index = (index + 1) & shard.mask

    cpdef add(self, Job job):
        """Register a job whose id is not in the table."""
        cdef Shard* shard = &self.shards[shard_of(job.id_text)]
        if shard.slots == NULL:
            self.resize(shard, SMALLEST)
        elif (shard.used + 1) * 4 > (shard.mask + 1) * 3:
            self.resize(shard, (shard.mask + 1) * 2)
        put(shard, <PyObject*>job, job.id_hash)
        Py_INCREF(job)
        shard.used += 1
        self.count += 1

    cpdef remove(self, Job job):
        """Take a registered job out."""
        cdef Shard* shard = &self.shards[shard_of(job.id_text)]
        if shard.used == 0:
            raise KeyError(job.id)
        cdef unsigned int index = job.id_hash & shard.mask
        while shard.slots[index] != <PyObject*>job:
            if shard.slots[index] == NULL:
                raise KeyError(job.id)
            index = (index + 1) & shard.mask
        close_gap(shard, index)
        shard.used -= 1
        self.count -= 1
        if shard.used == 0:
            PyMem_Free(shard.slots)
            shard.slots = NULL
        elif shard.mask + 1 > SMALLEST and shard.used * 8 <= shard.mask + 1:
            self.resize(shard, (shard.mask + 1) // 2)
        Py_DECREF(job)

    cdef int resize(self, Shard* shard, unsigned int capacity) except -1:
        cdef Shard old = shard[0]
        cdef unsigned int index
        cdef PyObject** slots = <PyObject**>PyMem_Calloc(capacity, sizeof(PyObject*) + sizeof(unsigned short))
        if slots == NULL:
            raise MemoryError()
        shard.slots = slots
        shard.mask = capacity - 1
        if old.slots != NULL:
            for index in range(old.mask + 1):
                if old.slots[index] != NULL:
                    put(shard, old.slots[index], hash_at(&old, index, shard.mask))
            PyMem_Free(old.slots)
        return 0

    cdef list members(self, int number):
        """Return the jobs of one shard, in no order."""
        cdef Shard* shard = &self.shards[number]
        cdef list found = []
        cdef unsigned int index
        if shard.used:
            for index in range(shard.mask + 1):
                if shard.slots[index] != NULL:
                    found.append(<Job>shard.slots[index])
        return found

    def scan(self, cursor, limit):
        """Return at least `limit` jobs from `cursor` on, in scan order, and the next cursor (0: the scan is complete)."""
        cdef list page = []
        cdef Job job
        cdef unsigned long long first = min(cursor, (1 << 54))
        cdef int number = <int>(first >> CURSOR_SHIFT)
        while number < _SHARDS:
            found = []
            for job in self.members(number):
                position = position_of(job.id_text)
                if position >= first:
                    found.append((position, job))
            found.sort(key=_first)
            for position, job in found:
                if len(page) >= limit and position > position_of((<Job>page[len(page) - 1]).id_text):
                    return page, position
                page.append(job)
            number += 1
        return page, 0

    def __len__(self):
        return self.count

    def __iter__(self):
        """Iterate over a copy of each part: jobs may come and go meanwhile."""
        for number in range(SHARDS):
            yield from self.members(number)


cdef inline void put(Shard* shard, PyObject* job, unsigned int id_hash) noexcept:
    cdef unsigned int index = id_hash & shard.mask
    while shard.slots[index] != NULL:
        index = (index + 1) & shard.mask
    shard.slots[index] = job
    tags_of(shard)[index] = <unsigned short>id_hash


cdef void close_gap(Shard* shard, unsigned int gap) noexcept:
    """Empty a slot, and move back what had been pushed past it, so that every job can be reached from its own slot."""
    cdef unsigned short* tags = tags_of(shard)
    cdef unsigned int index = gap
    cdef unsigned int home
    while True:
        index = (index + 1) & shard.mask
        if shard.slots[index] == NULL:
            break
        home = hash_at(shard, index, shard.mask) & shard.mask
        if ((index - home) & shard.mask) >= ((index - gap) & shard.mask):
            shard.slots[gap] = shard.slots[index]
            tags[gap] = tags[index]
            gap = index
    shard.slots[gap] = NULL
