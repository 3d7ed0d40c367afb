"""`disqueue cli` on a terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.output import Output
from prompt_toolkit.shortcuts import clear

from disqueue.cli.connection import AddressError, ConnectionFailed, parse_port
from disqueue.cli.help import groups, help_text, matching_commands, syntax_hint
from disqueue.cli.hints import explain_connection
from disqueue.cli.options import Options
from disqueue.cli.session import Printer, Session
from disqueue.config.words import split_words

HISTORY_FILE = "~/.disqueue_history"
SLOW_S = 0.5
_LOCAL_WORDS = ("help", "connect", "clear", "exit", "quit")
_SECRET_STARTS = (("AUTH",), ("HELLO",), ("CONFIG", "SET", "REQUIREPASS"))


class _History(FileHistory):
    """A history file that keeps no passwords and that only its owner can read."""

    def store_string(self, string: str) -> None:
        words = tuple(word.upper() for word in string.split()[:3])
        if any(words[: len(start)] == start for start in _SECRET_STARTS):
            return
        try:
            os.close(os.open(self.filename, os.O_CREAT | os.O_APPEND, 0o600))
            super().store_string(string)
        except OSError:
            pass  # a home that can't be written: the history lives as long as this session


class _CommandCompleter(Completer):
    """Command names at the first word, topics after `help`."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor.lstrip()
        words = before.split(" ")
        typed = words[-1]
        if len(words) == 1:
            yield from (Completion(word, -len(typed)) for word in _LOCAL_WORDS if typed and word.startswith(typed))
        elif words[0] == "help" and len(words) == 2:
            topics = (f"@{group}" for group in groups())
            yield from (Completion(topic, -len(typed)) for topic in topics if topic.startswith(typed))
        else:
            return
        for entry in matching_commands(typed):
            yield Completion(entry.name, -len(typed), display_meta=entry.summary)


class _SyntaxHint(Processor):
    """Shows in grey, after the cursor, what the command still takes; gone when the line is entered."""

    def __init__(self, prompt_text: Callable[[], str]) -> None:
        self._prompt_text = prompt_text

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        document = transformation_input.document
        fragments = transformation_input.fragments
        if document.is_cursor_at_the_end and not get_app().is_done and (text := syntax_hint(document.text)):
            blank = "" if document.text.endswith(" ") else " "
            room = max(transformation_input.width - len(self._prompt_text()) - len(document.text) - 1, 0)
            fragments = [*fragments, ("fg:ansibrightblack", (blank + text)[:room])]
        return Transformation(fragments)


class Shell:
    """Reads lines, runs them, until the end."""

    def __init__(self, options: Options, *, terminal: tuple[Input, Output] | None = None) -> None:
        self._session = Session(options.target, options.protocol)
        self._printer = Printer(options.style, options.delimiter)
        self._prompt: PromptSession[str] = PromptSession(
            history=_History(os.path.expanduser(HISTORY_FILE)),
            completer=_CommandCompleter(),
            input_processors=[_SyntaxHint(self._prompt_text)],
            complete_while_typing=False,
            input=terminal[0] if terminal else None,
            output=terminal[1] if terminal else None,
        )

    def run(self) -> int:
        self._connect()
        while True:
            try:
                words = _split(self._prompt.prompt(self._prompt_text()), self._printer)
                if words and not self._run_words(words):
                    break
            except KeyboardInterrupt:
                continue
            except EOFError:
                break
        self._session.close()
        return 0

    def _prompt_text(self) -> str:
        return f"{self._session.target.label}> " if self._session.connected else "not connected> "

    def _connect(self) -> None:
        try:
            self._session.connect()
        except ConnectionFailed as error:
            self._printer.say(explain_connection(error, self._session.target))

    def _run_words(self, words: list[bytes]) -> bool:
        """Run one line; False: leave."""
        repeat = 1
        if len(words) > 1 and words[0].isdigit():
            repeat, words = int(words[0]), words[1:]
        name = words[0].lower()
        if name in (b"exit", b"quit") and len(words) == 1:
            return False
        if name == b"help" or name == b"?":
            print(help_text(b" ".join(words[1:2]).decode("utf-8", "replace")))
        elif name == b"clear" and len(words) == 1:
            clear()
        elif name == b"connect":
            self._connect_to(words[1:])
        else:
            self._run_command(words, repeat)
        return True

    def _connect_to(self, words: list[bytes]) -> None:
        try:
            if len(words) != 2:
                raise AddressError("connect takes two words: connect HOST PORT")
            port = parse_port(words[1].decode("utf-8", "replace"))
        except AddressError as error:
            self._printer.say(f"(error) {error}")
            return
        self._session.close()
        self._session.target = replace(self._session.target, host=words[0].decode("utf-8", "replace"), port=port, socket_path="")
        self._connect()

    def _run_command(self, words: list[bytes], repeat: int) -> None:
        try:
            for _ in range(repeat):
                started = time.monotonic()
                for reply in self._session.execute(words):
                    self._printer.show(words, reply)
                elapsed_s = time.monotonic() - started
                if elapsed_s >= SLOW_S:
                    print(f"({elapsed_s:.2f}s)")
        except ConnectionFailed as error:
            self._printer.say(explain_connection(error, self._session.target))
            if "was closed" in str(error):
                self._printer.say("  the command may have been executed; it is not sent again")
                self._connect()
        except KeyboardInterrupt:
            # The connection is closed by now, which also withdraws a blocked GETJOB from the server.
            print()
            self._connect()


def _split(line: str, printer: Printer) -> list[bytes]:
    try:
        return [os.fsencode(word) for word in split_words(line)]
    except ValueError as error:
        printer.say(f"(error) {error}")
        return []


def run_interactive(options: Options) -> int:
    return Shell(options).run()
