"""CPU time and memory of processes, as Linux tells them in /proc; elsewhere nothing is known of servers."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

_PROC = Path("/proc")


def cpu_s(pids: Sequence[int]) -> float:
    """User and system CPU seconds of the processes so far; nanoseconds where the kernel counts them. Raises OSError."""
    return sum(_cpu_of(pid) for pid in pids)


def _cpu_of(pid: int) -> float:
    tasks = _PROC / str(pid) / "task"
    try:
        return sum(int((task / "schedstat").read_bytes().split()[0]) for task in tasks.iterdir()) / 1e9
    except FileNotFoundError:
        # After the last parenthesis, as a program's name may hold anything.
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pids: Sequence[int]) -> int:
    """Memory of the processes that is in RAM. Raises OSError."""
    pages = sum(int((_PROC / str(pid) / "statm").read_bytes().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE")


def is_watchable(pid: int) -> bool:
    """Whether the process is one of this machine whose figures can be read."""
    try:
        _cpu_of(pid)
    except (OSError, ValueError, IndexError):
        return False
    return pid > 0


class Meter:
    """What servers and this process use from one moment to another."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._wall_s = time.perf_counter()
        self._own_s = time.process_time()
        self._cpu_s = cpu_s(pids)

    def read(self) -> Usage:
        """The use since it was made."""
        own_s, server_s = time.process_time() - self._own_s, cpu_s(self._pids) - self._cpu_s
        return Usage(time.perf_counter() - self._wall_s, server_s, own_s)


class Usage:
    """Seconds: on the wall, and of CPU in the servers and here."""

    def __init__(self, wall_s: float = 0.0, server_s: float = 0.0, own_s: float = 0.0) -> None:
        self.wall_s = wall_s
        self.server_s = server_s
        self.own_s = own_s

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.wall_s + other.wall_s, self.server_s + other.server_s, self.own_s + other.own_s)

    @property
    def own_share(self) -> float:
        """How much of one processor this process kept busy."""
        return self.own_s / self.wall_s if self.wall_s else 0.0
