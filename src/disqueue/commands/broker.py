"""The broker: a node with its configuration, its commands and its figures, and the process around it through ports.

No sockets, no event loop, no clock of its own: the server, the simulator and an in-process broker for tests all build one.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING

from disqueue.commands.catalogue import COMMANDS
from disqueue.commands.dispatch import NEVER_US, Dispatcher, Entry
from disqueue.commands.holder import NodeHolder
from disqueue.commands.latency import LatencyMonitor
from disqueue.commands.ports import Clock, ServerPort
from disqueue.commands.redaction import redacted
from disqueue.commands.slowlog import SlowLog
from disqueue.commands.statistics import Statistics
from disqueue.config.configuration import Configuration
from disqueue.config.kinds import Value
from disqueue.core.client import Client
from disqueue.journal.runtime import JournalRuntime

if TYPE_CHECKING:
    from disqueue.core.node import Node
    from disqueue.core.settings import Settings

MONITOR_OUTPUT_BYTES_MAX = 32 << 20
"""A client that watches with MONITOR but reads slower than commands come is closed above this."""

SHOWN_BYTES_MAX = 64 << 10
"""Longer arguments are cut for MONITOR: a body can have half a gigabyte."""

_ESCAPES = {0x22: b'\\"', 0x5C: b"\\\\", 0x0A: b"\\n", 0x0D: b"\\r", 0x09: b"\\t", 0x07: b"\\a", 0x08: b"\\b"}
_SHOWN = [_ESCAPES.get(byte, bytes([byte]) if 0x20 <= byte < 0x7F else b"\\x%02x" % byte) for byte in range(256)]


class Broker(NodeHolder):
    """One node as clients see it.

    `execute` runs a request; the owner calls `connect` and `disconnect` for each client, and `begin_pass` of the node itself.
    """

    def __init__(self, node: Node, configuration: Configuration, server: ServerPort, clock: Clock) -> None:
        NodeHolder.__init__(self, node)
        self.configuration = configuration
        self.server = server
        self.clock = clock
        self.statistics = Statistics()
        self.slow_log = SlowLog()
        self.latency = LatencyMonitor()
        self.journal: JournalRuntime | None = None
        self.run_id = binascii.hexlify(node.entropy(20))
        self.started_ms = node.now_ms
        self.dispatcher = Dispatcher(self, COMMANDS)
        self.execute: Callable[[Client, list[bytes]], None] = self.dispatcher.execute
        for old, new in configuration.renamed:
            self.dispatcher.rename(old.encode("utf-8", "surrogateescape"), new.encode("utf-8", "surrogateescape"))
        self._follow_configuration()

    # -- clients

    def connect(self, client: Client) -> None:
        """A client is there."""
        client.connected_ms = client.active_ms = self.node.now_ms
        self.statistics.connections += 1

    def disconnect(self, client: Client) -> None:
        """A client is gone: what it waits for and watches is forgotten."""
        self.dispatcher.forget(client)
        self.node.disconnect(client)

    def close(self, client: Client) -> None:
        """Close a client after what has been written for it."""
        client.close_after_reply = True
        self.server.close_client(client)

    def feed_monitors(self, client: Client, args: list[bytes]) -> None:
        """Show a command to the clients that watch."""
        seconds, microseconds = divmod(self.clock.wall_us(), 1_000_000)
        words = b" ".join(quoted(arg) for arg in args)
        line = b"%d.%06d [%b] %b" % (seconds, microseconds, client.address.encode("utf-8", "surrogateescape"), words)
        for monitor in tuple(self.dispatcher.monitors):
            if self.server.describe(monitor).output_bytes > MONITOR_OUTPUT_BYTES_MAX:
                self.node.log("warning", "a client with MONITOR does not keep up and is closed", client=monitor.address)
                self.statistics.output_limit_closes += 1
                monitor.close_asap = True
                self.server.close_client(monitor)
                continue
            monitor.reply.status(line)
            self.server.written(monitor)

    # -- what went wrong or slowly

    def handler_failed(self, client: Client, name: bytes, error: Exception, has_written: bool) -> None:
        """A handler raised: the client gets an error and, when part of a reply was written already, is closed."""
        self.node.log("warning", "a command failed inside the server", command=name.decode(), exception=error)
        if has_written:
            client.close_asap = True
            self.server.close_client(client)
        else:
            client.reply.error(b"ERR internal error in '%b'; the server's log tells more" % name)

    def command_was_slow(self, entry: Entry, args: list[bytes], elapsed_us: int) -> None:
        """Note a command that reached one of the two thresholds."""
        wall_s = self.node.wall_ms // 1000
        threshold_us = self.configuration.number("slowlog-log-slower-than")
        if 0 <= threshold_us <= elapsed_us and entry.name != b"slowlog":
            self.slow_log.add(wall_s, elapsed_us, redacted(entry.name, args))
        self.latency.note("fast-command" if entry.fast else "command", wall_s, elapsed_us // 1000)

    # -- configuration

    def _follow_configuration(self) -> None:
        """Keep node, dispatcher and watchers up to date with their options."""
        listen = self.configuration.listen
        settings: Settings = self.node.settings
        for option, attribute in (
            ("max-job-size", "max_job_bytes"),
            ("max-queue-name-bytes", "max_queue_name_bytes"),
            ("cluster-node-timeout", "node_timeout_ms"),
        ):
            listen(option, _setter(settings, attribute))
        listen("queue-idle-seconds", _setter(settings, "queue_idle_ms", 1000))
        listen("maxmemory-policy", self._policy_changed)
        listen("maxmemory", self._memory_changed)
        listen("requirepass", self._password_changed)
        listen("slowlog-max-len", self._slow_log_length_changed)
        for option in ("slowlog-log-slower-than", "latency-monitor-threshold"):
            listen(option, self._thresholds_changed)

    def _policy_changed(self, value: Value) -> None:
        self.node.settings.evict_acks = value == "acks"

    def _memory_changed(self, value: Value) -> None:
        assert isinstance(value, int)
        self.node.settings.maxmemory_bytes = value
        self.dispatcher.memory_limited = value != 0

    def _password_changed(self, value: Value) -> None:
        self.dispatcher.set_guards(password=str(value).encode("utf-8", "surrogateescape"))

    def _slow_log_length_changed(self, value: Value) -> None:
        assert isinstance(value, int)
        self.slow_log.limit(value)

    def _thresholds_changed(self, _value: Value) -> None:
        slow_us = self.configuration.number("slowlog-log-slower-than")
        latency_ms = self.configuration.number("latency-monitor-threshold")
        self.latency.threshold_ms = latency_ms
        self.dispatcher.slow_us = min(slow_us if slow_us >= 0 else NEVER_US, latency_ms * 1000 if latency_ms else NEVER_US)


def _setter(settings: Settings, attribute: str, factor: int = 1) -> Callable[[Value], None]:
    def set_attribute(value: Value) -> None:
        assert isinstance(value, int)
        setattr(settings, attribute, value * factor)

    return set_attribute


def quoted(arg: bytes) -> bytes:
    """Return an argument in quotes, with what can't be printed escaped, cut when it is long."""
    shown = b"".join(_SHOWN[byte] for byte in arg[:SHOWN_BYTES_MAX])
    left = len(arg) - SHOWN_BYTES_MAX
    return b'"%b"' % shown if left <= 0 else b'"%b... (%d more bytes)"' % (shown, left)
