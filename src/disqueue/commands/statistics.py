"""Counters of the process, and rates over the last moments."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqueue.commands.dispatch import Dispatcher

SAMPLE_MS = 100
SAMPLES = 16


class Statistics:
    """What INFO counts. The shell adds to the counters; rates come from samples that passes take, at most one each 100 ms."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start counting anew."""
        self.connections = 0
        self.rejected_connections = 0
        self.input_bytes = 0
        self.output_bytes = 0
        self.input_faults = 0
        self.output_limit_closes = 0
        self.next_sample_ms = 0
        self.samples: deque[tuple[int, int, int, int]] = deque(maxlen=SAMPLES)

    def sample(self, now_ms: int, dispatcher: Dispatcher) -> None:
        """Note the counters, if the last time was long enough ago."""
        if now_ms >= self.next_sample_ms:
            self.next_sample_ms = now_ms + SAMPLE_MS
            self.samples.append((now_ms, dispatcher.commands_processed(), self.input_bytes, self.output_bytes))

    def rates(self, now_ms: int, commands: int) -> tuple[float, float, float]:
        """Return commands, bytes in and bytes out a second, over the last 1.6 s, or since the last sample."""
        recent = [sample for sample in self.samples if now_ms - sample[0] <= SAMPLE_MS * SAMPLES]
        start = recent[0] if recent else self.samples[-1] if self.samples else (now_ms, commands, 0, 0)
        seconds = (now_ms - start[0]) / 1000.0
        if seconds <= 0:
            return 0.0, 0.0, 0.0
        return (
            max(0.0, (commands - start[1]) / seconds),
            (self.input_bytes - start[2]) / seconds,
            (self.output_bytes - start[3]) / seconds,
        )
