"""Disqueue beside its peers on this machine, in one run: server CPU for each job, rates, latency, memory, pauses, growth.

    python benchmarks/compare.py [--original PATH/disque-server] [--only ROW …] [--rounds 5] [--output docs/benchmarks.md]

Starts what is there: this package compiled and plain, redis-server, beanstalkd, the original when its binary is named. Each is
driven through its own protocol; servers take turns in each round, and medians of the rounds are told. CPU time is compared where
it can be, not wall time: other work on the machine changes the second far more than the first. Without --output the page is
printed and nothing is written.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from comparison import conditions, plots
from comparison.peers.found import find_peers
from comparison.progress import Steps, bars
from comparison.report import Conditions, page
from comparison.results import RowResults
from comparison.rows.all import ROWS
from comparison.rows.base import Context, Row, Sizes

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison; 1 when something of ours failed."""
    arguments = _parser().parse_args(argv)
    rows = [row for row in ROWS if row.key in (arguments.only or [row.key]) and row.key not in (arguments.skip or [])]
    peers = find_peers(arguments.original)
    sizes = Sizes(arguments.jobs, arguments.held, arguments.most_held)
    notes = list(peers.missing)
    load_before = conditions.load()
    results = [RowResults(row, _rounds(row, arguments.rounds)) for row in rows]
    interrupted = False
    with bars([(one.row.title, one.rounds * len(one.row.contenders(peers))) for one in results]) as steps:
        try:
            for one in results:
                _run(one, Context(peers, sizes, steps.tell), arguments.real_time and not one.row.long, steps)
        except KeyboardInterrupt:
            interrupted = True
            notes.append("what was to come when the run was interrupted")
    pictures: dict[str, str] = {}
    if not plots.can_draw():
        notes.append(plots.MISSING)
    elif arguments.output and not interrupted:
        folder = arguments.output.with_suffix("")
        pictures = {name: f"{folder.name}/{file}" for name, file in plots.draw(results, folder).items()}
    told = Conditions(
        conditions.machine(),
        conditions.versions(peers),
        _command(argv),
        arguments.rounds,
        load_before,
        conditions.load(),
        notes,
    )
    text = page(told, results, pictures)
    print(text)
    if interrupted:
        return INTERRUPTED
    if arguments.output:
        arguments.output.write_text(text)
    return int(any(name.startswith("Disqueue") for one in results for name in one.failures))


def _run(one: RowResults, context: Context, real_time: bool, steps: Steps) -> None:
    """All rounds of a row; a contender that fails has no more turns in it."""
    contenders = one.row.contenders(context.peers)
    for number in range(one.rounds):
        for peer in contenders:
            steps.begin(one.row.title, f"{peer.name}, {number + 1} of {one.rounds}")
            peer.real_time = real_time
            if peer.name not in one.failures:
                try:
                    one.keep(peer.name, one.row.run(peer, context))
                except Exception as error:  # of whatever program or library: the other turns are still worth having
                    one.failures[peer.name] = f"{type(error).__name__}: {error}"
            steps.done(one.row.title)


def _rounds(row: Row, asked: int) -> int:
    return min(row.rounds, asked) if row.rounds else asked


def _command(argv: Sequence[str] | None) -> str:
    """The command as it was given, but for where this machine keeps the original."""
    words = list(sys.argv[1:] if argv is None else argv)
    for number, word in enumerate(words[:-1]):
        if word == "--original":
            words[number + 1] = f"…/{Path(words[number + 1]).name}"
    return " ".join(["python benchmarks/compare.py", *(word if word.startswith("…") else shlex.quote(word) for word in words)])


def _parser() -> argparse.ArgumentParser:
    keys = [row.key for row in ROWS]
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        epilog="Rows: " + "; ".join(f"{row.key} ({row.title})" for row in ROWS),
    )
    add = parser.add_argument
    add("--original", metavar="PATH", help="the original's server")
    add("--only", metavar="ROW", action="append", choices=keys, help="run this row; may be given again")
    add("--skip", metavar="ROW", action="append", choices=keys, help="leave this row out; may be given again")
    add("--real-time", action="store_true", help="real-time priority in all rows of short turns; others wait meanwhile")
    add("--rounds", type=_count, default=5, help="turns of each server in each row (%(default)s)")
    add("--jobs", type=_count, default=40_000, help="jobs in a turn (%(default)s)")
    add("--held", type=_count, default=1_000_000, help="jobs held in rows about many (%(default)s)")
    add("--most-held", type=_count, default=5_000_000, help="jobs held at the end of the row about growth (%(default)s)")
    add("--output", type=Path, metavar="FILE", help="write the page here, and plots into the directory of that name")
    return parser


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 100_000_000):
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1 to 100000000")
    return int(text)


def _terminated(number: int, _frame: object) -> None:
    """An orderly end, so that no server stays."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(main())
