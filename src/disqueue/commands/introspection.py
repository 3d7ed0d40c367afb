"""COMMAND: the table of commands, for clients and their help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disqueue.commands.dispatch import Entry
from disqueue.commands.table import Command
from disqueue.core.client import Client
from disqueue.wire.resp import ReplyWriter

if TYPE_CHECKING:
    from disqueue.commands.broker import Broker

UNKNOWN = b"ERR Unknown subcommand or wrong number of arguments."


def command(broker: Broker, client: Client, args: list[bytes]) -> None:
    """`COMMAND [COUNT | LIST | INFO [name…] | DOCS [name…]]`"""
    entries = broker.dispatcher.by_name
    reply = client.reply
    word = args[1].lower() if len(args) > 1 else b"info"
    if word in (b"count", b"list") and len(args) == 2:
        if word == b"count":
            reply.integer(len(entries))
        else:
            reply.array(len(entries))
            for name in entries:
                reply.bulk(name)
    elif word == b"info":
        names = [name.lower() for name in args[2:]] or list(entries)
        reply.array(len(names))
        for name in names:
            if name in entries:
                _write_info(reply, entries[name])
            else:
                reply.null_bulk()
    elif word == b"docs":
        names = [name.lower() for name in args[2:]] or list(entries)
        known = [name for name in names if name in entries]
        reply.map(len(known))
        for name in known:
            reply.bulk(name)
            _write_docs(reply, entries[name].command)
    else:
        reply.error(UNKNOWN)


def _write_info(reply: ReplyWriter, entry: Entry) -> None:
    reply.array(6)
    reply.bulk(entry.name)
    reply.integer(entry.arity)
    flags = entry.command.flags
    reply.array(len(flags))
    for flag in flags:
        reply.status(flag.encode())
    for _ in range(3):
        reply.integer(0)


def _write_docs(reply: ReplyWriter, entry: Command) -> None:
    arguments = syntax_parts(entry.syntax)
    reply.map(3 if arguments else 2)
    for key, value in ((b"summary", entry.summary), (b"group", entry.group)):
        reply.bulk(key)
        reply.bulk(value.encode())
    if not arguments:
        return
    reply.bulk(b"arguments")
    reply.array(len(arguments))
    for text, optional in arguments:
        reply.map(3 if optional else 2)
        reply.bulk(b"name")
        reply.bulk(text.encode())
        reply.bulk(b"type")
        reply.bulk(b"string")
        if optional:
            reply.bulk(b"flags")
            reply.array(1)
            reply.status(b"optional")


def syntax_parts(syntax: str) -> list[tuple[str, bool]]:
    """Split a syntax line at its outer blanks into (text, optional) parts; alternatives (`A | B`) stay one part."""
    if " | " in _outside_brackets(syntax):
        return [(syntax, False)]
    parts: list[str] = []
    depth = 0
    for word in syntax.split():
        if depth:
            parts[-1] += " " + word
        else:
            parts.append(word)
        depth += word.count("[") - word.count("]")
    return [(part[1:-1], True) if part[0] == "[" and part[-1] == "]" else (part, False) for part in parts]


def _outside_brackets(syntax: str) -> str:
    depth = 0
    kept = []
    for character in syntax:
        depth += (character == "[") - (character == "]")
        if depth == 0:
            kept.append(character)
    return "".join(kept)


COMMANDS = (
    Command(
        b"command",
        0,
        ("readonly", "loading"),
        "Describe the commands of this server",
        "server",
        "[COUNT | LIST | INFO [name …] | DOCS [name …]]",
        command,
    ),
)
