"""Real-time priority for servers and load generator while something is measured: other work of the machine does not count."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def undisturbed(pids: Sequence[int]) -> Iterator[bool]:
    """Tell whether it was allowed; where it is not, all goes on as it is. Meanwhile other programs wait."""
    tasks = [0, *(int(task.name) for pid in pids for task in Path(f"/proc/{pid}/task").iterdir())]
    try:
        for task in tasks:
            os.sched_setscheduler(task, os.SCHED_RR, os.sched_param(1))
    except OSError:
        _back(tasks)
        yield False
        return
    try:
        yield True
    finally:
        _back(tasks)


def _back(tasks: Sequence[int]) -> None:
    for task in tasks:
        with suppress(OSError):  # the server may have ended
            os.sched_setscheduler(task, os.SCHED_OTHER, os.sched_param(0))
