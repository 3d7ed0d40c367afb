"""The clocks of the process."""

from __future__ import annotations

import time


class SystemClock:
    """Monotonic time for deadlines and measuring, Unix time for people."""

    def elapsed_us(self) -> int:
        """Monotonic microseconds."""
        return time.monotonic_ns() // 1000

    def now_ms(self) -> int:
        """Monotonic milliseconds."""
        return time.monotonic_ns() // 1_000_000

    def wall_us(self) -> int:
        """Unix microseconds."""
        return time.time_ns() // 1000

    def wall_ms(self) -> int:
        """Unix milliseconds."""
        return time.time_ns() // 1_000_000
