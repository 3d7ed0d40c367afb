"""Durations: seconds or `timedelta` from the caller, whole seconds or milliseconds for the server."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Duration: TypeAlias = float | timedelta

# The server keeps times in signed 64 bits of milliseconds; this is far below and above any use.
MAX_SECONDS = 10_000_000_000


def seconds(value: Duration, name: str) -> float:
    """`value` in seconds. Raises TypeError or ValueError with the argument's name."""
    if isinstance(value, timedelta):
        result = value.total_seconds()
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        result = float(value)
    else:
        raise TypeError(f"{name} must be seconds or a timedelta, not {type(value).__name__}")
    if not 0 <= result <= MAX_SECONDS:
        raise ValueError(f"{name} must be between 0 and {MAX_SECONDS} seconds, not {value!r}")
    return result


def whole_seconds(value: Duration, name: str) -> int:
    """`value` in whole seconds, rounded up: the server counts in seconds, and a promise must not get shorter."""
    return math.ceil(seconds(value, name))


def milliseconds(value: float) -> int:
    """Seconds as milliseconds, rounded up, so that a positive wait never becomes 0 (for ever)."""
    return math.ceil(value * 1000)


def delay_until(moment: datetime) -> int:
    """Whole seconds from now to `moment`, rounded up; 0 if it has passed. The moment needs a time zone."""
    if not isinstance(moment, datetime):
        raise TypeError(f"at must be a datetime, not {type(moment).__name__}; delay takes seconds")
    if moment.tzinfo is None:
        raise ValueError("at needs a time zone, for example datetime(2027, 1, 1, 9, 0, tzinfo=UTC)")
    return max(0, math.ceil((moment - datetime.now(UTC)).total_seconds()))
