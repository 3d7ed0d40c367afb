"""A histogram of latencies whose buckets grow with the value: all of them, exact to one percent, in a few kilobytes."""

from __future__ import annotations

_SUB_BITS = 7  # 128 buckets for each doubling: below 1 % between the ends of one


class LatencyHistogram:
    """Counts of microseconds. Values below 0 count as 0."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.count = 0
        self.max_us = 0
        self.sum_us = 0

    def record(self, us: int) -> None:
        """Count one value."""
        us = max(us, 0)
        index = _bucket(us)
        self._counts[index] = self._counts.get(index, 0) + 1
        self.count += 1
        self.sum_us += us
        self.max_us = max(self.max_us, us)

    def percentile_us(self, percent: float) -> int:
        """The value that `percent` of all are not above; 0 when there are none."""
        wanted = max(1, -(-self.count * percent // 100))
        seen = 0
        for upper_us, count in self.buckets():
            seen += count
            if seen >= wanted:
                return upper_us
        return self.max_us

    @property
    def mean_us(self) -> float:
        return self.sum_us / self.count if self.count else 0.0

    def buckets(self) -> list[tuple[int, int]]:
        """Highest value and count of each bucket that holds something, ascending; the last value is the maximum."""
        return [(min(_highest(index), self.max_us), self._counts[index]) for index in sorted(self._counts)]


def _bucket(us: int) -> int:
    shift = max(us.bit_length() - _SUB_BITS - 1, 0)
    return (shift << _SUB_BITS) + (us >> shift)


def _highest(index: int) -> int:
    if index < 2 << _SUB_BITS:
        return index
    shift = (index >> _SUB_BITS) - 1
    return ((index - (shift << _SUB_BITS) + 1) << shift) - 1
