"""A client that asks PING again and again, and how long the server left it waiting.

    python probe.py PORT PID

A wait counts as a pause of the server as far as the server's own CPU time grew in it: on a machine with other work it may simply
not have run. The probe asks for real-time priority, so that its own waking does not count either; without the right to it, it
goes on and its figures are upper bounds. Ends at the end of its standard input and prints one JSON object.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import socket
import sys
import time

EVERY_S = 0.001
LONG_MS = 20.0
ANSWER_S = 60.0


def cpu_clock(pid: int) -> int:
    """The clock id of a process's CPU time, as clock_getcpuclockid makes it."""
    return (~pid << 3) | 2


def watch(port: int, pid: int, end: int) -> dict[str, float]:
    """Ask until `end`, a file descriptor, can be read. Milliseconds. Raises OSError."""
    clock = cpu_clock(pid)
    longest_wall = longest_cpu = 0.0
    asked = long = 0
    with socket.create_connection(("127.0.0.1", port), ANSWER_S) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not select.select([end], [], [], EVERY_S)[0]:
            before_s, cpu_s = time.perf_counter(), time.clock_gettime(clock)
            one.sendall(b"PING\r\n")
            if not one.recv(64):
                raise ConnectionResetError("the server closed the probe's connection")
            wall_ms = (time.perf_counter() - before_s) * 1000
            cpu_ms = min(wall_ms, (time.clock_gettime(clock) - cpu_s) * 1000)
            asked += 1
            long += cpu_ms > LONG_MS
            longest_wall, longest_cpu = max(longest_wall, wall_ms), max(longest_cpu, cpu_ms)
    return {"asked": asked, "longest_wall_ms": longest_wall, "longest_cpu_ms": longest_cpu, "above_20_ms": long}


def main() -> None:
    """Run with real-time priority where that is allowed."""
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    gc.disable()
    print(json.dumps(watch(int(sys.argv[1]), int(sys.argv[2]), sys.stdin.fileno())))


if __name__ == "__main__":
    main()
