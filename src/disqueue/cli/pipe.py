"""`disqueue cli --pipe`: raw protocol from standard input to the server, replies counted."""

from __future__ import annotations

import os
import secrets
import select
import sys
import time

from disqueue.cli.connection import Connection, ConnectionFailed, encode_request
from disqueue.cli.options import Options
from disqueue.cli.reply import ErrorReply, Incomplete, ReplyFault, ReplyReader

_CHUNK_BYTES = 1 << 16
MAX_ERRORS_SHOWN = 10


class _Pipe:
    """Both directions at once, so that neither side's buffers can fill up and block the other.

    The end is found with a PING of a random text after the last byte: the server answers in order, so its
    answer comes after all others. It is not closed before, as the server drops replies to a closed connection.
    """

    def __init__(self, connection: Connection, source: int) -> None:
        self._socket = connection.socket
        self._source = source
        self._reader = ReplyReader()
        self._pending = b""
        self._input_open = True
        self._end_mark = b"end-of-input-" + secrets.token_hex(16).encode()
        self.replies = 0
        self.errors = 0
        self.finished = False

    def run(self, timeout_s: float) -> None:
        """Until the end mark came back. Raises ConnectionFailed when the replies stop for `timeout_s` after the input's end."""
        peer = self._socket.fileno()
        quiet_since = time.monotonic()
        while not self.finished:
            wait = min(timeout_s, 1.0) or None
            wants_input = [self._source] if self._input_open and not self._pending else []
            readable, writable, _ = select.select([peer, *wants_input], [peer] if self._pending else [], [], wait)
            if self._source in readable:
                self._read_input()
            if peer in readable:
                self._read_replies()
            if writable:
                self._pending = self._pending[self._socket.send(self._pending) :]
            if readable or writable or self._input_open:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since >= timeout_s:
                raise ConnectionFailed(
                    f"no reply for {timeout_s:g} seconds after the end of the input; it may end inside a request "
                    f"(replies so far: {self.replies}, errors: {self.errors})"
                )

    def _read_input(self) -> None:
        data = os.read(self._source, _CHUNK_BYTES)
        if not data:
            self._input_open = False
            data = encode_request([b"PING", self._end_mark])
        self._pending += data

    def _read_replies(self) -> None:
        data = self._socket.recv(_CHUNK_BYTES)
        if not data:
            raise ConnectionFailed(f"the server closed the connection (replies so far: {self.replies}, errors: {self.errors})")
        self._reader.feed(data)
        while not isinstance(reply := self._reader.next_reply(), Incomplete):
            if reply == self._end_mark:
                self.finished = True
                return
            self.replies += 1
            if isinstance(reply, ErrorReply):
                self._count_error(reply)

    def _count_error(self, error: ErrorReply) -> None:
        self.errors += 1
        if self.errors <= MAX_ERRORS_SHOWN:
            print(f"(error) reply {self.replies}: {error.text}", file=sys.stderr, flush=True)
        elif self.errors == MAX_ERRORS_SHOWN + 1:
            print("(error) further errors are only counted", file=sys.stderr, flush=True)


def run_pipe(options: Options) -> int:
    connection = Connection(options.target, protocol=options.protocol)
    try:
        connection.socket.setblocking(False)
        pipe = _Pipe(connection, sys.stdin.fileno())
        try:
            pipe.run(options.pipe_timeout_s)
        except ReplyFault as fault:
            raise ConnectionFailed(f"{options.target.label} does not speak the protocol: {fault}") from fault
        except OSError as error:
            raise ConnectionFailed(f"the connection to {options.target.label} was closed: {error.strerror or error}") from error
    finally:
        connection.close()
    print(f"errors: {pipe.errors}, replies: {pipe.replies}")
    return 1 if pipe.errors else 0
