"""The side-by-side comparison: what is told of figures, of what is wanted, and of peers that are not there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import compare
import pytest
from comparison.peers.base import Peer
from comparison.peers.found import Peers, find_peers
from comparison.report import Conditions, page
from comparison.results import RowResults, reached
from comparison.rows.all import ROWS
from comparison.rows.base import Context, Figure, Row, Target, generator_remark

from disqueue.cli.bench_process import Usage
from disqueue.cli.bench_throughput import Measured

CONDITIONS = Conditions("a machine", "versions", "a command", 3, "0.1", "0.2", ["peer: is not installed"])


class Example(Row):
    key = "example"
    title = "Example"
    targets = (
        Target("cycle", 0.5, over="other"),
        Target("cycle", 3.0),
        Target("rate", 2.0, of="Disqueue, plain", over="Disqueue", at_least=True),
    )

    def contenders(self, peers: Peers) -> Sequence[Peer]:
        return []

    def run(self, peer: Peer, context: Context) -> Iterable[Figure]:
        return []


def example() -> RowResults:
    results = RowResults(Example(), 3)
    for value in (2.0, 9.0, 1.0):
        results.keep("Disqueue", [Figure("cycle", "us a job", value)])
        results.keep("other", [Figure("cycle", "us a job", 8.0, "a remark")])
    return results


def test_medians_stand_against_what_is_wanted() -> None:
    told = {target.limit: value for target, value in example().verdicts()}
    assert told == {0.5: 0.25, 3.0: 2.0, 2.0: None}


@pytest.mark.parametrize(
    ("at_least", "value", "is_reached"), [(False, 2.0, True), (False, 2.1, False), (True, 2.0, True), (True, 1.9, False)]
)
def test_at_most_and_at_least(at_least: bool, value: float, is_reached: bool) -> None:
    assert reached(Target("work", 2.0, at_least=at_least), value) is is_reached


def test_the_page_tells_all() -> None:
    results = example()
    results.failures["third"] = "it did not start"
    text = page(CONDITIONS, [results], {})
    assert "| Example | cycle | 0.5 x other or less | 0.25 x | yes |" in text
    assert "| Example | cycle | 3 us a job or less | 2.00 us a job | yes |" in text
    assert "| Example | Disqueue, plain, rate | 2 x Disqueue or more | not measured | |" in text
    assert "| cycle | us a job | 2.00 | 8.00 [1] |" in text
    assert "[1] a remark." in text
    assert "third failed: it did not start" in text
    assert "* Not run: peer: is not installed" in text


def test_a_generator_that_is_the_limit_is_told() -> None:
    assert generator_remark(Measured("cycle", 10, Usage(1.0, 0.5, 0.4))) == ""
    assert "kept a processor busy" in generator_remark(Measured("cycle", 10, Usage(1.0, 0.99, 0.95)))
    assert "more CPU a job than the servers" in generator_remark(Measured("cycle", 10, Usage(1.0, 0.3, 0.5)))


def test_peers_that_are_missing_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    peers = find_peers("/nowhere/disque-server")
    assert peers.all() == [peers.ours]
    assert "original: disque-server is not installed" in peers.missing
    assert "beanstalkd: beanstalkd is not installed" in peers.missing


def test_rows_have_names_of_their_own() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)
    plots = [plot.name for row in ROWS for plot in row.plots]
    assert len(set(plots)) == len(plots)


def test_one_row_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")  # no peers
    output = tmp_path / "page.md"
    assert compare.main(["--only", "cycle", "--rounds", "1", "--jobs", "200", "--output", str(output)]) == 0
    text = output.read_text()
    assert "| cycle, CPU | us a job |" in text
    assert "Command: `python benchmarks/compare.py --only cycle" in text
    assert text in capsys.readouterr().out
