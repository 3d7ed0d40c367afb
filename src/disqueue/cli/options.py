"""The options of `disqueue cli`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from disqueue.cli.connection import AddressError, Target, default_target, parse_port
from disqueue.cli.format import CSV, JSON, RAW, TERMINAL

COMMAND, STAT, LATENCY, LATENCY_HISTORY, PIPE = ("command", "stat", "latency", "latency-history", "pipe")

_USAGE = "disqueue cli [options] [command [argument ...]]"
_EPILOG = """\
Without a command: interactive on a terminal, else one command a line from standard input.
Exit status: 0; 1 after an error reply or without a connection; 2 after wrong options; 130 after Ctrl-C.

Examples:
  disqueue cli ADDJOB mail 'to: ann' 0
  disqueue cli --json GETJOB NOHANG FROM mail
  disqueue cli -x ADDJOB images {} 0 < picture.png
  disqueue cli -r 10 -i 0.5 QLEN mail

-x puts standard input in the place of a word {}, or at the end of the command when there is none.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line. `repeat` -1: for ever."""

    target: Target
    mode: str
    command: tuple[bytes, ...]
    style: str
    repeat: int | None
    interval_s: float | None
    append_stdin: bool
    delimiter: bytes
    pipe_timeout_s: float
    protocol: int


class UsageWanted(Exception):
    """`-h` as last argument: show the usage."""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="disqueue cli",
        usage=_USAGE,
        description="Talk to a Disqueue server.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-h", dest="host", metavar="HOST", help="server's host (127.0.0.1); -h as last argument shows this help")
    add("-p", dest="port", metavar="PORT", help="server's port (7711)")
    add("-s", dest="socket_path", metavar="PATH", help="server's Unix socket, in place of host and port")
    add("-a", dest="password", metavar="PASSWORD", help="password; better in DISQUEUE_AUTH, which other users can't see")
    add("-r", dest="repeat", type=_repeat, metavar="N", help="run the command N times (-1: for ever)")
    add("-i", dest="interval_s", type=_interval, metavar="SECONDS", help="pause between repeats, --stat and --latency lines")
    add("-x", dest="append_stdin", action="store_true", help="put standard input into the command")
    add("-d", dest="delimiter", default="\n", metavar="TEXT", help="what separates values in raw output (a line end)")
    add("--resp3", dest="protocol", action="store_const", const=3, default=2, help="speak RESP3")
    style = parser.add_mutually_exclusive_group()
    style_flags = (
        ("--raw", RAW, "values alone (default when standard output is no terminal)"),
        ("--no-raw", TERMINAL, "as on a terminal"),
        ("--csv", CSV, "one line of comma separated values"),
        ("--json", JSON, "one line of JSON"),
    )
    for flag, value, text in style_flags:
        style.add_argument(flag, dest="style", action="store_const", const=value, help=text)
    mode = parser.add_mutually_exclusive_group()
    mode_flags = (
        ("--stat", STAT, "a line of figures every second"),
        ("--latency", LATENCY, "round trips of PING, min, avg and max"),
        ("--latency-history", LATENCY_HISTORY, "the same, a new line every 15 seconds"),
        ("--pipe", PIPE, "send raw protocol from standard input, count the replies"),
    )
    for flag, value, text in mode_flags:
        mode.add_argument(flag, dest="mode", action="store_const", const=value, default=COMMAND, help=text)
    add(
        "--pipe-timeout",
        type=_interval,
        default=30.0,
        metavar="SECONDS",
        help="with --pipe: wait so long for replies (30; 0: for ever)",
    )
    add("--help", action="help", help="show this help")
    add("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def parse_options(argv: Sequence[str], environment: Mapping[str, str] = os.environ) -> Options:
    """Options from arguments and environment. Raises UsageWanted; SystemExit(2) with a message on wrong options."""
    parser = make_parser()
    if list(argv) == ["-h"] or (len(argv) > 1 and argv[-1] == "-h" and _is_option_list(parser, argv[:-1])):
        raise UsageWanted
    given = parser.parse_args(argv)
    try:
        target = _target(given, environment)
    except AddressError as error:
        parser.error(str(error))
    if given.mode != COMMAND and given.command:
        parser.error(f"--{given.mode} takes no command, but '{given.command[0]}' was given")
    if given.append_stdin and not given.command:
        parser.error("-x needs a command to put standard input into")
    return Options(
        target=target,
        mode=given.mode,
        command=tuple(os.fsencode(word) for word in given.command),
        style=given.style or (TERMINAL if _wants_terminal_style(environment) else RAW),
        repeat=given.repeat,
        interval_s=given.interval_s,
        append_stdin=given.append_stdin,
        delimiter=os.fsencode(given.delimiter),
        pipe_timeout_s=given.pipe_timeout,
        protocol=given.protocol,
    )


def _is_option_list(parser: argparse.ArgumentParser, argv: Sequence[str]) -> bool:
    """Whether `argv` holds options only, so that a `-h` after it is no argument of a command."""
    takes_value = {flag for action in parser._actions if action.nargs is None for flag in action.option_strings}
    words = iter(argv)
    for word in words:
        if not word.startswith("-"):
            return False
        if word in takes_value:
            next(words, None)
    return True


def _target(given: argparse.Namespace, environment: Mapping[str, str]) -> Target:
    target = default_target(environment)
    if given.socket_path is not None:
        target = replace(target, socket_path=given.socket_path)
    elif given.host is not None or given.port is not None:
        target = replace(
            target,
            host=given.host or target.host,
            port=parse_port(given.port) if given.port is not None else target.port,
            socket_path="",
        )
    return target if given.password is None else replace(target, password=given.password)


def _wants_terminal_style(environment: Mapping[str, str]) -> bool:
    return sys.stdout.isatty() or bool(environment.get("FAKETTY"))


def _repeat(text: str) -> int:
    number = int(text) if text.removeprefix("-").isdigit() else 0
    if number < -1 or number == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of repeats: 1 or more, or -1 for ever")
    return number


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is no time in seconds: write 0.5 or 10")
    return seconds
