"""`disqueue cli CMD …` and commands line by line from standard input."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable

from disqueue.cli.connection import ConnectionFailed
from disqueue.cli.help import help_text
from disqueue.cli.options import Options
from disqueue.cli.session import Printer, Session
from disqueue.config.words import split_words

PLACEHOLDER = b"{}"


def run_command(options: Options) -> int:
    """Run the command as often as asked; stops at the first error reply. `help` needs no server."""
    if options.command[0].lower() == b"help":
        print(help_text(b" ".join(options.command[1:2]).decode("utf-8", "replace")))
        return 0
    words = _with_stdin(options.command) if options.append_stdin else list(options.command)
    session = Session(options.target, options.protocol)
    printer = Printer(options.style, options.delimiter)
    left = options.repeat or 1
    try:
        while left:
            for reply in session.execute(words):
                printer.show(words, reply)
            left -= 1
            if printer.failed:
                return 1
            if left and options.interval_s:
                time.sleep(options.interval_s)
    finally:
        session.close()
    return 0


def _with_stdin(command: tuple[bytes, ...]) -> list[bytes]:
    text = sys.stdin.buffer.read()
    if PLACEHOLDER in command:
        return [text if word == PLACEHOLDER else word for word in command]
    return [*command, text]


def run_lines(options: Options, lines: Iterable[str]) -> int:
    """One command a line; goes on after error replies, stops when the connection is lost."""
    session = Session(options.target, options.protocol)
    printer = Printer(options.style, options.delimiter)
    number = 0
    try:
        session.connect()
        for number, line in enumerate(lines, 1):
            words = _words(line, number, printer)
            if not words:
                continue
            for _ in range(options.repeat or 1):
                for reply in session.execute(words):
                    printer.show(words, reply)
                if options.interval_s:
                    time.sleep(options.interval_s)
    except ConnectionFailed as error:
        raise ConnectionFailed(f"{error} (at line {number} of the input)" if number else str(error)) from error
    finally:
        session.close()
    return 1 if printer.failed else 0


def _words(line: str, number: int, printer: Printer) -> list[bytes]:
    try:
        return [os.fsencode(word) for word in split_words(line)]
    except ValueError as error:
        printer.failed = True
        printer.say(f"(error) line {number}: {error}")
        return []
