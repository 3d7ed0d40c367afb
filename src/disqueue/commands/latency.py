"""The latency monitor: the worst time of each second, by what took it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

SAMPLES_MAX = 160
EVENTS_MAX = 64
"""Events are named by the code, so this is never reached; it keeps the table bounded all the same."""

ADVICE = {
    "command": "Look at SLOWLOG GET: commands that walk through many jobs (JSCAN, QPEEK with a large count, DEBUG) take long.",
    "fast-command": "Commands that are fast by nature were slow: the machine is short of CPU, swaps, or bodies are very large.",
    "pass": "One pass of the loop took long: many clients at once, very deep pipelines, or a slow disk.",
    "journal-write": "Writing the journal took long: look at the disk and at other programs that write to it.",
    "journal-fsync": "Forcing the journal to disk took long: appendfsync everysec keeps it out of the way of clients.",
}


@dataclass
class Event:
    """The samples of one event as (Unix seconds, milliseconds), and the worst ever."""

    samples: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=SAMPLES_MAX))
    worst_ms: int = 0

    def add(self, wall_s: int, elapsed_ms: int) -> None:
        self.worst_ms = max(self.worst_ms, elapsed_ms)
        if self.samples and self.samples[-1][0] == wall_s:
            elapsed_ms = max(elapsed_ms, self.samples.pop()[1])
        self.samples.append((wall_s, elapsed_ms))


class LatencyMonitor:
    """Events by name."""

    def __init__(self) -> None:
        self.events: dict[str, Event] = {}
        self.threshold_ms = 0

    def note(self, name: str, wall_s: int, elapsed_ms: int) -> None:
        """Take a sample if it reaches the threshold."""
        if self.threshold_ms <= 0 or elapsed_ms < self.threshold_ms:
            return
        event = self.events.get(name)
        if event is None:
            if len(self.events) >= EVENTS_MAX:
                return
            event = self.events[name] = Event()
        event.add(wall_s, elapsed_ms)

    def reset(self, names: list[str]) -> int:
        """Forget some events, or all without names; return how many there were."""
        chosen = [name for name in names or list(self.events) if name in self.events]
        for name in set(chosen):
            del self.events[name]
        return len(set(chosen))

    def report(self) -> str:
        """Return what an operator should know and do."""
        if self.threshold_ms <= 0:
            return (
                "The latency monitor is off. Switch it on with CONFIG SET latency-monitor-threshold 100: then everything that"
                " takes 100 milliseconds or more is noted.\n"
            )
        if not self.events:
            return f"Nothing has taken {self.threshold_ms} milliseconds or more since the monitor was switched on.\n"
        lines = [f"What has taken {self.threshold_ms} milliseconds or more:"]
        for name, event in sorted(self.events.items()):
            times = [elapsed for _, elapsed in event.samples]
            lines.append(
                f"- {name}: {len(times)} noted seconds, mean {sum(times) // len(times)} ms, worst of them {max(times)} ms,"
                f" worst ever {event.worst_ms} ms. {ADVICE.get(name, '')}".rstrip()
            )
        return "\n".join(lines) + "\n"


def chart(event: Event, now_s: int) -> str:
    """Return the samples as a small chart of columns, oldest left, with their age below."""
    rows = 4
    samples = list(event.samples)
    highest = max(elapsed for _, elapsed in samples) or 1
    heights = [max(1, round(elapsed * 2 * rows / highest)) for _, elapsed in samples]
    lines = []
    for row in range(rows, 0, -1):
        lines.append("".join("#" if height >= 2 * row else "_" if height == 2 * row - 1 else " " for height in heights))
    ages = [_age(now_s - second) for second, _ in samples]
    depth = max(map(len, ages))
    for place in range(depth):
        lines.append("".join(age[place] if place < len(age) else " " for age in ages))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _age(seconds: int) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"
