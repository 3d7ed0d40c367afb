"""All that was measured, and how it stands to what is wanted."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator

from comparison.rows.base import Figure, Row, Target


class RowResults:
    """The figures of one row: by work, then by contender, one a round."""

    def __init__(self, row: Row, rounds: int) -> None:
        self.row = row
        self.rounds = rounds
        self.values: dict[str, dict[str, list[float]]] = {}
        self.units: dict[str, str] = {}
        self.remarks: dict[tuple[str, str], str] = {}
        self.failures: dict[str, str] = {}
        """Contenders that could not do the work, and why."""

    def keep(self, name: str, figures: Iterable[Figure]) -> None:
        """Add what one contender has done in one round. Raises what `figures` raises."""
        for figure in figures:
            self.units[figure.work] = figure.unit
            self.values.setdefault(figure.work, {}).setdefault(name, []).append(figure.value)
            if figure.remark:
                self.remarks[figure.work, name] = figure.remark

    def contenders(self) -> list[str]:
        """Those with at least one figure, in the order of their turns."""
        return list(dict.fromkeys(name for by_name in self.values.values() for name in by_name))

    def median(self, work: str, name: str) -> float | None:
        """The median over the rounds."""
        found = self.values.get(work, {}).get(name)
        return statistics.median(found) if found else None

    def verdicts(self) -> Iterator[tuple[Target, float | None]]:
        """What is wanted of this row and what it is; None: not measured."""
        for target in self.row.targets:
            value = self.median(target.work, target.of)
            if value is not None and target.over:
                base = self.median(target.work, target.over)
                value = value / base if base else None
            yield target, value


def reached(target: Target, value: float) -> bool:
    """Whether a value is what is wanted."""
    return value >= target.limit if target.at_least else value <= target.limit
