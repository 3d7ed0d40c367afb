"""The regression gate: `python benchmarks/gate [--update]`.

Counts what fixed work costs a job, in units of a calibration loop, and compares it with `limits.json`. Instructions are counted
under valgrind (they are the same on a busy machine and on an idle one); without valgrind the CPU time is taken, several
times, and the least counts. It never looks at wall time. The installed package is measured: install it compiled first.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from disqueue import build_info

HERE = Path(__file__).parent
LIMITS = HERE / "limits.json"
WORKLOADS = {"pipelined": 2000, "journaled": 2000, "replicated": 1000}
CALIBRATION_ROUNDS = 2000
TOLERANCE = {"instructions": 1.5, "cpu": 2.0}
CPU_RUNS = 5
RUN_TIMEOUT_S = 600
COLLECTED = re.compile(rb"Collected : (\d+)")


def command(workload: str, jobs: int) -> list[str]:
    return [sys.executable, str(HERE / "work.py"), workload, str(jobs)]


def instructions(workload: str, jobs: int) -> float:
    """Instructions of a whole run."""
    with tempfile.TemporaryDirectory() as directory:
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/out"]
        run = subprocess.run(
            [*tool, *command(workload, jobs)],
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": "0"},
            timeout=RUN_TIMEOUT_S,
            check=True,
        )
    found = COLLECTED.search(run.stderr)
    if found is None:
        raise RuntimeError(f"valgrind told no count:\n{run.stderr.decode(errors='replace')[-500:]}")
    return float(found[1])


def cpu_s(workload: str, jobs: int) -> float:
    """CPU seconds of a whole run, the least of several."""
    times = []
    for _ in range(CPU_RUNS):
        before = os.times()
        subprocess.run(command(workload, jobs), timeout=RUN_TIMEOUT_S, check=True)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(times)


def measure(count: Callable[[str, int], float], factor: int, workers: int) -> dict[str, float]:
    """Cost of one job of each workload, in rounds of the calibration. `factor`: more work where the measure is coarse."""
    plan = {name: jobs * factor for name, jobs in {"calibration": CALIBRATION_ROUNDS, **WORKLOADS}.items()}
    with ThreadPoolExecutor(workers) as pool:
        full = {name: pool.submit(count, name, jobs) for name, jobs in plan.items()}
        empty = {name: pool.submit(count, name, 0) for name in plan}
        costs = {name: (full[name].result() - empty[name].result()) / jobs for name, jobs in plan.items()}
    return {name: costs[name] / costs["calibration"] for name in WORKLOADS}


def verdict(measured: dict[str, float], limits: dict[str, float], tolerance: float) -> list[str]:
    """What costs more than it may."""
    return [
        f"{name}: a job costs {cost:.3f} rounds of the calibration, {limits[name]:.3f} are usual and "
        f"{limits[name] * tolerance:.3f} the limit; find what became slower, or set new limits with --update and say why"
        for name, cost in measured.items()
        if name in limits and cost > limits[name] * tolerance
    ]


def main() -> int:
    started = time.monotonic()
    if build_info().form != "compiled":
        print("gate: plain Python is installed, and only the compiled form has limits: nothing to compare")
        return 0
    how = "instructions" if shutil.which("valgrind") else "cpu"
    measured = measure(instructions, 1, os.cpu_count() or 1) if how == "instructions" else measure(cpu_s, 10, 1)
    limits = json.loads(LIMITS.read_text())
    for name, cost in measured.items():
        print(f"{name}: {cost:.3f} rounds a job by {how}, usual {limits.get(how, {}).get(name, 0):.3f}")
    print(f"took {time.monotonic() - started:.0f} s")
    if "--update" in sys.argv[1:]:
        limits[how] = {name: round(cost, 3) for name, cost in measured.items()}
        LIMITS.write_text(json.dumps(limits, indent=2) + "\n")
        return 0
    problems = verdict(measured, limits.get(how, {}), TOLERANCE[how])
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
