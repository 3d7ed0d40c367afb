"""Bars on a terminal: one for each row, one for what runs now; elsewhere a line for each row that begins."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_EVERY_S = 0.1


class Steps:
    """Is told what runs."""

    def __init__(self, progress: Progress, rows: dict[str, TaskID], now: TaskID) -> None:
        self._progress = progress
        self._rows = rows
        self._now = now
        self._contender = ""
        self._row = ""
        self._shown_s = 0.0

    def begin(self, row: str, contender: str) -> None:
        """A contender has its turn."""
        self._contender = contender
        self._progress.start_task(self._rows[row])
        if row != self._row and self._progress.disable:
            print(f"{time.strftime('%H:%M:%S')} {row}", file=sys.stderr, flush=True)
        self._row = row
        self.tell("start", 0, 1)

    def done(self, row: str) -> None:
        """Its turn is over."""
        self._progress.advance(self._rows[row])

    def tell(self, name: str, done: int, total: int) -> None:
        """How far its turn is."""
        now_s = time.monotonic()
        if done == 0 or now_s - self._shown_s >= _EVERY_S:
            self._shown_s = now_s
            self._progress.update(self._now, description=f"{self._contender}: {name}", completed=done, total=total)


@contextmanager
def bars(rows: Sequence[tuple[str, int]]) -> Iterator[Steps]:
    """Show `rows`: title and number of turns."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        tasks = {title: progress.add_task(title, total=turns, start=False) for title, turns in rows}
        yield Steps(progress, tasks, progress.add_task("", total=1))
