"""CONFIG: read, change and save the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.commands.table import Command
from disqueue.config.rewrite import rewrite
from disqueue.config.sources import ConfigError
from disqueue.core.client import Client

if TYPE_CHECKING:
    from disqueue.commands.broker import Broker


def _text(arg: bytes) -> str:
    return arg.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def config(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`CONFIG GET pattern | SET name value … | RESETSTAT | REWRITE`"""
    word = args[1].lower()
    count = len(args)
    if word not in (b"get", b"set", b"resetstat", b"rewrite"):
        client.reply.error(b"ERR CONFIG subcommand must be one of GET, SET, RESETSTAT, REWRITE")
    elif (
        (word == b"get" and count != 3)
        or (word == b"set" and (count < 4 or count % 2))
        or (word in (b"resetstat", b"rewrite") and count != 2)
    ):
        client.reply.error(b"ERR Wrong number of arguments for CONFIG %b" % args[1])
    elif word == b"get":
        _get(broker, client, args[2])
    else:
        _change(broker, client, word, args[2:])


def _get(broker: Broker, client: Client, pattern: bytes) -> None:
    found = broker.configuration.get([_text(pattern)])
    client.reply.map(len(found))
    for name, value in found:
        client.reply.bulk(_bytes(name))
        client.reply.bulk(_bytes(value))


def _change(broker: Broker, client: Client, word: bytes, rest: list[bytes]) -> None:
    try:
        if word == b"set":
            broker.configuration.set([(_text(name), _text(value)) for name, value in zip(rest[::2], rest[1::2], strict=True)])
        elif word == b"rewrite":
            rewrite(broker.configuration)
        else:
            broker.statistics.reset()
            broker.dispatcher.reset_figures()
    except ConfigError as error:
        client.reply.error(b"ERR " + _bytes(str(error)))
    else:
        client.reply.status(b"OK")


COMMANDS = (
    Command(
        b"config",
        -2,
        ("readonly", "admin", "loading"),
        "Read, change and save the configuration",
        "server",
        "GET pattern | SET name value [name value …] | REWRITE | RESETSTAT",
        config,
    ),
)
