"""One client's connection: bytes in, requests executed in turns, one write at the end of the pass.

The event loop calls `get_buffer`, `buffer_updated` and their kin; `ClientProtocol` in `shell.py` gives it the base class that
asyncio looks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from disqueue.core.client import BLOCKED_ADDJOB, NOT_BLOCKED, Client
from disqueue.server.passes import Participant
from disqueue.server.sending import send_now
from disqueue.wire.resp import ParserLimits, ProtocolError, ReplyWriter, RequestParser

if TYPE_CHECKING:
    import asyncio

    from disqueue.server.shell import Shell

REQUESTS_A_TURN = 1000
"""Requests of one client that are executed before others have their turn: some milliseconds."""
REPLY_BYTES_A_TURN = 256 * 1024
"""Replies after which others have their turn, so that a few small requests for many large jobs do not hold the loop."""
INPUT_BYTES_PAUSE = 1024 * 1024
"""A client whose turn is not over sends no more above this: the kernel then makes it wait."""
OUTPUT_BYTES_PAUSE = 1024 * 1024
"""Above so many unsent bytes a client's requests wait until it has read. Its input is still taken, up to the query buffer's
limit, because many clients read only when all their requests have been sent."""
_REQUESTS_A_TURN = REQUESTS_A_TURN
STRANGER_LIMITS = ParserLimits(max_arguments=16, max_bulk_bytes=16 * 1024, max_query_buffer_bytes=1024 * 1024)
"""For clients that have not given the password yet: enough for AUTH and HELLO, too little to fill the memory."""
DRAIN_BYTES_MAX = 4 * 1024 * 1024
"""A peer that was sent an error may send so much more until it has read the error."""
ACCOUNT_STEP_BYTES = 4096
"""Smaller changes of what a connection buffers are not worth telling the memory account."""


class Connection(Participant):
    """A connection and its client.

    `stranger`: the password is still to come. `ended`: the peer sends no more. `closed`: the transport is gone. `draining`: an
    error was sent, further input is thrown away until the peer has closed. `backlog`: the transport may have unsent bytes.
    """

    def __init__(self, shell: Shell, client_id: int) -> None:
        Participant.__init__(self)
        self.shell = shell
        self.stranger = bool(shell.dispatcher.password)
        self.parser = RequestParser(STRANGER_LIMITS if self.stranger else shell.limits)
        self.writer = ReplyWriter()
        self.client = Client(client_id, self.writer)
        self.client.connection = self
        self.dispatcher = shell.dispatcher
        self.transport: asyncio.Transport | None = None
        self.is_closing: Callable[[], bool]
        self.held: list[bytes] | None = None
        self.reading_paused = False
        self.writing_paused = False
        self.draining = False
        self.ended = False
        self.closed = False
        self.soft_since_ms = 0
        self.accounted_bytes = 0
        self.drained_bytes = 0
        self.descriptor = -1
        self.backlog = False

    # -- called by the event loop

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes go."""
        return self.parser.get_window(sizehint)

    def buffer_updated(self, count: int) -> None:
        """Take bytes that have come, and execute what is complete."""
        shell = self.shell
        if not shell.in_pass:
            shell.begin_pass()
        if self.draining:
            self.drained_bytes += count
            if self.drained_bytes > DRAIN_BYTES_MAX and self.transport is not None:
                self.transport.pause_reading()
            return
        shell.statistics.input_bytes += count
        client = self.client
        if client.close_after_reply or client.close_asap:
            return
        client.active_ms = shell.now_ms
        try:
            self.parser.buffer_updated(count)
        except ProtocolError as error:
            self.refuse(error.reply)
            return
        if self.may_take_turn() and not self.waiting_turn:
            self.take_turn()
        else:
            self.account()

    def may_take_turn(self) -> bool:
        """Tell whether the client's next request may be executed, as far as it itself is concerned."""
        if self.writing_paused:
            return False
        blocked = self.client.blocked
        return blocked == NOT_BLOCKED or (blocked == BLOCKED_ADDJOB and self.held is None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self.transport = transport  # type: ignore[assignment]
        self.is_closing = transport.is_closing
        self.shell.connection_made(self)

    def eof_received(self) -> bool:
        """The peer sends no more: what it waits for is given up, what it has been promised is still sent."""
        self.ended = True
        if self.draining:
            return False
        self.shell.end_of_input(self)
        return True

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection is gone."""
        self.closed = True
        self.shell.connection_lost(self)

    def pause_writing(self) -> None:
        """The peer does not read fast enough."""
        self.writing_paused = True

    def resume_writing(self) -> None:
        """The peer has read most of what it was sent."""
        self.writing_paused = False
        if not self.closed and not self.draining:
            self.shell.give_turn(self)

    # -- execution

    def take_turn(self) -> None:
        """Execute requests until none is complete, the client blocks, or its turn is over."""
        shell = self.shell
        client = self.client
        left = _REQUESTS_A_TURN
        dispatcher = self.dispatcher
        if not dispatcher.marked:
            dispatcher.mark()
        shell.read_clock(dispatcher.mark_us)
        while True:
            if left == 0 or self.writer.size >= REPLY_BYTES_A_TURN:
                shell.give_turn(self)
                break
            request = self.held
            if request is None:
                try:
                    request = self.parser.next_request()
                except ProtocolError as error:
                    self.refuse(error.reply)
                    return
                if request is None:
                    break
            if shell.paused and shell.holds_back(request):
                self.held = request
                break
            if client.blocked != NOT_BLOCKED:
                if client.blocked != BLOCKED_ADDJOB or not dispatcher.may_go_behind(client, request):
                    self.held = request
                    break
                self.held = None
                left -= 1
                dispatcher.execute_behind(client, request)
                continue
            self.held = None
            left -= 1
            dispatcher.execute(client, request)
            if self.stranger and (client.authenticated or not dispatcher.password):
                self.stranger = False
                self.parser.set_limits(shell.limits)
            if client.close_after_reply or client.close_asap:
                break
            if client.blocked != NOT_BLOCKED and client.blocked != BLOCKED_ADDJOB:
                break
        if self.writer.size > 0 and not self.dirty:
            self.dirty = True
            shell.dirty.append(self)
        self.account()

    def refuse(self, reply: bytes) -> None:
        """Answer a request that can't be understood, and close."""
        self.shell.statistics.input_faults += 1
        self.client.reply.error(reply)
        self.client.close_after_reply = True
        self.shell.close_client(self.client)

    def account(self) -> None:
        """Tell the memory account what this connection buffers, and let the peer wait when its turn does not come."""
        held = self.parser.held_bytes()
        if self.waiting_turn and held > INPUT_BYTES_PAUSE and not self.reading_paused and self.transport is not None:
            self.reading_paused = True
            self.transport.pause_reading()
        if self.writing_paused and self.transport is not None:
            held += self.transport.get_write_buffer_size()
        change = held - self.accounted_bytes
        if change >= ACCOUNT_STEP_BYTES or change <= -ACCOUNT_STEP_BYTES or held == 0:
            self.accounted_bytes = held
            self.shell.node.buffer_bytes += change

    def resume_reading(self) -> None:
        """Take input again after it had to wait."""
        if self.reading_paused and self.transport is not None and not self.closed:
            self.reading_paused = False
            self.transport.resume_reading()

    def flush(self) -> None:
        """Send what was written in this pass, once."""
        self.dirty = False
        transport = self.transport
        if self.closed or transport is None:
            return
        if self.writer.size > 0:
            if self.draining:  # a MONITOR's line, say, behind the last reply
                self.writer.take()
                return
            self.shell.statistics.output_bytes += self.writer.size
            self._send(transport)
            if self.writing_paused:
                self.account()
            if self.writing_paused or self.shell.output_limited:
                self.shell.check_output(self)
        client = self.client
        if client.close_asap:
            transport.abort()
        elif client.close_after_reply and not self.draining:
            self.shell.close_politely(self)

    def _send(self, transport: asyncio.Transport) -> None:
        """Send at once what the socket takes: the usual reply never needs the transport's buffer.

        A transport that is closing may have closed its descriptor, which may be another connection's by now.
        """
        if self.descriptor >= 0 and not self.is_closing():
            if self.backlog:
                self.backlog = transport.get_write_buffer_size() > 0
            if not self.backlog:
                send_now(self.writer, self.descriptor)
                if self.writer.size == 0:
                    return
        self.backlog = True
        transport.write(self.writer.take())
