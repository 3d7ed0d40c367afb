cdef class SystemClock:
    cpdef long long elapsed_us(self) noexcept
    cpdef long long now_ms(self) noexcept
    cpdef long long wall_us(self) noexcept
    cpdef long long wall_ms(self) noexcept
