"""`--stat`, `--latency` and `--latency-history`."""

from __future__ import annotations

import sys
import time

from disqueue.cli.connection import Connection, ConnectionFailed
from disqueue.cli.options import Options
from disqueue.cli.reply import Reply

ANSWER_TIMEOUT_S = 10.0
_HEADER_EVERY_LINES = 20
_PING_EVERY_S = 0.01
_HISTORY_LINE_S = 15.0
_SHORT_LATENCY_S = 1.0
_COLUMNS = (
    ("jobs", "registered_jobs", 10),
    ("queues", "registered_queues", 8),
    ("memory", "used_memory_human", 10),
    ("clients", "connected_clients", 8),
    ("blocked", "blocked_clients", 8),
)


def info_fields(reply: Reply) -> dict[str, str]:
    """INFO's text (or CLUSTER INFO's) as one dict of its fields."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else ""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line and not line.startswith("#"))


def run_stat(options: Options) -> int:
    """A line each interval, `-r` lines or without end; a server that goes away is waited for."""
    interval_s = 1.0 if options.interval_s is None else options.interval_s
    connection: Connection | None = Connection(options.target)
    figures = _Figures()
    try:
        while True:
            try:
                connection = connection or Connection(options.target)
                figures.show(info_fields(connection.call("INFO", timeout_s=ANSWER_TIMEOUT_S)))
            except ConnectionFailed as error:
                if connection is not None:
                    connection.close()
                connection = None
                print(error, file=sys.stderr, flush=True)
            if options.repeat == figures.lines:
                return 0
            time.sleep(interval_s)
    finally:
        if connection is not None:
            connection.close()


class _Figures:
    """Prints INFO's figures as lines of a table, and what came since the line before."""

    def __init__(self) -> None:
        self.lines = 0
        self._last_requests = 0

    def show(self, fields: dict[str, str]) -> None:
        if self.lines % _HEADER_EVERY_LINES == 0:
            print("".join(f"{title:<{width}}" for title, _, width in _COLUMNS) + f"{'requests':<22}{'connections':<12}")
        requests = int(fields.get("total_commands_processed", "0"))
        added = requests - self._last_requests if self.lines else 0
        figures = "".join(f"{fields.get(name, '-'):<{width}}" for _, name, width in _COLUMNS)
        told = f"{requests} (+{added})"
        print(f"{figures}{told:<22}{fields.get('total_connections_received', '-'):<12}", flush=True)
        self._last_requests = requests
        self.lines += 1


class _Latency:
    def __init__(self) -> None:
        self.samples = 0
        self.min_ms = self.max_ms = self.sum_ms = 0.0

    def add(self, ms: float) -> None:
        self.min_ms = min(self.min_ms, ms) if self.samples else ms
        self.max_ms = max(self.max_ms, ms)
        self.sum_ms += ms
        self.samples += 1

    def __str__(self) -> str:
        average = self.sum_ms / max(self.samples, 1)
        return f"min: {self.min_ms:.2f}, max: {self.max_ms:.2f}, avg: {average:.2f} ms ({self.samples} samples)"


def run_latency(options: Options, *, history: bool) -> int:
    """Round trips of PING each 10 ms.

    On a terminal one line is kept up to date (`history`: a new one each 15 s or `-i`) until Ctrl-C or `-r` lines;
    elsewhere one line is measured for a second (or `-i`), with `history` without end.
    """
    live = sys.stdout.isatty()
    line_s = options.interval_s if options.interval_s is not None else _HISTORY_LINE_S if history else _SHORT_LATENCY_S
    connection = Connection(options.target)
    lines = 0
    endless = history or live
    latency, started = _Latency(), time.monotonic()
    try:
        while True:
            sent = time.perf_counter()
            connection.call("PING", timeout_s=ANSWER_TIMEOUT_S)
            latency.add((time.perf_counter() - sent) * 1000)
            if live:
                print(f"\x1b[0G\x1b[2K{latency}", end="", flush=True)
            elapsed_s = time.monotonic() - started
            if elapsed_s >= line_s and (history or not live or options.repeat):
                print(f" -- {elapsed_s:.2f} seconds" if live else f"{latency} -- {elapsed_s:.2f} seconds", flush=True)
                lines += 1
                if lines == (options.repeat or (-1 if endless else 1)):
                    return 0
                latency, started = _Latency(), time.monotonic()
            time.sleep(_PING_EVERY_S)
    finally:
        connection.close()
