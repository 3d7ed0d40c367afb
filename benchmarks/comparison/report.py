"""The page: conditions, what is wanted and what is reached, a table and pictures for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from comparison.results import RowResults, reached
from comparison.rows.base import Target

ABOUT = """\
Server CPU time is user and system, of all nodes. All was measured in one run, servers taking turns; figures are medians of
{rounds} rounds unless the row says otherwise. Rates and latencies are of the wall clock: on a shared machine they tell of the
neighbours too, CPU times hold. While latencies are measured (with `--real-time` in most rows), servers and load generator have
real-time priority where that is allowed."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the figures hold for."""

    machine: str
    versions: str
    command: str
    rounds: int
    load_before: str
    load_after: str
    notes: Sequence[str]


def page(conditions: Conditions, results: Sequence[RowResults], pictures: dict[str, str]) -> str:
    """The whole page as Markdown. `pictures`: name of a plot to its path from the page."""
    lines = [
        "# Benchmarks",
        "",
        ABOUT.format(rounds=conditions.rounds),
        "",
        f"* Machine: {conditions.machine}",
        f"* Versions: {conditions.versions}",
        f"* Command: `{conditions.command}`",
        f"* Load of the machine (1, 5, 15 minutes) before: {conditions.load_before}; after: {conditions.load_after}",
        *(f"* Not run: {note}" for note in conditions.notes),
        "",
        "## What is wanted, and what is reached",
        "",
        "| Work | Figure | Wanted | Measured | |",
        "|---|---|---|---|---|",
    ]
    for one in results:
        lines += [_verdict(one, target, value) for target, value in one.verdicts()]
    for one in results:
        lines += ["", *_section(one, pictures)]
    return "\n".join(lines) + "\n"


def _verdict(one: RowResults, target: Target, value: float | None) -> str:
    unit = one.units.get(target.work, "")
    of = "" if target.of == "Disqueue" else f"{target.of}, "
    wanted = f"{target.limit:g} {'x ' + target.over if target.over else unit} or {'more' if target.at_least else 'less'}"
    if value is None:
        return f"| {one.row.title} | {of}{target.work} | {wanted} | not measured | |"
    shown = f"{value:.2f} x" if target.over else f"{_number(value)} {unit}"
    return f"| {one.row.title} | {of}{target.work} | {wanted} | {shown} | {'yes' if reached(target, value) else '**no**'} |"


def _section(one: RowResults, pictures: dict[str, str]) -> list[str]:
    names = one.contenders()
    lines = [f"## {one.row.title}", ""]
    if one.row.rounds:
        lines += ["Run once." if one.rounds == 1 else f"Medians of {one.rounds} rounds.", ""]
    if names:
        lines += [f"| | Unit | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    marks: dict[str, int] = {}
    for work in one.values:
        cells = []
        for name in names:
            value = one.median(work, name)
            remark = one.remarks.get((work, name), "")
            mark = f" [{marks.setdefault(remark, len(marks) + 1)}]" if remark else ""
            cells.append("" if value is None else f"{_number(value)}{mark}")
        lines.append(f"| {work} | {one.units[work]} | {' | '.join(cells)} |")
    if marks:
        lines += ["", *(f"[{number}] {remark}." for remark, number in marks.items())]
    lines += [f"\n{name} failed: {reason}" for name, reason in one.failures.items()]
    for plot in one.row.plots:
        if plot.name in pictures:
            lines += ["", f"![{plot.title}]({pictures[plot.name]})"]
    return lines


def _number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"
