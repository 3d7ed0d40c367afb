"""`disqueue …`: finds the subcommand and hands it the rest of the arguments."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from disqueue import __version__
from disqueue._twins import build_info


class Subcommand(NamedTuple):
    """A word after `disqueue`; `function` of `module` takes the arguments after it and returns the exit status."""

    name: str
    module: str
    summary: str
    function: str = "run"


SUBCOMMANDS = (
    Subcommand("server", "disqueue.server.main", "run a node: server [CONF] [--option value ...]"),
    Subcommand("cli", "disqueue.cli.client", "talk to a server: interactive, one command, or from a pipe"),
    Subcommand("demo", "disqueue.cli.demo", "start three servers and watch a day of jobs, one of them killed in the middle"),
    Subcommand("cluster", "disqueue.cli.cluster", "create, inspect and change a cluster; run one on this machine"),
    Subcommand("worker", "disqueue.client.worker", "run a function or a program for each job of a queue", "main"),
    Subcommand("bench", "disqueue.cli.bench", "measure a running server"),
    Subcommand("check-journal", "disqueue.journal.check", "check and repair a journal on disk", "main"),
    Subcommand("simulate", "disqueue.simulation.main", "run a simulated cluster with faults from a seed"),
)

INTERRUPTED = 130  # the shell's status for a program ended by Ctrl-C


def available_subcommands() -> dict[str, Subcommand]:
    """Those whose module is part of this installation."""
    return {entry.name: entry for entry in SUBCOMMANDS if _is_installed(entry)}


def find_subcommand(name: str) -> Subcommand | None:
    """The one of that name. Looks at no other: looking imports the packages that their modules are in."""
    return next((entry for entry in SUBCOMMANDS if entry.name == name and _is_installed(entry)), None)


def _is_installed(entry: Subcommand) -> bool:
    return importlib.util.find_spec(entry.module) is not None


def version_line() -> str:
    build = build_info()
    return f"disqueue {__version__}, {build.form} ({build.reason}), Python {sys.version.split()[0]}"


class _VersionAction(argparse.Action):
    """Works out the version line only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(version_line())
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    commands = available_subcommands()
    width = max(map(len, commands)) + 2
    parser = argparse.ArgumentParser(
        prog="disqueue",
        usage="disqueue COMMAND [argument ...]",
        description="A distributed, in-memory message broker for jobs.\n\ncommands:\n"
        + "".join(f"  {entry.name:<{width}}{entry.summary}\n" for entry in commands.values())
        + "\n'disqueue COMMAND --help' tells more about one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "-v", "--version", action=_VersionAction, nargs=0, help="show the version, and whether this is the compiled form"
    )
    parser.add_argument("command", choices=commands, metavar="COMMAND", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Entry of `disqueue` and `python -m disqueue`; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    entry = find_subcommand(words[0]) if words else None
    if entry is None:
        parser = make_parser()
        if not words:
            parser.print_help()
            return 2
        parser.parse_args(words)  # shows help, version or the error, and exits
        return 2
    return _guarded(entry, words[1:])


def server_main() -> int:
    """Entry of `disqueue-server`."""
    return _guarded(SUBCOMMANDS[0], sys.argv[1:])


def _guarded(entry: Subcommand, argv: list[str]) -> int:
    """Run a subcommand; Ctrl-C and a closed pipe end it without a traceback."""
    run: Callable[[list[str]], int] = getattr(importlib.import_module(entry.module), entry.function)
    try:
        status = run(argv)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads the output any more; keep the interpreter from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
