"""The demo's book-keeping: what was sent, what came out, and whether that is what was promised."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_EVENTS = 200  # of a day's events the last few are shown; the demo makes about 20
CLOCK_TICK_MS = 1  # the server counts whole milliseconds: what it was sent within one, it dates to that one's begin


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of jobs: its queue, and how its producer and its workers behave.

    `abandon` and `refuse` are how many of its jobs a worker dies with, or hands back with NACK.
    """

    queue: str
    title: str
    jobs: int
    options: tuple[str, ...]
    workers: int = 1
    work_ms: int = 4
    delay_ms: int = 0
    abandon: int = 0
    refuse: int = 0

    @property
    def at_most_once(self) -> bool:
        return "RETRY 0" in " ".join(self.options)


@dataclass(slots=True)
class Entry:
    """One job's life as producer and workers saw it."""

    kind: Kind
    sent_s: float
    deliveries: int = 0
    too_early: bool = False
    abandoned: bool = False
    refused: bool = False
    acked: bool = False
    told_again: bool = False  # a later delivery came with a counter that says so

    @property
    def interrupted(self) -> bool:
        return self.abandoned or self.refused


class Line(NamedTuple):
    """The figures of one kind. `again` counts deliveries after the first."""

    sent: int
    delivered: int
    again: int
    acked: int


@dataclass(slots=True)
class Ledger:
    """Shared by all threads of the demo; every method takes the lock for a moment."""

    kinds: Sequence[Kind]
    started_s: float = field(default_factory=time.monotonic)
    entries: dict[str, Entry] = field(default_factory=dict)
    events: list[tuple[float, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def elapsed_s(self) -> float:
        return time.monotonic() - self.started_s

    def tell(self, text: str) -> None:
        with self._lock:
            if len(self.events) < MAX_EVENTS:
                self.events.append((self.elapsed_s(), text))

    def sent(self, job_id: str, kind: Kind, sent_s: float) -> None:
        """ADDJOB was confirmed. A worker may have had the job before its producer heard of that."""
        with self._lock:
            entry = self.entries.setdefault(job_id, Entry(kind, sent_s))
            entry.sent_s = sent_s

    def delivered(self, job_id: str, kind: Kind, *, again: bool) -> Entry:
        now_s = time.monotonic()
        with self._lock:
            entry = self.entries.setdefault(job_id, Entry(kind, now_s))
            entry.deliveries += 1
            entry.told_again |= again
            if kind.delay_ms and (now_s - entry.sent_s) * 1000 < kind.delay_ms - CLOCK_TICK_MS:
                entry.too_early = True
            return entry

    def acked(self, entry: Entry) -> None:
        with self._lock:
            entry.acked = True

    def line(self, kind: Kind) -> Line:
        with self._lock:
            entries = [entry for entry in self.entries.values() if entry.kind is kind]
            return Line(
                sent=len(entries),
                delivered=sum(1 for entry in entries if entry.deliveries),
                again=sum(max(entry.deliveries - 1, 0) for entry in entries),
                acked=sum(1 for entry in entries if entry.acked),
            )

    def all_acked(self) -> bool:
        with self._lock:
            return all(entry.acked for entry in self.entries.values()) and len(self.entries) >= sum(
                kind.jobs for kind in self.kinds
            )

    def verdicts(self, *, exact: bool) -> dict[str, list[str]]:
        """What is wrong, by queue; empty lists when every promise was kept.

        `exact`: no node failed, so that no job may come twice but those whose worker died or refused.
        """
        with self._lock:
            return {kind.queue: self._verdict(kind, exact=exact) for kind in self.kinds}

    def _verdict(self, kind: Kind, *, exact: bool) -> list[str]:
        entries = [entry for entry in self.entries.values() if entry.kind is kind]
        counts: Counter[str] = Counter()
        for entry in entries:
            counts["never delivered"] += not entry.deliveries
            counts["not acknowledged"] += not entry.acked
            counts["delivered before time"] += entry.too_early
            counts["not redelivered"] += entry.interrupted and entry.deliveries < 2
            counts["redelivered without a counter that says so"] += (
                entry.interrupted and entry.deliveries > 1 and not entry.told_again
            )
            allowed = 2 if entry.interrupted else 1
            counts["delivered too often"] += entry.deliveries > allowed and (exact or kind.at_most_once)
        counts["not sent"] = kind.jobs - len(entries)
        counts["worker that did not die"] = kind.abandon - sum(entry.abandoned for entry in entries)
        counts["refusal that did not happen"] = kind.refuse - sum(entry.refused for entry in entries)
        return [f"{count} {what}" for what, count in counts.items() if count]
