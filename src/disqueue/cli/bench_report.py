"""What `disqueue bench` says at the end: a table for people, or one JSON object."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from disqueue.cli.bench_histogram import LatencyHistogram
from disqueue.cli.bench_latency import LatencyResult
from disqueue.cli.bench_process import Usage
from disqueue.cli.bench_throughput import Measured

BUSY_SHARE = 0.9
"""A generator that used this much of a processor could not have sent more."""
LATE_US = 2_000
PERCENTILES = (50.0, 99.0, 99.9)


def throughput_table(measured: Sequence[Measured], knows_servers: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("phase")
    for title in ("jobs", "jobs/s", "server CPU us/job", "bytes/job", "own CPU"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in measured:
        table.add_row(
            one.name,
            str(one.jobs),
            f"{one.per_second:,.0f}",
            f"{one.cpu_us:.2f}" if knows_servers else "-",
            f"{one.bytes_per_job:.0f}" if one.bytes_per_job >= 0 and knows_servers else "-",
            f"{one.usage.own_share:.0%}",
        )
    return table


def latency_table(result: LatencyResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("latency, ms")
    for title in ("jobs", "mean", "p50", "p99", "p99.9", "max"):
        table.add_column(title, justify="right", no_wrap=True)
    for name, histogram in (("job at the consumer", result.delivered), ("reply to the producer", result.added)):
        values = [histogram.mean_us, *(histogram.percentile_us(percent) for percent in PERCENTILES), histogram.max_us]
        table.add_row(name, str(histogram.count), *(f"{us / 1000:.2f}" for us in values))
    return table


def throughput_remarks(measured: Sequence[Measured], knows_servers: bool) -> list[str]:
    """What has to be known to read the figures right."""
    remarks = [
        f"{one.name}: the load generator was the limit, it kept a processor busy to {one.usage.own_share:.0%}; the server could "
        "do more jobs a second than shown (its CPU per job holds)"
        for one in measured
        if one.usage.own_share >= BUSY_SHARE
    ]
    if not knows_servers:
        remarks.append("server CPU and memory: not known; the server is not on this machine, or name its process with --pid")
    return remarks


def latency_remarks(result: LatencyResult) -> list[str]:
    remarks = []
    if result.late.percentile_us(99) > LATE_US:
        late_ms = result.late.percentile_us(99) / 1000
        remarks.append(
            f"the load generator was late: one job of a hundred was sent {late_ms:.1f} ms after it was due or later, which is "
            "part of the latencies shown"
        )
    if result.delivered.count < result.sent:
        remarks.append(f"{result.sent - result.delivered.count} of {result.sent} jobs did not reach a consumer in time")
    return remarks


def throughput_json(one: Measured, knows_servers: bool) -> dict[str, object]:
    return {
        "phase": one.name,
        "jobs": one.jobs,
        "jobs_per_s": round(one.per_second, 1),
        "server_cpu_us_per_job": round(one.cpu_us, 3) if knows_servers else None,
        "bytes_per_job": round(one.bytes_per_job, 1) if one.bytes_per_job >= 0 and knows_servers else None,
        **_usage_json(one.usage, knows_servers),
    }


def latency_json(result: LatencyResult, rate: float, knows_servers: bool) -> dict[str, object]:
    return {
        "phase": "latency",
        "rate_per_s": rate,
        "sent": result.sent,
        "delivered": _histogram_json(result.delivered),
        "added": _histogram_json(result.added),
        "late": _histogram_json(result.late),
        "server_cpu_us_per_job": round(result.usage.server_s * 1e6 / max(result.sent, 1), 3) if knows_servers else None,
        **_usage_json(result.usage, knows_servers),
    }


def _usage_json(usage: Usage, knows_servers: bool) -> dict[str, object]:
    return {
        "wall_s": round(usage.wall_s, 6),
        "server_cpu_s": round(usage.server_s, 6) if knows_servers else None,
        "generator_cpu_s": round(usage.own_s, 6),
        "generator_share": round(usage.own_share, 4),
        "generator_was_limit": usage.own_share >= BUSY_SHARE,
    }


def _histogram_json(histogram: LatencyHistogram) -> dict[str, object]:
    """Microseconds; `buckets`: the highest value and the count of each bucket that is not empty."""
    return {
        "count": histogram.count,
        "mean_us": round(histogram.mean_us, 1),
        **{f"p{percent:g}_us": histogram.percentile_us(percent) for percent in PERCENTILES},
        "max_us": histogram.max_us,
        "buckets": histogram.buckets(),
    }
