"""Pictures of the rows as SVG, by matplotlib (the extra `bench`)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from comparison.results import RowResults
from comparison.rows.base import Plot

WIDTH_INCHES = 8.0
OURS, OTHERS = "tab:blue", "silver"
BAR_INCHES = 0.28
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "disqueue",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
MISSING = "the plots (matplotlib is not installed: pip install 'disqueue[bench]')"


def can_draw() -> bool:
    """Whether matplotlib is there and works."""
    try:
        importlib.import_module("matplotlib")
    except ImportError:
        return False
    return True


def draw(results: Sequence[RowResults], folder: Path) -> dict[str, str]:
    """Write a picture for each plot that has figures; name of the plot to file name."""
    settings = importlib.import_module("matplotlib")
    settings.use("svg")
    # Text stays text, and the same figures give the same file.
    settings.rcParams.update(STYLE)
    pyplot = importlib.import_module("matplotlib.pyplot")
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for one in results:
        for plot in one.row.plots:
            works = [work for work in plot.works or one.values if work in one.values]
            if not works:
                continue
            figure, axes = pyplot.subplots(layout="constrained")
            KINDS[plot.kind](axes, figure, one, plot, works)
            axes.set_title(plot.title, loc="left")
            figure.savefig(folder / f"{plot.name}.svg", metadata={"Date": None})
            pyplot.close(figure)
            written[plot.name] = f"{plot.name}.svg"
    return written


def _bars(axes: Any, figure: Any, one: RowResults, plot: Plot, works: Sequence[str]) -> None:
    """Horizontal bars: a group for each contender, a bar for each work."""
    names = [name for name in one.contenders() if any(one.median(work, name) is not None for work in works)]
    figure.set_size_inches(WIDTH_INCHES, 1.0 + BAR_INCHES * len(names) * len(works) + 0.15 * len(names))
    height = 0.8 / len(works)
    for number, work in enumerate(works):
        places = [index + number * height for index in range(len(names))]
        values = [one.median(work, name) or 0.0 for name in names]
        colors = [OURS if name.startswith("Disqueue") else OTHERS for name in names] if len(works) == 1 else None
        bars = axes.barh(places, values, height * 0.9, label=work, color=colors)
        axes.bar_label(bars, fmt=lambda value: f"{value:,.2f}" if value < 100 else f"{value:,.0f}", padding=3, fontsize=8)
    axes.set_yticks([index + height * (len(works) - 1) / 2 for index in range(len(names))], names)
    axes.invert_yaxis()
    axes.set_xlabel(one.units[works[0]])
    if plot.logarithmic:
        axes.set_xscale("log")
    axes.margins(x=0.12)
    if len(works) > 1:
        axes.legend(fontsize=8, frameon=False)


def _lines(axes: Any, figure: Any, one: RowResults, plot: Plot, works: Sequence[str]) -> None:
    """A line for each contender over the number that begins each work: `10,000 held …`."""
    figure.set_size_inches(WIDTH_INCHES, 3.2)
    for name in one.contenders():
        points = [
            (int(work.split()[0].replace(",", "")), value) for work in works if (value := one.median(work, name)) is not None
        ]
        axes.plot(*zip(*sorted(points), strict=True), marker="o", label=name)
    axes.set_xscale("log")
    if plot.logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(plot.axis)
    axes.set_ylabel(one.units[works[0]])
    if len(one.contenders()) > 1:
        axes.legend(fontsize=8, frameon=False)


KINDS = {"bars": _bars, "lines": _lines}
