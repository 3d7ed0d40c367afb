"""The passes of the event loop: when one begins and ends, what happens in which order, and how long the loop may sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from disqueue.commands.clock import SystemClock
from disqueue.commands.dispatch import Dispatcher
from disqueue.commands.statistics import SAMPLE_MS, Statistics
from disqueue.core.node import Node
from disqueue.journal.runtime import JournalRuntime
from disqueue.server import logs

if TYPE_CHECKING:
    from disqueue.server.connection import Connection
    from disqueue.server.journal import ServerJournal

SLOW_PASS_MS = 20
_SLOW_PASS_MS = SLOW_PASS_MS
_HOUSEKEEPING_EVERY_MS = SAMPLE_MS


class Participant:
    """What takes part in passes: a connection."""

    def __init__(self) -> None:
        self.dirty = False
        """It is in `Passes.dirty`."""
        self.waiting_turn = False
        """It is in `Passes.waiting`."""

    def flush(self) -> None:
        """Send what was written in this pass."""


class Passes:
    """What makes passes out of single events. A shell adds connections and what else belongs to a server.

    The first event of a pass calls `begin_pass`; the end of the pass runs before the loop waits again.
    """

    def __init__(self, node: Node, clock: SystemClock) -> None:
        self.node = node
        self.clock = clock
        self.dispatcher: Dispatcher
        self.statistics: Statistics
        self.loop: asyncio.AbstractEventLoop
        self.bound_end_pass = self.end_pass  # made once, not in each pass
        self.journal: ServerJournal | None = None
        self.runtime: JournalRuntime | None = None
        """What of the journal takes part in each pass."""
        self.end_of_pass: list[Callable[[], None]] = []
        """Called after the journal is written and before clients get their replies."""
        self.end_with_peers: list[Callable[[], None]] = []
        """The same for links to peers, while the node has some."""
        self.end_once: list[Callable[[], None]] = []
        """The same, for the pass under way or else the next one only."""
        self.dirty: list[Connection] = []
        """Connections with something to send or to be closed at the end of the pass."""
        self.waiting: list[Connection] = []
        """Connections that have their turn in the next pass."""
        self.in_pass = False
        self.watched = False
        """Idle clients or a pause are to be looked at in each pass."""
        self.housekeeping_ms = 0
        self.now_ms = clock.now_ms()
        self.paused = False
        self.paused_until_ms = 0
        self.output_limited = False
        self.timer: asyncio.TimerHandle | None = None
        self.timer_ms = 0
        node.begin_pass(self.now_ms, clock.wall_ms())

    def begin_pass(self) -> None:
        """The first event of a pass: set its clock and fire what is due."""
        self.in_pass = True
        self.now_ms = self.clock.now_ms()
        self.loop.call_soon(self.bound_end_pass)
        self.node.begin_pass(self.now_ms, self.clock.wall_ms())
        try:
            self.node.advance()
        except Exception as error:
            self.step_failed(error)

    def begin_event(self) -> None:
        """Something other than a client's request happens: make sure that a pass is under way, and measure commands anew."""
        if not self.in_pass:
            self.begin_pass()
        self.dispatcher.marked = False

    def read_clock(self, elapsed_us: int) -> None:
        """Move the clock of a pass on before each turn, so that no lease is shorter by what came before it in the pass."""
        now_ms = elapsed_us // 1000
        if now_ms > self.now_ms:
            self.now_ms = now_ms
            self.node.begin_pass(now_ms, self.clock.wall_ms())

    def end_pass(self) -> None:
        """All events of a pass are handled: journal, then peers, then clients; then sleep until the next deadline.

        A fault in one step must not keep the others from being done.
        """
        try:
            self.node.end_pass()
        except Exception as error:
            self.step_failed(error)
        self._write_journal()
        if self.end_of_pass:
            self._call(self.end_of_pass)
        if self.node.members.peers:
            self._call(self.end_with_peers)
        if self.end_once:
            hooks, self.end_once = self.end_once, []
            self._call(hooks)
        dirty = self.dirty
        self.dirty = []
        for connection in dirty:
            self._flush(connection)
        try:
            if self._housekeeping_due():
                self.housekeeping()
        except Exception as error:
            self.step_failed(error)
        self.in_pass = False
        self.dispatcher.marked = False
        if self.dirty:  # clients that housekeeping closes
            self.begin_pass()
        if self.waiting:
            self.loop.call_soon(self.turns)
        self._arm()

    def _call(self, hooks: list[Callable[[], None]]) -> None:
        for hook in hooks:
            try:
                hook()
            except Exception as error:
                self.step_failed(error)

    def _housekeeping_due(self) -> bool:
        """Tell whether something is to be looked at after this pass: at least ten times a second, and after each slow one."""
        now_ms = self.now_ms
        if not self.watched and now_ms < self.housekeeping_ms and self.clock.now_ms() - now_ms < _SLOW_PASS_MS:
            return False
        self.housekeeping_ms = now_ms + _HOUSEKEEPING_EVERY_MS
        return True

    def housekeeping(self) -> None:
        """What a shell does at the end of passes: rates, slow passes, idle clients."""

    def step_failed(self, error: Exception) -> None:
        """A step of a pass raised."""
        logs.log_event("warning", "a step of a pass failed inside the server", exception=error)

    # -- turns

    def give_turn(self, connection: Connection) -> None:
        """Let a client go on in the next pass."""
        if connection.waiting_turn:
            return
        connection.waiting_turn = True
        self.waiting.append(connection)
        if not self.in_pass:
            self.begin_pass()

    def turns(self) -> None:
        """Clients whose turn was over, or who have been unblocked, go on."""
        if not self.in_pass:
            self.begin_pass()
        waiting, self.waiting = self.waiting, []
        for connection in waiting:
            connection.waiting_turn = False
            client = connection.client
            if connection.closed or connection.draining or client.close_asap or client.close_after_reply:
                continue
            if connection.may_take_turn():
                connection.take_turn()
            if not connection.waiting_turn:
                connection.resume_reading()

    def mark_dirty(self, connection: Connection) -> None:
        """Send at the end of the pass what was written for a client, or close it."""
        if not connection.dirty:
            connection.dirty = True
            self.dirty.append(connection)

    # -- the end of a pass

    def _flush(self, connection: Connection) -> None:
        """Send what was written for a client; one that can't be served is cut."""
        try:
            connection.flush()
        except Exception as error:
            logs.log_event("warning", "a client can't be served", client=connection.client.address, exception=error)
            if connection.transport is not None:
                connection.transport.abort()

    def _write_journal(self) -> None:
        """Let nothing leave the process that the journal does not hold."""
        try:
            written = self.runtime is None or self.runtime.end_pass(self.node.now_ms, self.node.wall_ms)
        except Exception as error:
            logs.log_event("warning", "the journal failed inside the server", exception=error)
            written = False
        if not written:
            self.withhold()

    def withhold(self) -> None:
        """The journal could not be written: what this pass promised must not leave the process, so who waits for it is cut off.

        Whether it is done is not known to those then, as after a crash.
        """
        for connection in self.dirty:
            if connection.writer.size:
                connection.writer.take()
                connection.client.close_asap = True
        members = self.node.members
        for peer in list(members.peers):
            if peer.outbox:
                members.drop_link(peer)

    # -- sleeping

    def other_deadline_ms(self) -> int:
        """Return when the shell wants to be woken besides the node and the journal, or -1. Asked while `watched`."""
        return -1

    def _arm(self) -> None:
        """Sleep until the next deadline; a timer that fires a little early costs less than moving it each time."""
        deadline_ms = self.node.next_deadline_ms()
        if self.runtime is not None:
            other_ms = self.runtime.next_deadline_ms()
            if deadline_ms < 0 or 0 <= other_ms < deadline_ms:
                deadline_ms = other_ms
        if self.watched:
            other_ms = self.other_deadline_ms()
            if deadline_ms < 0 or 0 <= other_ms < deadline_ms:
                deadline_ms = other_ms
        if deadline_ms < 0:
            return
        if self.timer is not None:
            if self.timer_ms <= deadline_ms:
                return
            self.timer.cancel()
        self.timer_ms = deadline_ms
        self.timer = self.loop.call_later(max(0, deadline_ms - self.now_ms) / 1000.0, self.wake)

    def wake(self) -> None:
        """The timer has fired."""
        self.timer = None
        if not self.in_pass:
            self.begin_pass()
