"""`disqueue simulate`: runs of a simulated cluster with faults, each decided by its seed."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count, islice

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from disqueue.simulation.options import JOURNALED_EACH, draw, draw_journaled
from disqueue.simulation.report import Summary, failure_lines
from disqueue.simulation.run import Result, run_seed

DEFAULT_SEEDS = 20
MAX_SEED = 1 << 40
SHOWN_TRACES = 5
"""Violations that are printed with their trace; of the others only the seeds are."""
TRACE_LINES = 120


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="disqueue simulate",
        description="Run simulated clusters: random load and faults, then a healed cluster that has to come to rest."
        " Every run is decided by its seed. The exit code is 1 when an invariant was violated.",
    )
    parser.add_argument("--seed", type=_seed, help="run this seed only, and show its options and figures")
    parser.add_argument("--seeds", type=_positive, help=f"how many fresh seeds to run (default {DEFAULT_SEEDS})")
    parser.add_argument("--first", type=_seed, help="the first of the seeds; by default a random one")
    parser.add_argument("--minutes", type=float, help="run fresh seeds for so long")
    parser.add_argument("--jobs", type=_positive, default=1, help="processes to use (default 1)")
    parser.add_argument(
        "--journal",
        action="store_true",
        help=f"all nodes keep a journal, on disks that may fail; without --seed and this it is each {JOURNALED_EACH}th seed",
    )
    parser.add_argument("--trace", type=_positive, default=TRACE_LINES, help=f"lines of trace to show (default {TRACE_LINES})")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if not 0 <= value <= MAX_SEED:
        raise argparse.ArgumentTypeError(f"must be between 0 and {MAX_SEED}")
    return value


def say(*lines: str) -> None:
    """Write lines for people."""
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def timed_run(seed: int, journaled: bool) -> tuple[Result, float]:
    """Run a seed; also return the CPU time that it took."""
    started_s = time.process_time()
    result = run_seed(seed, journaled)
    return result, time.process_time() - started_s


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse_args(list(argv))
    if options.seed is not None:
        return _run_one(options.seed, options.journal, options.trace)
    first = options.first if options.first is not None else int.from_bytes(os.urandom(4), "big")
    seeds: Iterator[tuple[int, bool]] = ((seed, options.journal or seed % JOURNALED_EACH == 0) for seed in count(first))
    total = None
    if options.minutes is None or options.seeds is not None:
        total = options.seeds or DEFAULT_SEEDS
        seeds = islice(seeds, total)
    end_s = time.monotonic() + options.minutes * 60 if options.minutes is not None else float("inf")
    say(f"seeds from {first} on")
    summary = _run_many(seeds, total, end_s, options.jobs, options.trace)
    say(*summary.lines())
    if summary.failed:
        say("seeds with a violation: " + " ".join(_name(one) for one in summary.failed))
    return 1 if summary.failed else 0


run = main


def _name(result: Result) -> str:
    journal = "journal, " if result.options.journal else ""
    return f"{result.options.seed} ({journal}{result.invariant})"


def _run_one(seed: int, journaled: bool, trace_lines: int) -> int:
    say(str(draw_journaled(seed) if journaled else draw(seed)))
    result, cpu_s = timed_run(seed, journaled)
    summary = Summary()
    summary.take(result, cpu_s)
    if result.violation:
        say(*failure_lines(result, trace_lines))
        return 1
    say(*summary.lines())
    say(f"digest of the run: {result.digest}")
    return 0


def _run_many(seeds: Iterator[tuple[int, bool]], total: int | None, end_s: float, jobs: int, trace_lines: int) -> Summary:
    summary = Summary()
    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("runs", total=total)
        for result, cpu_s in _results(seeds, end_s, jobs):
            summary.take(result, cpu_s)
            if result.violation and len(summary.failed) <= SHOWN_TRACES:
                progress.console.print(
                    "\n".join(failure_lines(result, trace_lines)), markup=False, highlight=False, soft_wrap=True
                )
            progress.update(task, advance=1, description=f"{summary.runs} runs, {len(summary.failed)} violations")
    return summary


def _results(seeds: Iterator[tuple[int, bool]], end_s: float, jobs: int) -> Iterator[tuple[Result, float]]:
    """Run seeds until there are no more, or the time is over; in other processes when there is more than one job."""
    if jobs == 1:
        for seed, journaled in seeds:
            if time.monotonic() >= end_s:
                return
            yield timed_run(seed, journaled)
        return
    with ProcessPoolExecutor(jobs) as pool:
        running: set[Future[tuple[Result, float]]] = set()
        for seed, journaled in seeds:
            if time.monotonic() >= end_s:
                break
            running.add(pool.submit(timed_run, seed, journaled))
            if len(running) >= 2 * jobs:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        for future in running:
            yield future.result()
