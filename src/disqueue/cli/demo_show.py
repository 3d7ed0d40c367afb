"""What the demo shows: live on a terminal, line by line elsewhere, and the summary."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from disqueue.cli.demo_ledger import Ledger

_EVENTS_SHOWN = 8
_PROGRESS_EVERY_S = 2.0


class Show:
    """`update` is called again and again while the day runs."""

    def __init__(self, ledger: Ledger, console: Console) -> None:
        self._ledger = ledger
        self._console = console
        self._live: Live | None = None
        self._events_printed = 0
        self._next_progress_s = _PROGRESS_EVERY_S

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Live display on a terminal within the block."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None
        self._print_events()

    def update(self) -> None:
        if self._live is not None:
            self._live.update(self._screen(), refresh=True)
            return
        self._print_events()
        if self._ledger.elapsed_s() >= self._next_progress_s:
            self._next_progress_s += _PROGRESS_EVERY_S
            lines = [self._ledger.line(kind) for kind in self._ledger.kinds]
            self._say(
                self._ledger.elapsed_s(), f"{sum(line.sent for line in lines)} sent, {sum(line.acked for line in lines)} done"
            )

    def _print_events(self) -> None:
        for at_s, text in self._ledger.events[self._events_printed :]:
            self._events_printed += 1
            self._say(at_s, text)

    def _say(self, at_s: float, text: str) -> None:
        self._console.print(f"[{at_s:5.1f} s] {text}", markup=False, soft_wrap=True)

    def _screen(self) -> Group:
        table = _table(f"A day in a shop, {self._ledger.elapsed_s():.1f} s", ("sent", "delivered", "again", "done"))
        for kind in self._ledger.kinds:
            line = self._ledger.line(kind)
            table.add_row(kind.queue, kind.title, str(line.sent), str(line.delivered), str(line.again), str(line.acked))
        events = self._ledger.events[-_EVENTS_SHOWN:]
        told = (Text(f"[{at_s:5.1f} s] {text}", overflow="ellipsis", no_wrap=True) for at_s, text in events)
        return Group(table, Text(), *told)

    def summary(self, verdicts: dict[str, list[str]]) -> None:
        table = _table("Summary", ("sent", "delivered", "again", "done", "lost"))
        table.add_column("promise")
        for kind in self._ledger.kinds:
            line = self._ledger.line(kind)
            wrong = verdicts[kind.queue]
            figures = (line.sent, line.delivered, line.again, line.acked, line.sent - line.delivered)
            verdict = Text("broken", style="red") if wrong else Text("kept", style="green")
            table.add_row(kind.queue, kind.title, *map(str, figures), verdict)
        self._console.print(Text(), table)


def _table(title: str, figures: Sequence[str]) -> Table:
    """Narrow enough for 80 columns."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("queue", "what it shows"):
        table.add_column(column, no_wrap=True)
    for column in figures:
        table.add_column(column, justify="right", no_wrap=True)
    return table
