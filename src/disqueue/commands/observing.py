"""MONITOR, SLOWLOG, LATENCY: watch what is executed, and what took long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.commands.arguments import NOT_AN_INTEGER, SYNTAX_ERROR, integer_between
from disqueue.commands.latency import chart
from disqueue.commands.table import Command
from disqueue.core.client import Client

if TYPE_CHECKING:
    from disqueue.commands.broker import Broker

SLOWLOG_DEFAULT = 10


def monitor(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`MONITOR`: from now on every command that is executed, by anyone."""
    client.reply.status(b"OK")
    broker.dispatcher.add_monitor(client)


def slowlog(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`SLOWLOG GET [count] | LEN | RESET`"""
    word = args[1].lower()
    reply = client.reply
    if word == b"get" and len(args) <= 3:
        count = SLOWLOG_DEFAULT if len(args) == 2 else integer_between(args[2])
        if count is None:
            reply.error(NOT_AN_INTEGER)
        else:
            _write_slow(broker, client, count)
    elif word == b"len" and len(args) == 2:
        reply.integer(len(broker.slow_log.entries))
    elif word == b"reset" and len(args) == 2:
        broker.slow_log.reset()
        reply.status(b"OK")
    else:
        reply.error(b"ERR Unknown SLOWLOG subcommand or wrong # of args. Try GET, RESET, LEN.")


def _write_slow(broker: Broker, client: Client, count: int) -> None:
    reply = client.reply
    entries = broker.slow_log.latest(count)
    reply.array(len(entries))
    for entry in entries:
        reply.array(4)
        reply.integer(entry.id)
        reply.integer(entry.wall_s)
        reply.integer(entry.elapsed_us)
        reply.array(len(entry.arguments))
        for argument in entry.arguments:
            reply.bulk(argument)


def latency(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`LATENCY LATEST | HISTORY event | GRAPH event | RESET [event…] | DOCTOR`"""
    word = args[1].lower()
    reply = client.reply
    if word == b"latest" and len(args) == 2:
        _write_latest(broker, client)
    elif word == b"history" and len(args) == 3:
        event = broker.latency.events.get(_name(args[2]))
        samples = list(event.samples) if event else []
        reply.array(len(samples))
        for second, elapsed_ms in samples:
            reply.array(2)
            reply.integer(second)
            reply.integer(elapsed_ms)
    elif word == b"graph" and len(args) == 3:
        event = broker.latency.events.get(_name(args[2]))
        if event is None:
            reply.error(b"ERR No samples available for event '%b'" % args[2])
        else:
            text = f"{_name(args[2])} - worst ever {event.worst_ms} ms\n" + chart(event, broker.node.wall_ms // 1000)
            reply.bulk(text.encode())
    elif word == b"reset":
        reply.integer(broker.latency.reset([_name(arg) for arg in args[2:]]))
    elif word == b"doctor" and len(args) == 2:
        reply.bulk(broker.latency.report().encode())
    else:
        reply.error(SYNTAX_ERROR)


def _name(arg: bytes) -> str:
    return arg.decode("latin-1")


def _write_latest(broker: Broker, client: Client) -> None:
    events = broker.latency.events
    client.reply.array(len(events))
    for name, event in events.items():
        second, elapsed_ms = event.samples[-1]
        client.reply.array(4)
        client.reply.bulk(name.encode())
        for number in (second, elapsed_ms, event.worst_ms):
            client.reply.integer(number)


COMMANDS = (
    Command(b"monitor", 1, ("readonly", "admin"), "Show every command that is executed from now on", "server", "", monitor),
    Command(
        b"slowlog",
        -2,
        ("readonly", "loading"),
        "Commands that took long, the newest first",
        "server",
        "GET [count] | LEN | RESET",
        slowlog,
    ),
    Command(
        b"latency",
        -2,
        ("readonly", "admin", "loading"),
        "What took long, second by second, and advice",
        "server",
        "LATEST | HISTORY event | GRAPH event | RESET [event …] | DOCTOR",
        latency,
    ),
)
