"""SHUTDOWN, BGREWRITEAOF, DEBUG, LOADJOB: run and test a node."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from disqueue.commands.arguments import SYNTAX_ERROR, integer_between
from disqueue.commands.table import Command
from disqueue.core.client import Client
from disqueue.core.job import Job
from disqueue.core.queue import Queue

if TYPE_CHECKING:
    from disqueue.commands.broker import Broker

SLEEP_S_MAX = 300.0
"""DEBUG SLEEP stops the whole node; a typing error shall not do so for days."""
RESTART_DELAY_MS_MAX = 60_000


def shutdown(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`SHUTDOWN [REWRITE-AOF]`: no reply when it works, the connection ends."""
    rewrite = len(args) == 2 and args[1].lower() == b"rewrite-aof"
    if len(args) > 1 and not rewrite:
        client.reply.error(SYNTAX_ERROR)
        return
    held = broker.node.what_holds()
    if held and not rewrite:
        client.reply.error(b"ERR %b; CLUSTER LEAVING no allows SHUTDOWN at once" % held.encode())
        return
    reason = broker.server.shutdown(rewrite and not broker.dispatcher.loading)
    if reason:
        broker.node.log("warning", "shutdown refused", reason=reason)
        client.reply.error(b"ERR Errors trying to SHUTDOWN. Check logs.")


def bgrewriteaof(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`BGREWRITEAOF`: compact the journal; without a journal there is nothing to do, which is fine."""
    journal = broker.journal
    reason = journal.compact() if journal is not None else ""
    if reason:
        client.reply.error(b"ERR " + reason.encode())
    else:
        client.reply.status(b"Background append only file rewriting started")


def loadjob(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`LOADJOB`: refused; jobs are loaded from the journal only."""
    client.reply.error(b"ERR LOADJOB is a special command only processed from AOF")


def _flushall(broker: Broker, client: Client, args: list[bytes]) -> None:
    broker.node.flush()
    client.reply.status(b"OK")


def _sleep(broker: Broker, client: Client, args: list[bytes]) -> None:
    try:
        seconds = float(args[2])
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= SLEEP_S_MAX:
        client.reply.error(b"ERR DEBUG SLEEP takes from 0 to %d seconds" % SLEEP_S_MAX)
        return
    broker.server.sleep(seconds)
    client.reply.status(b"OK")


def _error(broker: Broker, client: Client, args: list[bytes]) -> None:
    client.reply.error(args[2])


def _structsize(broker: Broker, client: Client, args: list[bytes]) -> None:
    sizes = [f"{kind.__name__.lower()}:{kind.__basicsize__}" for kind in (Job, Queue, Client)]
    client.reply.bulk(" ".join((f"bits:{struct.calcsize('P') * 8}", *sizes)).encode())


def _loadaof(broker: Broker, client: Client, args: list[bytes]) -> None:
    journal = broker.journal
    reason = journal.reload() if journal is not None else "there is no journal: CONFIG SET appendonly yes makes one"
    if reason:
        client.reply.error(b"ERR " + reason.encode())
    else:
        client.reply.status(b"OK")


def _restart(broker: Broker, client: Client, args: list[bytes]) -> None:
    delay_ms = 0 if len(args) == 2 else integer_between(args[2], 0, RESTART_DELAY_MS_MAX)
    if delay_ms is None:
        client.reply.error(b"ERR DEBUG RESTART takes a delay of 0 to %d milliseconds" % RESTART_DELAY_MS_MAX)
        return
    reason = broker.server.restart(delay_ms)
    if reason:
        broker.node.log("warning", "restart refused", reason=reason)
        client.reply.error(b"ERR failed to restart the server. Check server logs.")
    else:
        client.reply.status(b"OK")


SUBCOMMANDS: dict[bytes, tuple[int, int, Callable[[Broker, Client, list[bytes]], None]]] = {
    b"flushall": (2, 2, _flushall),
    b"sleep": (3, 3, _sleep),
    b"error": (3, 3, _error),
    b"structsize": (2, 2, _structsize),
    b"loadaof": (2, 2, _loadaof),
    b"restart": (2, 3, _restart),
}
"""Least and most arguments, both with DEBUG itself, and the handler."""


def debug(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`DEBUG subcommand …`"""
    known = SUBCOMMANDS.get(args[1].lower())
    if known is None or not known[0] <= len(args) <= known[1]:
        client.reply.error(b"ERR Unknown DEBUG subcommand or wrong number of arguments for '%b'" % args[1])
    else:
        known[2](broker, client, args)


COMMANDS = (
    Command(
        b"shutdown", -1, ("readonly", "admin", "loading"), "End the server in an orderly way", "server", "[REWRITE-AOF]", shutdown
    ),
    Command(b"bgrewriteaof", 1, ("readonly", "admin"), "Compact the journal", "server", "", bgrewriteaof),
    Command(b"loadjob", 2, ("write",), "Refused: jobs are loaded from the journal only", "jobs", "serialized-job", loadjob),
    Command(
        b"debug",
        -2,
        ("admin",),
        "For tests: drop everything, sleep, fail, restart",
        "server",
        "FLUSHALL | SLEEP seconds | ERROR text | STRUCTSIZE | LOADAOF | RESTART [delay-ms]",
        debug,
    ),
)
