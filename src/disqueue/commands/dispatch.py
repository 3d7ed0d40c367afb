"""From a request to its handler: the checks in their order, the figures of each command, and who may watch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from disqueue.commands.clock import SystemClock
from disqueue.commands.jobs import ackjob, addjob, getjob
from disqueue.commands.redaction import redacted
from disqueue.commands.table import Command
from disqueue.config.sources import ConfigError
from disqueue.core.client import MAX_PENDING_ADDS, REPLY_OFF, REPLY_ON, REPLY_SKIP, REPLY_SKIP_NEXT, Answer, Client
from disqueue.wire.resp import ReplyWriter, keep_words

if TYPE_CHECKING:
    from disqueue.commands.broker import Broker

NEVER_US = 1 << 62
MOVE_ONLY = frozenset((b"nack", b"enqueue"))
"""Flagged `denyoom` as clients expect it, but never refused: a job only changes its place."""


class Entry:
    """A command as one broker runs it, with its figures."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.name = command.name
        self.handler = command.handler
        self.arity = command.arity
        self.stores = "denyoom" in command.flags and command.name not in MOVE_ONLY
        self.writes = "write" in command.flags and command.name != b"getjob"
        self.loading = "loading" in command.flags
        self.no_auth = "noauth" in command.flags
        self.fast = "fast" in command.flags
        self.calls = 0
        self.elapsed_us = 0


class Dispatcher:
    """Executes the requests of all clients of one broker.

    The usual path is one dictionary look-up, two comparisons, the handler and one reading of the clock; whatever may refuse or
    watch a command besides its arity and memory sets `guarded`.
    """

    def __init__(self, broker: Broker, commands: dict[bytes, Command]) -> None:
        self.broker = broker
        self.node = broker.node
        self.clock_us: Callable[[], int] = broker.clock.elapsed_us
        self.system_clock = broker.clock if isinstance(broker.clock, SystemClock) else None
        self.entries: dict[bytes, Entry] = {}
        self.by_name: dict[bytes, Entry] = {}
        self.monitors: list[Client] = []
        self.muted: dict[int, ReplyWriter] = {}
        self.password = b""
        self.loading = b""
        self.write_error = b""
        self.all_synced = False
        """Replies promise what is on the disk: while the journal cannot be written, nothing is changed."""
        self.guarded = False
        self.memory_limited = False
        self.slow_us = NEVER_US
        self.mark_us = self.clock_us()
        self.marked = False
        self.behind = ReplyWriter()
        for command in commands.values():
            entry = Entry(command)
            self.by_name[command.name] = entry
            self._add_name(command.name, entry)
        # The handlers of these are called as C functions.
        self.addjob = self.by_name[b"addjob"]
        self.getjob = self.by_name[b"getjob"]
        self.ackjob = self.by_name[b"ackjob"]

    # -- names

    def _add_name(self, name: bytes, entry: Entry) -> None:
        usual = name.upper()
        self.entries[name] = entry
        self.entries[usual] = entry
        keep_words((usual,))  # the very key, so that it is found without a comparison

    def rename(self, old: bytes, new: bytes) -> None:
        """Give a command another name, or none. Raises ConfigError."""
        entry = self.entries.get(old)
        if entry is None:
            raise ConfigError(f"rename-command {old.decode()}: there is no such command")
        if new in self.entries:
            raise ConfigError(f"rename-command {old.decode()} {new.decode()}: the new name is taken")
        del self.entries[old]
        self.entries.pop(old.upper(), None)
        if new:
            self._add_name(new, entry)

    # -- guards

    def set_guards(
        self,
        password: bytes | None = None,
        loading: bytes | None = None,
        write_error: bytes | None = None,
    ) -> None:
        """Set the password, the text that says how far loading is, or why the journal can't be written; b"" lifts each."""
        if password is not None:
            self.password = password
        if loading is not None:
            self.loading = loading
        if write_error is not None:
            self.write_error = write_error
        self.guarded = bool(self.password or self.loading or self.write_error or self.monitors)

    def add_monitor(self, client: Client) -> None:
        """Show the client every command from now on."""
        if not client.monitor:
            client.monitor = True
            self.monitors.append(client)
            self.guarded = True

    def forget(self, client: Client) -> None:
        """The client is gone, or was reset: it watches no more and has its own writer."""
        if client.monitor:
            client.monitor = False
            self.monitors.remove(client)
            self.set_guards()
        self.unmute(client)
        client.reply_mode = REPLY_ON

    # -- execution

    def mark(self) -> None:
        """Begin to measure: called before the first of several requests; each one is measured from the end of the one before."""
        self.mark_us = self._read_clock()
        self.marked = True

    def _read_clock(self) -> int:
        """The system's clock without a detour, or that of a test or simulation."""
        if self.system_clock is not None:
            return self.system_clock.elapsed_us()
        return self.clock_us()

    def execute(self, client: Client, args: list[bytes]) -> None:
        """Execute one request of at least one argument; its reply is written now or, if it blocks, later."""
        if client.reply_mode != REPLY_ON:
            self._next_muted(client)
        entry = self.entries.get(args[0])
        if entry is None:
            entry = self.entries.get(args[0].lower())
            if entry is None:
                self._refuse_unknown(client, args[0])
                return
        count = len(args)
        if count != entry.arity and (entry.arity > 0 or count < -entry.arity):
            client.reply.error(b"ERR wrong number of arguments for '%b' command" % entry.name)
            return
        if (self.guarded or client.reply_mode != REPLY_ON) and not self._admit(client, entry, args):
            return
        if entry.stores and self.memory_limited and self.node.out_of_memory():
            client.reply.error(b"OOM command not allowed when used memory > 'maxmemory'.")
            return
        client.last_command = entry.name
        reply: ReplyWriter = client.reply
        written = reply.size
        try:
            if entry is self.addjob:
                addjob(self.broker, client, args)
            elif entry is self.getjob:
                getjob(self.broker, client, args)
            elif entry is self.ackjob:
                ackjob(self.broker, client, args)
            else:
                entry.handler(self.broker, client, args)
        except Exception as error:
            self.broker.handler_failed(client, entry.name, error, reply.size != written)
        now_us = self._read_clock()
        elapsed_us = now_us - self.mark_us
        self.mark_us = now_us
        entry.calls += 1
        entry.elapsed_us += elapsed_us
        if elapsed_us >= self.slow_us:
            self.broker.command_was_slow(entry, args, elapsed_us)

    def may_go_behind(self, client: Client, args: list[bytes]) -> bool:
        """Tell whether a request may be executed while ADDJOBs before it wait for their copies: another ADDJOB may."""
        entry = self.entries.get(args[0])
        return entry is self.addjob and client.reply_mode == REPLY_ON and len(client.pending_adds) < MAX_PENDING_ADDS

    def execute_behind(self, client: Client, args: list[bytes]) -> None:
        """Execute an ADDJOB while others of its client wait; its reply comes behind theirs."""
        reply = client.reply
        behind = self.behind
        behind.protocol = reply.protocol
        client.reply = behind
        self.execute(client, args)
        client.reply = reply
        if behind.size:
            client.pending_adds.append(Answer(behind.take()))

    def _refuse_unknown(self, client: Client, name: bytes) -> None:
        shown = name[:128] + (b"..." if len(name) > 128 else b"")
        client.reply.error(b"ERR unknown command '%b'" % shown)

    def _admit(self, client: Client, entry: Entry, args: list[bytes]) -> bool:
        if self.password and not client.authenticated and not entry.no_auth:
            client.reply.error(b"NOAUTH Authentication required.")
            return False
        if self.write_error and (entry.stores or (self.all_synced and entry.writes)):
            client.reply.error(b"MISCONF Errors writing to the AOF file: %b" % self.write_error)
            return False
        if self.loading and not entry.loading:
            client.reply.error(b"LOADING Disque is loading the dataset in memory%b" % self.loading)
            return False
        if client.reply_mode != REPLY_ON and entry.name == b"getjob":
            # The jobs would be handed out to nobody. The error goes the way of all replies of this client.
            client.reply.error(b"ERR GETJOB needs replies: switch them on with CLIENT REPLY ON")
            return False
        if self.monitors and entry.name != b"monitor":
            self.broker.feed_monitors(client, redacted(entry.name, args))
        return True

    # -- CLIENT REPLY

    def mute(self, client: Client) -> None:
        """Let replies go nowhere from now on: into a writer that nobody sends."""
        if client.id not in self.muted:
            self.muted[client.id] = client.reply
            client.reply = ReplyWriter(client.reply.protocol)

    def unmute(self, client: Client) -> None:
        """Give the client its own writer back."""
        writer = self.muted.pop(client.id, None)
        if writer is not None:
            writer.protocol = client.reply.protocol
            client.reply = writer

    def _next_muted(self, client: Client) -> None:
        """Another request begins: what a muted one wrote is dropped, a skipped one is over."""
        if client.reply_mode == REPLY_SKIP_NEXT:
            client.reply_mode = REPLY_SKIP
            self.mute(client)
        elif client.reply_mode == REPLY_SKIP:
            client.reply_mode = REPLY_ON
            self.unmute(client)
        elif client.reply_mode == REPLY_OFF:
            client.reply.take()

    # -- figures

    def commands_processed(self) -> int:
        """Return how many commands were executed since the last reset."""
        return sum(entry.calls for entry in self.by_name.values())

    def reset_figures(self) -> None:
        """Start counting anew."""
        for entry in self.by_name.values():
            entry.calls = 0
            entry.elapsed_us = 0
