"""The server around the broker: connections, what the broker asks of its process, and the end of it all."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from disqueue.commands.broker import Broker
from disqueue.commands.clock import SystemClock
from disqueue.commands.ports import ConnectionFacts, ProcessFacts
from disqueue.config.configuration import Configuration
from disqueue.config.kinds import OutputLimit, Value
from disqueue.config.rewrite import rewrite as rewrite_configuration
from disqueue.config.sources import ConfigError
from disqueue.core.client import NOT_BLOCKED, Client
from disqueue.server import listeners, logs, process
from disqueue.server.connection import OUTPUT_BYTES_PAUSE, Connection
from disqueue.server.idle import IdleClients
from disqueue.server.passes import SLOW_PASS_MS, Passes
from disqueue.wire.resp import ParserLimits

if TYPE_CHECKING:
    from disqueue.core.node import Node

DRAIN_S = 1.0
"""How long a peer that was sent an error may take to read it: closing at once while it still sends would destroy the error."""
COLLECT_EVERY_MS = 60_000

TOO_MANY_CLIENTS = b"ERR max number of clients reached"
PROTECTED = (
    b"DENIED Disqueue runs in protected mode: no password and no bind address are set, so that only clients of the same machine"
    b" are served, which connect to 127.0.0.1, ::1 or the Unix socket. To serve others do one of these: 1) set a password in the"
    b" configuration (requirepass), or now, from the machine itself, with CONFIG SET requirepass; 2) set the addresses to listen"
    b" on (bind); 3) switch the protection off with CONFIG SET protected-mode no, which is safe only where nobody else reaches"
    b" this port."
)


class ClientProtocol(Connection, asyncio.BufferedProtocol):
    """What the event loop gets: asyncio tells the two kinds of protocols apart by their base class."""

    __slots__ = ()


class Shell(Passes):
    """The asyncio shell of one broker. It is the broker's `ServerPort` and the node's `on_unblock`."""

    def __init__(self, node: Node, configuration: Configuration) -> None:
        super().__init__(node, SystemClock())
        node.grace_ms = 1
        self.configuration = configuration
        self.broker = Broker(node, configuration, self, self.clock)
        self.dispatcher = self.broker.dispatcher
        self.statistics = self.broker.statistics
        node.on_unblock = self.unblocked
        self.connections: dict[int, Connection] = {}
        self.idle = IdleClients()
        self.draining = 0
        self.next_client_id = 1
        self.collected_ms = self.now_ms
        self.stopped: asyncio.Event
        self.servers: list[asyncio.Server] = []
        self.restart_wanted = False
        self.exit_code = 0
        self.limits = ParserLimits()
        self.max_clients = 0
        self.draining_max = 0
        self.output_limit = OutputLimit(0, 0, 0)
        self.keep_alive_s = 0
        self._follow_configuration()

    def _follow_configuration(self) -> None:
        for option in ("proto-max-bulk-len", "max-arguments", "client-query-buffer-limit"):
            self.configuration.listen(option, self._limits_changed)
        self.configuration.listen("maxclients", self._max_clients_changed)
        self.configuration.listen("client-output-buffer-limit", self._output_limit_changed)
        self.configuration.listen("timeout", self._timeout_changed)
        self.configuration.listen("tcp-keepalive", self._keep_alive_changed)
        self.configuration.listen("loglevel", lambda value: logs.set_level(str(value)))

    def _limits_changed(self, _value: Value) -> None:
        number = self.configuration.number
        self.limits = ParserLimits(
            max_arguments=number("max-arguments"),
            max_bulk_bytes=number("proto-max-bulk-len"),
            max_query_buffer_bytes=number("client-query-buffer-limit"),
        )

    def _max_clients_changed(self, value: Value) -> None:
        assert isinstance(value, int)
        possible, draining_max = process.allow_files(value)
        if possible < value and self.max_clients:
            raise ConfigError(
                f"The operating system is not able to handle the specified number of clients, try with {possible}",
            )
        if possible < value:
            logs.log_event("warning", "the system allows too few open files for maxclients", maxclients=value, possible=possible)
        self.max_clients = possible
        self.draining_max = draining_max

    def _output_limit_changed(self, value: Value) -> None:
        assert isinstance(value, OutputLimit)
        self.output_limit = value
        self.output_limited = bool(value.hard_bytes or value.soft_bytes)

    def _timeout_changed(self, value: Value) -> None:
        assert isinstance(value, int)
        self.idle.set_timeout(value * 1000, self.clients())
        self._set_watched()

    def _keep_alive_changed(self, value: Value) -> None:
        assert isinstance(value, int)
        self.keep_alive_s = value

    # -- life

    def use_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run in this event loop from now on."""
        self.loop = loop
        self.stopped = asyncio.Event()

    async def start(self, sockets: list[socket.socket]) -> None:
        """Listen on bound sockets."""
        backlog = self.configuration.number("tcp-backlog")
        for one in sockets:
            if one.family == socket.AF_UNIX:
                server = await self.loop.create_unix_server(self.new_connection, sock=one, backlog=backlog)
            else:
                server = await self.loop.create_server(self.new_connection, sock=one, backlog=backlog)
            self.servers.append(server)
        self.begin_pass()

    def withhold(self) -> None:
        """See `Passes`. An answer that waits for the ones before it is withheld as well."""
        for connection in self.connections.values():
            if connection.client.pending_adds:
                self.close_client(connection.client)
        Passes.withhold(self)

    def new_connection(self) -> ClientProtocol:
        """Return the protocol of a connection that is about to be made."""
        connection = ClientProtocol(self, self.next_client_id)
        self.next_client_id += 1
        return connection

    def stop(self) -> None:
        """End: no new connections, what was written is sent, the rest is cut."""
        for server in self.servers:
            server.close()
        if self.journal is not None and self.journal.stop():
            self.exit_code = 1
        for connection in list(self.connections.values()):
            connection.flush()
            if connection.transport is not None:
                connection.transport.close()
        self.stopped.set()

    # -- the pass

    def housekeeping(self) -> None:
        """What is done at the end of a pass, but not of each one."""
        now_ms = self.now_ms
        self.statistics.sample(now_ms, self.dispatcher)
        took_ms = self.clock.now_ms() - now_ms
        if took_ms >= SLOW_PASS_MS:
            self.broker.latency.note("pass", self.node.wall_ms // 1000, took_ms)
        if self.idle.timeout_ms:
            for client in self.idle.pop_idle(now_ms, self.connections):
                logs.log_event("verbose", "closing an idle client", client=client.address)
                self.close_client(client)
        if self.paused and 0 < self.paused_until_ms <= now_ms:
            self.pause_clients(0)
        if now_ms - self.collected_ms >= COLLECT_EVERY_MS:
            self.collected_ms = now_ms
            process.collect_if_small(len(self.node.jobs) + len(self.connections))

    def _set_watched(self) -> None:
        """Passes look at idle clients and at a pause only while there are some."""
        self.watched = self.paused or self.idle.timeout_ms > 0

    def other_deadline_ms(self) -> int:
        """Return when idle clients or a pause want to be looked at, or -1."""
        deadline_ms = self.idle.next_ms() if self.idle.timeout_ms else -1
        if self.paused and (deadline_ms < 0 or self.paused_until_ms < deadline_ms):
            deadline_ms = self.paused_until_ms
        return deadline_ms

    # -- connections

    def connection_made(self, connection: Connection) -> None:
        """Serve a new connection, or tell it why not."""
        transport = connection.transport
        assert transport is not None
        client = connection.client
        one = transport.get_extra_info("socket")
        connection.descriptor = one.fileno()
        client.unix_socket = one.family == socket.AF_UNIX
        client.address = _address(one, transport.get_extra_info("peername"))
        if not self.in_pass:
            self.begin_pass()
        refusal = self.refusal(client)
        if refusal:
            self.statistics.rejected_connections += 1
            client.reply.error(refusal)
            client.close_after_reply = True
            self.mark_dirty(connection)
            return
        if not client.unix_socket:
            listeners.keep_alive(one, self.keep_alive_s)
        transport.set_write_buffer_limits(high=OUTPUT_BYTES_PAUSE)
        self.connections[client.id] = connection
        self.broker.connect(client)
        self.idle.add(client)

    def refusal(self, client: Client) -> bytes:
        """Return why a new client is not served, or b""."""
        if len(self.connections) >= self.max_clients:
            return TOO_MANY_CLIENTS
        protected = (
            self.configuration.flag("protected-mode") and not self.dispatcher.password and not self.configuration.values["bind"]
        )
        if protected and not client.unix_socket and not _is_loopback(client.address):
            return PROTECTED
        return b""

    def connection_lost(self, connection: Connection) -> None:
        """A connection is gone."""
        if connection.draining:
            self.draining -= 1
        self.node.buffer_bytes -= connection.accounted_bytes
        connection.accounted_bytes = 0
        if self.connections.pop(connection.client.id, None) is not None:
            if not self.in_pass:
                self.begin_pass()
            self.broker.disconnect(connection.client)
        connection.client.connection = None  # no cycle: its buffers are freed at once

    def end_of_input(self, connection: Connection) -> None:
        """A peer sends no more: give up what it waits for, send what was written, close."""
        if not self.in_pass:
            self.begin_pass()
        connection.client.close_after_reply = True
        if self.connections.pop(connection.client.id, None) is not None:
            self.broker.disconnect(connection.client)
        self.mark_dirty(connection)

    def close_politely(self, connection: Connection) -> None:
        """Close after the last reply; a peer that still sends gets time to read it, one that never reads is cut."""
        transport = connection.transport
        assert transport is not None
        if connection.ended or self.draining >= self.draining_max or not transport.can_write_eof():
            transport.close()
        else:
            connection.draining = True
            self.draining += 1
            transport.write_eof()
        self.loop.call_later(DRAIN_S, self._end_draining, connection, transport.get_write_buffer_size())

    def _end_draining(self, connection: Connection, before: int) -> None:
        transport = connection.transport
        if connection.closed or transport is None:
            return
        pending = transport.get_write_buffer_size()
        if 0 < pending < before:  # it still reads
            self.loop.call_later(DRAIN_S, self._end_draining, connection, pending)
        else:
            transport.abort()

    def check_output(self, connection: Connection) -> None:
        """Close a client that does not read, by the limits of the configuration."""
        assert connection.transport is not None
        hard, soft, seconds = self.output_limit
        pending = connection.transport.get_write_buffer_size()
        if hard and pending > hard:
            self._too_slow(connection, pending)
        elif soft and pending > soft:
            if not connection.soft_since_ms:
                connection.soft_since_ms = self.now_ms
                self.loop.call_later(seconds, self._check_again, connection)
            elif self.now_ms - connection.soft_since_ms >= seconds * 1000:
                self._too_slow(connection, pending)
        else:
            connection.soft_since_ms = 0

    def _check_again(self, connection: Connection) -> None:
        if connection.closed or connection.transport is None:
            return
        self.now_ms = self.clock.now_ms()
        self.check_output(connection)

    def _too_slow(self, connection: Connection, pending: int) -> None:
        self.statistics.output_limit_closes += 1
        logs.log_event(
            "warning", "closing a client that does not read its replies", client=connection.client.address, bytes=pending
        )
        assert connection.transport is not None
        connection.transport.abort()

    # -- what the node tells

    def unblocked(self, client: Client) -> None:
        """The command that a client was blocked in has been answered."""
        connection = client.connection
        if isinstance(connection, Connection) and not connection.closed:
            self.mark_dirty(connection)
            client.active_ms = self.now_ms
            if client.blocked == NOT_BLOCKED and (connection.held is not None or connection.parser.buffered_bytes):
                self.give_turn(connection)

    # -- the broker's port to the process

    def facts(self) -> ProcessFacts:
        """Return what INFO says of the process."""
        kind = type(self.loop).__module__.partition(".")[0]
        return process.facts(kind, self.configuration.number("port"), self.max_clients)

    def clients(self) -> Iterable[Client]:
        """Return the connected clients."""
        return [connection.client for connection in self.connections.values()]

    def describe(self, client: Client) -> ConnectionFacts:
        """Return what CLIENT LIST says of a connection."""
        connection = client.connection
        if not isinstance(connection, Connection) or connection.closed or connection.transport is None:
            return ConnectionFacts()
        pending = connection.writer.size + connection.transport.get_write_buffer_size()
        return ConnectionFacts(connection.descriptor, connection.parser.buffered_bytes, pending, connection.writing_paused)

    def close_client(self, client: Client) -> None:
        """Close a connection at the end of the pass."""
        connection = client.connection
        if isinstance(connection, Connection) and not connection.closed:
            if not client.close_after_reply and not client.close_asap:
                client.close_asap = True
            if not self.in_pass:
                self.begin_pass()
            self.mark_dirty(connection)

    def written(self, client: Client) -> None:
        """Something was written for a client outside of its own command."""
        connection = client.connection
        if isinstance(connection, Connection) and not connection.closed:
            self.mark_dirty(connection)

    def pause_clients(self, until_ms: int) -> None:
        """Hold back requests until then; the longest pause wins; 0 ends it."""
        if until_ms:
            self.paused_until_ms = max(until_ms, self.paused_until_ms)
            self.paused = True
            self._set_watched()
            return
        self.paused = False
        self.paused_until_ms = 0
        self._set_watched()
        for connection in self.connections.values():
            if connection.held is not None:
                self.give_turn(connection)

    def holds_back(self, request: list[bytes]) -> bool:
        """Whether a request has to wait for the end of CLIENT PAUSE; the one that ends it has not."""
        ends = len(request) == 2 and request[0].lower() == b"client" and request[1].lower() == b"unpause"
        return not ends and self.now_ms < self.paused_until_ms

    def sleep(self, seconds: float) -> None:
        """Let the whole process stand still."""
        time.sleep(seconds)

    def shutdown(self, rewrite: bool) -> str:
        """Begin an orderly end; return why not, or ""."""
        reason = self.journal.save_for_shutdown() if rewrite and self.journal is not None else ""
        if reason:
            return reason
        logs.log_event("notice", "shutting down")
        self.loop.call_soon(self.stop)
        return ""

    def restart(self, delay_ms: int) -> str:
        """Begin an orderly end that is followed by a new start; return why not, or ""."""
        if self.configuration.path:
            try:
                rewrite_configuration(self.configuration)
            except ConfigError as error:
                return str(error)
        self.restart_wanted = True
        self.loop.call_later(delay_ms / 1000, self.shutdown, False)
        return ""


def _address(one: socket.socket, peer: object) -> str:
    """Return ip:port, [ip]:port or unix:path."""
    if one.family == socket.AF_UNIX:
        name = one.getsockname()
        return f"unix:{name if isinstance(name, str) else ''}"
    if not isinstance(peer, tuple):
        return "?:0"  # gone before it was accepted
    return f"[{peer[0]}]:{peer[1]}" if one.family == socket.AF_INET6 else f"{peer[0]}:{peer[1]}"


def _is_loopback(address: str) -> bool:
    return address.startswith(("127.", "[::1]:", "[::ffff:127."))
