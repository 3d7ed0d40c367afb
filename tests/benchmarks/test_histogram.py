"""The histogram of latencies."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from disqueue.cli.bench_histogram import LatencyHistogram

values = st.lists(st.integers(0, 1 << 40), min_size=1, max_size=200)


def filled(latencies: list[int]) -> LatencyHistogram:
    histogram = LatencyHistogram()
    for us in latencies:
        histogram.record(us)
    return histogram


@given(values, st.floats(0.1, 100))
def test_a_percentile_is_exact_to_one_percent_and_never_too_low(latencies: list[int], percent: float) -> None:
    exact = sorted(latencies)[max(1, math.ceil(len(latencies) * percent / 100)) - 1]
    found = filled(latencies).percentile_us(percent)
    assert exact <= found <= exact * 1.01 + 1


@given(values)
def test_buckets_hold_every_value_once_in_order(latencies: list[int]) -> None:
    histogram = filled(latencies)
    buckets = histogram.buckets()
    assert sum(count for _, count in buckets) == histogram.count == len(latencies)
    assert buckets == sorted(buckets)
    assert buckets[-1][0] == histogram.max_us == max(latencies)


def test_an_empty_histogram_has_no_figures() -> None:
    histogram = LatencyHistogram()
    assert (histogram.percentile_us(99), histogram.max_us, histogram.mean_us, histogram.buckets()) == (0, 0, 0.0, [])


def test_a_clock_that_steps_back_counts_as_no_time() -> None:
    assert filled([-5]).buckets() == [(0, 1)]
