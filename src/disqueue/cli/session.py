"""Commands over one connection, answers on standard output, errors on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO, TextIO

from disqueue.cli.connection import Connection, ConnectionFailed, Target
from disqueue.cli.format import CSV, JSON, format_reply
from disqueue.cli.hints import explain_error
from disqueue.cli.reply import ErrorReply, Reply


class Session:
    """A connection that is opened when needed, and again when the server closed it between two commands."""

    def __init__(self, target: Target, protocol: int = 2) -> None:
        self.target = target
        self.protocol = protocol
        self._connection: Connection | None = None

    @property
    def connected(self) -> bool:
        return self._connection is not None

    def connect(self) -> Connection:
        if self._connection is not None and self._connection.is_stale():
            self.close()
        if self._connection is None:
            self._connection = Connection(self.target, protocol=self.protocol)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def execute(self, words: Sequence[bytes]) -> Iterator[Reply]:
        """The replies to one command: one, or a stream without end for MONITOR.

        A connection that is lost while the reply is awaited is not tried again: the command may have been executed.
        Only SHUTDOWN expects it, and then yields nothing.
        """
        name = words[0].upper()
        try:
            connection = self.connect()
            yield connection.execute(list(words))
            while name == b"MONITOR":
                yield connection.read()
        except ConnectionFailed:
            was_connected = self._connection is not None
            self.close()
            if name != b"SHUTDOWN" or not was_connected:
                raise
        except BaseException:
            self.close()  # a half-read stream is of no use
            raise
        if name == b"QUIT":
            self.close()


class Printer:
    """Writes replies in a style. `failed` tells whether an error reply was among them."""

    def __init__(self, style: str, delimiter: bytes = b"\n", out: BinaryIO | None = None, errors: TextIO | None = None) -> None:
        self.style = style
        self.delimiter = delimiter
        self.failed = False
        self._out = out
        self._errors = errors

    def show(self, words: Sequence[bytes], reply: Reply) -> None:
        if isinstance(reply, ErrorReply):
            self.failed = True
            self.say(explain_error(reply, words))
            if self.style not in (CSV, JSON):
                return
        out = self._out or sys.stdout.buffer
        out.write(format_reply(self.style, words, reply, self.delimiter))
        out.flush()

    def say(self, text: str) -> None:
        """A line for the person, beside the replies."""
        print(text, file=self._errors or sys.stderr, flush=True)
