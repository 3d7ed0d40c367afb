cimport cython


cdef class SystemClock:
    @cython.locals(nanoseconds="long long")
    cpdef long long elapsed_us(self)
    @cython.locals(nanoseconds="long long")
    cpdef long long now_ms(self)
    @cython.locals(nanoseconds="long long")
    cpdef long long wall_us(self)
    @cython.locals(nanoseconds="long long")
    cpdef long long wall_ms(self)
