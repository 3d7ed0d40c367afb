"""The slow log: the latest commands that took long."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

ARGUMENTS_MAX = 32
ARGUMENT_BYTES_MAX = 128


@dataclass(frozen=True)
class SlowEntry:
    """One slow command; `wall_s` is when, `elapsed_us` how long."""

    id: int
    wall_s: int
    elapsed_us: int
    arguments: list[bytes]


class SlowLog:
    """Keeps the latest entries; ids go on growing after a reset."""

    def __init__(self) -> None:
        self.entries: deque[SlowEntry] = deque(maxlen=128)
        self.next_id = 0

    def limit(self, most: int) -> None:
        """Keep at most so many entries, the latest ones."""
        self.entries = deque(self.entries, maxlen=most)

    def add(self, wall_s: int, elapsed_us: int, args: list[bytes]) -> None:
        """Note a command; long arguments and long lists are cut."""
        self.entries.append(SlowEntry(self.next_id, wall_s, elapsed_us, shortened(args)))
        self.next_id += 1

    def latest(self, count: int) -> list[SlowEntry]:
        """Return entries, the newest first; a negative count means all."""
        newest_first = list(reversed(self.entries))
        return newest_first if count < 0 else newest_first[:count]

    def reset(self) -> None:
        """Forget all entries."""
        self.entries.clear()


def shortened(args: list[bytes]) -> list[bytes]:
    """Return at most 32 arguments of at most 128 bytes, saying how much is left out."""
    kept = args if len(args) <= ARGUMENTS_MAX else args[: ARGUMENTS_MAX - 1]
    result = [
        arg
        if len(arg) <= ARGUMENT_BYTES_MAX
        else arg[:ARGUMENT_BYTES_MAX] + b"... (%d more bytes)" % (len(arg) - ARGUMENT_BYTES_MAX)
        for arg in kept
    ]
    if len(args) > len(kept):
        result.append(b"... (%d more arguments)" % (len(args) - len(kept)))
    return result
