"""CPU time of the RESP parser and writer, in nanoseconds an operation, for both twins.

    python benchmarks/micro_resp.py [--rounds N]

Figures of one machine only compare with figures of the same run.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from disqueue import build_info
from disqueue._twins import load_plain

NAME = "disqueue.wire.resp"
BATCH = 50
BATCHES = 100
JOB_ID = b"D-dcb833cf-8tyL1NT17e9+wsA/09NqxscQ-05a1"
BODY = b"x" * 64


def encoded(*words: bytes) -> bytes:
    """The wire form of a request."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def parse(twin: ModuleType, one: bytes, batch: int = BATCH) -> Callable[[], int]:
    """Parse `one` again and again, `batch` of them with a read."""
    received = one * batch

    def run() -> int:
        parser = twin.RequestParser()
        for _ in range(BATCHES):
            view = parser.get_buffer(-1)
            count = 0
            while count < len(received):
                part = received[count : count + len(view)]
                view[: len(part)] = part
                parser.buffer_updated(len(part))
                while parser.next_request() is not None:
                    pass
                count += len(part)
                view = parser.get_buffer(-1)
        return BATCHES * batch

    return run


def write(twin: ModuleType, method: str, *arguments: Any) -> Callable[[], int]:
    """Write a reply again and again, and take what was written after each batch."""

    def run() -> int:
        writer = twin.ReplyWriter()
        reply = getattr(writer, method)
        for _ in range(BATCHES):
            for _ in range(BATCH):
                reply(*arguments)
            writer.take()
        return BATCHES * BATCH

    return run


def cases(twin: ModuleType) -> Iterator[tuple[str, Callable[[], int]]]:
    """All that is measured: name and what to run; it returns the number of operations."""
    add = encoded(b"ADDJOB", b"queue", BODY, b"0", b"RETRY", b"10", b"TTL", b"86400")
    yield "parse ADDJOB, 8 arguments", parse(twin, add)
    yield "parse ADDJOB, 8 arguments, one a read", parse(twin, add, 1)
    yield "parse GETJOB FROM", parse(twin, encoded(b"GETJOB", b"FROM", b"queue"))
    yield "parse ACKJOB", parse(twin, encoded(b"ACKJOB", JOB_ID))
    yield "parse inline PING", parse(twin, b"PING\r\n")
    yield "parse a body of 1 MB", parse(twin, encoded(b"ADDJOB", b"queue", b"x" * 1_000_000, b"0"), 1)
    yield "status", write(twin, "status", JOB_ID)
    yield "small integer", write(twin, "integer", 1)
    yield "large integer", write(twin, "integer", 1_234_567_890)
    yield "bulk", write(twin, "bulk", BODY)
    yield "job", write(twin, "job", b"queue", JOB_ID, BODY)
    yield "job with counters", write(twin, "job_with_counters", b"queue", JOB_ID, BODY, 1, 2)


def measured_ns(run: Callable[[], int], rounds: int) -> float:
    """The best CPU time of one operation."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time_ns()
        operations = run()
        best = min(best, (time.process_time_ns() - start) / operations)
    return best


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=7, help="how often to measure; the best counts (default: %(default)s)")
    rounds: int = options.parse_args().rounds
    twins = {"plain": load_plain([NAME])[NAME]}
    if build_info().form == "compiled":
        twins["compiled"] = importlib.import_module(NAME)
    results = {form: [(name, measured_ns(run, rounds)) for name, run in cases(twin)] for form, twin in twins.items()}
    print(f"{'ns an operation':40}" + "".join(f"{form:>12}" for form in results))
    for row in zip(*results.values(), strict=True):
        print(f"{row[0][0]:40}" + "".join(f"{ns:12.1f}" for _, ns in row))


if __name__ == "__main__":
    main()
