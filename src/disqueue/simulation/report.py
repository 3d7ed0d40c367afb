"""What many runs say together: violations, and the qualities that are reported and not judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from disqueue.simulation.options import DISK_FAULTS, FAULTS
from disqueue.simulation.run import Result

MS_PER_HOUR = 3_600_000


@dataclass
class Summary:
    """The sums over all runs so far. `cpu_s` is the time that the runs took on their processors."""

    runs: int = 0
    failed: list[Result] = field(default_factory=list)
    cpu_s: float = 0.0
    simulated_ms: int = 0
    added: int = 0
    deliveries: int = 0
    duplicates: int = 0
    after_ack: int = 0
    lost_with_memory: int = 0
    bus_records: int = 0
    network_bytes: int = 0
    delays_ms: list[int] = field(default_factory=list)
    collected_ms: list[int] = field(default_factory=list)
    converged_ms: list[int] = field(default_factory=list)
    requests: dict[str, int] = field(default_factory=dict)
    by_fault: dict[str, list[int]] = field(default_factory=dict)
    """Fault class -> runs, deliveries, duplicates."""

    def take(self, result: Result, cpu_s: float) -> None:
        """Add a run."""
        figures = result.figures
        self.runs += 1
        self.cpu_s += cpu_s
        self.simulated_ms += result.simulated_ms
        if result.violation:
            self.failed.append(result)
            return
        self.added += figures.added
        self.deliveries += figures.deliveries
        self.duplicates += figures.duplicates
        self.after_ack += figures.after_ack
        self.lost_with_memory += figures.lost_with_memory
        self.bus_records += result.bus_records
        self.network_bytes += result.network_bytes
        self.delays_ms += figures.delays_ms
        self.collected_ms += figures.collected_ms
        self.converged_ms.append(result.converged_ms)
        for name, count in figures.requests.items():
            self.requests[name] = self.requests.get(name, 0) + count
        for name in result.options.faults or ("none",):
            row = self.by_fault.setdefault(name, [0, 0, 0])
            row[0] += 1
            row[1] += figures.deliveries
            row[2] += figures.duplicates

    def lines(self) -> list[str]:
        """The report, for people."""
        hours = self.simulated_ms / MS_PER_HOUR
        cpu_s, added = max(self.cpu_s, 0.001), max(self.added, 1)
        speed = f"{hours * 3600 / cpu_s:.0f} hours per CPU hour, {self.runs * 60 / cpu_s:.0f} runs per CPU minute"
        bus = f"bus records per job {self.bus_records / added:.1f}, bytes on the network per job {self.network_bytes / added:.0f}"
        duplicates = f"{self.duplicates} of {self.deliveries} deliveries while the lease of another worker ran"
        lines = [
            f"{self.runs} runs, {len(self.failed)} with a violation",
            f"{hours:.1f} simulated hours in {self.cpu_s:.0f} s of CPU: {speed}",
            f"{self.added} jobs confirmed, {self.deliveries} deliveries, {sum(self.requests.values())} requests",
            f"{self.lost_with_memory} confirmed jobs were gone with all memories that held them, as they may",
            f"{bus} (clients, pings and faults included)",
            f"from the answer to the first delivery: {quantiles(self.delays_ms)}",
            f"from the acknowledgement until nobody keeps the job: {quantiles(self.collected_ms)}",
            f"from the end of the faults until all nodes reach each other: {quantiles(self.converged_ms)}",
            f"{duplicates}, {self.after_ack} after an acknowledgement",
            f"{'fault class':<14}{'runs':>6}{'deliveries':>12}{'duplicates':>12}{'per 1000':>10}",
        ]
        for name in ("none", *FAULTS, *(fault for fault in DISK_FAULTS if fault not in FAULTS)):
            if name in self.by_fault:
                runs, given, twice = self.by_fault[name]
                lines.append(f"{name:<14}{runs:>6}{given:>12}{twice:>12}{twice * 1000 / max(given, 1):>10.1f}")
        return lines


def quantiles(values: Sequence[int]) -> str:
    """Return the median, the 99th percentile and the maximum of times in ms."""
    if not values:
        return "no figures"
    ordered = sorted(values)
    p50, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return f"p50 {p50} ms, p99 {p99} ms, max {ordered[-1]} ms"


def failure_lines(result: Result, trace_lines: int) -> list[str]:
    """The report of a violation: what, where, the last events, and how to see it again."""
    lines = [str(result.options), *result.trace[-trace_lines:], f"VIOLATION {result.violation}"]
    return [*lines, f"again: disqueue simulate --seed {result.options.seed}{' --journal' if result.options.journal else ''}"]
