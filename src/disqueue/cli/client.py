"""`disqueue cli`: which way of talking to the server was asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from disqueue.cli.connection import ConnectionFailed
from disqueue.cli.hints import explain_connection, explain_error
from disqueue.cli.oneshot import run_command, run_lines
from disqueue.cli.options import COMMAND, LATENCY, LATENCY_HISTORY, PIPE, STAT, Options, UsageWanted, make_parser, parse_options
from disqueue.cli.pipe import run_pipe
from disqueue.cli.reply import ErrorReply
from disqueue.cli.watch import run_latency, run_stat


def _run_commands(options: Options) -> int:
    if options.command:
        return run_command(options)
    if sys.stdin.isatty():
        # prompt_toolkit takes 100 ms to import: only for a terminal.
        from disqueue.cli.interactive import run_interactive  # noqa: PLC0415

        return run_interactive(options)
    return run_lines(options, sys.stdin)


_MODES: dict[str, Callable[[Options], int]] = {
    COMMAND: _run_commands,
    STAT: run_stat,
    LATENCY: lambda options: run_latency(options, history=False),
    LATENCY_HISTORY: lambda options: run_latency(options, history=True),
    PIPE: run_pipe,
}


def run(argv: Sequence[str]) -> int:
    """Run `disqueue cli` with its arguments; returns the exit status."""
    try:
        options = parse_options(argv)
    except UsageWanted:
        make_parser().print_help()
        return 0
    try:
        return _MODES[options.mode](options)
    except ConnectionFailed as error:
        print(explain_connection(error, options.target), file=sys.stderr)
    except ErrorReply as error:
        print(explain_error(error), file=sys.stderr)
    return 1
