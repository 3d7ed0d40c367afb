"""The clocks of the process. The compiled twin is `clock.pyx`: it is read once for each command."""

from __future__ import annotations

from time import monotonic_ns, time_ns


class SystemClock:
    """Monotonic time for deadlines and measuring, Unix time for people."""

    def elapsed_us(self) -> int:
        """Monotonic microseconds."""
        nanoseconds: int = monotonic_ns()
        return nanoseconds // 1000

    def now_ms(self) -> int:
        """Monotonic milliseconds."""
        nanoseconds: int = monotonic_ns()
        return nanoseconds // 1_000_000

    def wall_us(self) -> int:
        """Unix microseconds."""
        nanoseconds: int = time_ns()
        return nanoseconds // 1000

    def wall_ms(self) -> int:
        """Unix milliseconds."""
        nanoseconds: int = time_ns()
        return nanoseconds // 1_000_000
