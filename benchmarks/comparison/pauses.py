"""Runs the probe beside some work."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from comparison.servers import Running, ServerFailed

PROBE = Path(__file__).with_name("probe.py")
END_S = 90.0


@dataclass(slots=True)
class Pauses:
    """What the probe has seen; all zero while it runs. `cpu_ms`: the longest wait in which the server itself was busy."""

    asked: int = 0
    wall_ms: float = 0.0
    cpu_ms: float = 0.0
    above_20_ms: int = 0


@contextmanager
def probing(running: Running, node: int = 0) -> Iterator[Pauses]:
    """Probe a node, which is one process, while the block runs; the figures are there when it has ended. Raises ServerFailed."""
    pauses = Pauses()
    command = [sys.executable, str(PROBE), str(running.ports[node]), str(running.pids[node])]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield pauses
        out, errors = process.communicate(timeout=END_S)  # closes its input, which ends it
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        raise ServerFailed(f"the probe failed: {errors.decode('utf-8', 'replace').strip()[-200:]}")
    seen = json.loads(out)
    pauses.asked, pauses.wall_ms = int(seen["asked"]), seen["longest_wall_ms"]
    pauses.cpu_ms, pauses.above_20_ms = seen["longest_cpu_ms"], int(seen["above_20_ms"])
