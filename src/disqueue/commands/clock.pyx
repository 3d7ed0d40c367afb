"""The clocks of the process, read without an object for each number: the compiled twin of `clock.py`."""

cdef extern from *:
    """
    #include <time.h>
    #if defined(CLOCK_MONOTONIC)
    static long long disqueue_clock_us(int monotonic) {
        struct timespec now;
        clock_gettime(monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, &now);
        return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    }
    #else
    static long long disqueue_clock_us(int monotonic) {
        return (monotonic ? _PyTime_GetMonotonicClock() : _PyTime_GetSystemClock()) / 1000;
    }
    #endif
    """
    long long disqueue_clock_us(int monotonic) noexcept nogil


cdef class SystemClock:
    """Monotonic time for deadlines and measuring, Unix time for people."""

    cpdef long long elapsed_us(self) noexcept:
        """Monotonic microseconds."""
        return disqueue_clock_us(1)

    cpdef long long now_ms(self) noexcept:
        """Monotonic milliseconds."""
        return disqueue_clock_us(1) // 1000

    cpdef long long wall_us(self) noexcept:
        """Unix microseconds."""
        return disqueue_clock_us(0)

    cpdef long long wall_ms(self) noexcept:
        """Unix milliseconds."""
        return disqueue_clock_us(0) // 1000
